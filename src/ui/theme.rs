//! Colours and characters. Every meaning has a second cue, so that mono and ASCII lose nothing.

mod builtin;
mod colour;
mod file;
mod glyphs;

use ratatui::style::{Color, Modifier, Style};

pub use builtin::{BUILT_IN, TERMINAL, built_in};
pub use colour::{Depth, READABLE, Rgb, SIXTEEN, contrast, difference, rgb_of};
pub use file::{Definition, ThemeError, help, parse};
pub use glyphs::Glyphs;

use super::grid::Grid;
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
    /// What lies behind everything, and ordinary text on it; empty for the terminal's own.
    pub paper: Style,
}

/// A part of the screen that a theme file gives a colour.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// Its name in the file.
    pub name: &'static str,
    /// Whether it is a line or a pattern rather than something to read.
    pub shape: bool,
    /// What it is for.
    pub doc: &'static str,
    /// Its style.
    pub of: fn(&mut Theme) -> &mut Style,
}

macro_rules! roles {
    ($($name:ident $shape:literal $doc:literal;)*) => {
        /// Every role of a theme file.
        pub const ROLES: &[Role] = &[$(Role {
            name: stringify!($name), shape: $shape, doc: $doc, of: |theme| &mut theme.$name,
        },)*];
    };
}

roles! {
    text false "ordinary text, and whatever the file leaves out";
    dim false "what matters less: units, labels, absent values";
    strong false "names and titles";
    accent false "what is chosen: the only accent";
    selected false "the selected row; without a colour before `on` each cell keeps its own";
    good false "as it should be";
    warn false "to be looked at";
    bad false "wrong";
    rule true "rules and frames";
    unaccounted false "used, and nobody's";
    free false "not held";
    reserved false "kept by the driver";
    chart true "the line of a chart";
    key false "a key that can be pressed";
    banner false "paused, or a recording";
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
            paper: plain,
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
            paper: plain,
        }
    }

    /// The same theme on a terminal with fewer colours. A band behind the selected row that such a
    /// terminal cannot tell from the rest gives way to bold.
    #[must_use]
    pub fn at(mut self, depth: Depth) -> Self {
        if depth == Depth::None {
            return Self::mono();
        }
        let paper = self.paper.bg.map(|colour| depth.map(colour, None));
        let behind = paper.and_then(rgb_of);
        (self.paper.bg, self.paper.fg) =
            (paper, self.paper.fg.map(|colour| depth.map(colour, behind)));
        let band = self.selected.bg.map(|colour| depth.map(colour, None));
        let told_apart = band != paper && (depth != Depth::Ansi || self.selected.fg.is_some());
        self.selected.bg = band.filter(|_| told_apart);
        if band.is_some() && !told_apart {
            self.selected = self.selected.add_modifier(Modifier::BOLD);
        }
        for role in ROLES {
            let own = role.name == "selected";
            let style = (role.of)(&mut self);
            let behind = style.bg.filter(|_| own).and_then(rgb_of).or(behind);
            style.fg = style.fg.map(|colour| depth.map(colour, behind));
        }
        self
    }

    /// Puts the theme's ground behind what has none of its own.
    pub fn lay(&self, grid: &mut Grid) {
        if self.paper != Style::new() {
            grid.lay(self.paper);
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
    /// This theme, on a terminal with these colours.
    pub fn themed(theme: Theme, depth: Depth, ascii: bool) -> Self {
        let glyphs = if ascii { Glyphs::ascii() } else { Glyphs::unicode() };
        Self { theme: theme.at(depth), glyphs, colour: depth != Depth::None }
    }

    /// Colours as the terminal has them, or none; Unicode or ASCII.
    pub const fn new(colour: bool, ascii: bool) -> Self {
        let theme = if colour { Theme::terminal() } else { Theme::mono() };
        let glyphs = if ascii { Glyphs::ascii() } else { Glyphs::unicode() };
        Self { theme, glyphs, colour }
    }
}
