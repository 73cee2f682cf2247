//! Colours and characters. Every meaning has a second cue, so that mono and ASCII lose nothing.

use ratatui::style::{Color, Modifier, Style};

use crate::analyze::{Class, Verdict};
use crate::rules::Severity;

/// One style for each role. The default takes the terminal's own sixteen colours and never sets a
/// background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Ordinary text.
    pub text: Style,
    /// What matters less: units, labels, absent values.
    pub dim: Style,
    /// Names and titles.
    pub strong: Style,
    /// What is selected: the only accent.
    pub accent: Style,
    /// The selected row.
    pub selected: Style,
    /// It is as it should be.
    pub good: Style,
    /// It should be looked at.
    pub warn: Style,
    /// It is wrong.
    pub bad: Style,
    /// Rules and frames.
    pub rule: Style,
    /// Used, and nobody's.
    pub unaccounted: Style,
    /// Not held.
    pub free: Style,
    /// Kept by the driver.
    pub reserved: Style,
    /// The line of a chart.
    pub chart: Style,
    /// A key that can be pressed.
    pub key: Style,
    /// A banner: paused, a recording.
    pub banner: Style,
}

impl Theme {
    /// The terminal's own colours.
    pub const fn terminal() -> Self {
        let plain = Style::new();
        Self {
            text: plain,
            dim: plain.add_modifier(Modifier::DIM),
            strong: plain.add_modifier(Modifier::BOLD),
            accent: plain.fg(Color::Cyan).add_modifier(Modifier::BOLD),
            selected: plain
                .fg(Color::Cyan)
                .add_modifier(Modifier::BOLD)
                .remove_modifier(Modifier::DIM),
            good: plain.fg(Color::Green),
            warn: plain.fg(Color::Yellow),
            bad: plain.fg(Color::Red).add_modifier(Modifier::BOLD),
            rule: plain.add_modifier(Modifier::DIM),
            unaccounted: plain.fg(Color::Yellow),
            free: plain.add_modifier(Modifier::DIM),
            reserved: plain.add_modifier(Modifier::DIM),
            chart: plain.fg(Color::Green),
            key: plain.add_modifier(Modifier::BOLD),
            banner: plain.fg(Color::Yellow).add_modifier(Modifier::BOLD),
        }
    }

    /// No colour at all (`NO_COLOR`): weight and reversal only.
    pub const fn mono() -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        Self {
            text: plain,
            dim: plain.add_modifier(Modifier::DIM),
            strong: bold,
            accent: bold,
            selected: plain.add_modifier(Modifier::REVERSED).remove_modifier(Modifier::DIM),
            good: plain,
            warn: bold,
            bad: bold,
            rule: plain.add_modifier(Modifier::DIM),
            unaccounted: plain,
            free: plain.add_modifier(Modifier::DIM),
            reserved: plain.add_modifier(Modifier::DIM),
            chart: plain,
            key: bold,
            banner: bold,
        }
    }

    /// The colour of a verdict. Its word is the second cue.
    pub const fn verdict(&self, verdict: &Verdict) -> Style {
        if verdict.zombie {
            return self.bad;
        }
        match verdict.class {
            Class::Active | Class::BusyCpu => self.good,
            Class::Orphan
            | Class::Ghost
            | Class::Survivor
            | Class::Hidden
            | Class::Suspended
            | Class::Frozen
            | Class::Debugged
            | Class::Stuck
            | Class::Reused => self.warn,
            Class::Unkillable => self.bad,
            _ => self.text,
        }
    }

    /// The colour of a finding's weight.
    pub const fn severity(&self, severity: Severity) -> Style {
        match severity {
            Severity::Notice => self.text,
            Severity::Warning => self.warn,
            Severity::Critical => self.bad,
        }
    }

    /// The colour of a share of something that should not become full.
    pub fn level(&self, percent: f64) -> Style {
        match percent {
            p if p >= 95.0 => self.bad,
            p if p >= 85.0 => self.warn,
            _ => self.text,
        }
    }
}

