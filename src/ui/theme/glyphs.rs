//! The characters that the screen is drawn with, and the same in ASCII.

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
            gap: "~",
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