/// The characters that are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    /// Whether text from outside is brought down to ASCII too.
    pub ascii: bool,
    /// Before the selected row.
    pub select: &'static str,
    /// Before a marked row.
    pub mark: &'static str,
    /// The end of what was cut.
    pub ellipsis: &'static str,
    /// Of a horizontal rule.
    pub rule: &'static str,
    /// Of a vertical rule.
    pub bar: &'static str,
    /// What a process holds, a pattern for each of the largest.
    pub holders: [&'static str; 4],
    /// What all further processes hold.
    pub others: &'static str,
    /// Cached by an allocator and not used.
    pub cached: &'static str,
    /// Used, and nobody's.
    pub unaccounted: &'static str,
    /// Used by programs on the processor, of memory that both share.
    pub host: &'static str,
    /// Not held.
    pub free: &'static str,
    /// Kept by the driver.
    pub reserved: &'static str,
    /// From empty to full.
    pub levels: [&'static str; 9],
    /// Whether charts may use braille.
    pub braille: bool,
    /// No data.
    pub gap: &'static str,
    /// Before a line that only informs.
    pub bullet: &'static str,
    /// Between two things on one line.
    pub dot: &'static str,
    /// It is live.
    pub live: &'static str,
    /// Something is wrong.
    pub alert: &'static str,
    /// Paused.
    pub paused: &'static str,
    /// A recording.
    pub replay: &'static str,
    /// What to type.
    pub prompt: &'static str,
    /// Corners of a frame: top left, top right, bottom left, bottom right.
    pub corners: [&'static str; 4],
    /// In a tree: a child, the last child.
    pub branches: [&'static str; 2],
    /// The Δ of a column head.
    pub delta: &'static str,
    /// Sorted downwards, upwards.
    pub sorted: [&'static str; 2],
}

impl Glyphs {
    /// What a terminal with UTF-8 shows.
    pub const fn unicode() -> Self {
        Self {
            ascii: false,
            select: "▸",
            mark: "●",
            ellipsis: "…",
            rule: "─",
            bar: "│",
            holders: ["█", "▓", "▌", "▄"],
            others: "▒",
            cached: "░",
            unaccounted: "?",
            host: "≡",
            free: "·",
            reserved: "▚",
            levels: [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
            braille: true,
            gap: "╌",
            bullet: "·",
            dot: "·",
            live: "●",
            alert: "▲",
            paused: "‖",
            replay: "▶",
            prompt: "→",
            corners: ["┌", "┐", "└", "┘"],
            branches: ["├ ", "└ "],
            delta: "Δ",
            sorted: ["▾", "▴"],
        }
    }

    /// The same in ASCII.
    pub const fn ascii() -> Self {
        Self {
            ascii: true,
            select: ">",
            mark: "*",
            ellipsis: "~",
            rule: "-",
            bar: "|",
            holders: ["#", "=", "%", "+"],
            others: "o",
            cached: ":",
            unaccounted: "?",
            host: "&",
            free: ".",
            reserved: "@",
            levels: [" ", "_", ".", "-", "=", "+", "*", "#", "#"],
            braille: false,
            gap: " ",
            bullet: ".",
            dot: "-",
            live: "*",
            alert: "!",
            paused: "=",
            replay: ">",
            prompt: "->",
            corners: ["+", "+", "+", "+"],
            branches: ["|-", "`-"],
            delta: "d",
            sorted: ["v", "^"],
        }
    }
}

/// How everything is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Colours.
    pub theme: Theme,
    /// Characters.
    pub glyphs: Glyphs,
    /// Whether there are colours.
    pub colour: bool,
}

impl Look {
    /// Colours as the terminal has them, or none; Unicode or ASCII.
    pub const fn new(colour: bool, ascii: bool) -> Self {
        let theme = if colour { Theme::terminal() } else { Theme::mono() };
        let glyphs = if ascii { Glyphs::ascii() } else { Glyphs::unicode() };
        Self { theme, glyphs, colour }
    }
}
