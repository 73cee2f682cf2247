//! What a picture is made of: a few kinds of shapes in whole pixels, the same for SVG and PNG.

use crate::analyze::timeline::MarkerKind;

/// A column of text, in pixels: the fonts of both forms have this width.
pub const CHAR: i32 = 7;

/// Columns that a clean text takes.
pub fn columns(clean: &str) -> i32 {
    i32::try_from(crate::sample::text::width(clean)).unwrap_or(i32::MAX / CHAR)
}

/// A colour: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ink(pub u8, pub u8, pub u8);

/// The picture's own paper: readable wherever it is put.
pub const PAPER: Ink = Ink(0xff, 0xff, 0xff);
/// Text.
pub const TEXT: Ink = Ink(0x20, 0x24, 0x2b);
/// What matters less.
pub const DIM: Ink = Ink(0x5c, 0x64, 0x70);
/// Lines of the grid.
pub const GRID: Ink = Ink(0xe4, 0xe7, 0xeb);
/// Axes and the frame.
pub const FRAME: Ink = Ink(0xb4, 0xba, 0xc3);
/// Where nothing is known.
pub const GAP: Ink = Ink(0xf0, 0xf1, 0xf3);
/// All holders that have no colour of their own.
pub const OTHERS: Ink = Ink(0xa8, 0xae, 0xb8);
/// Used, and nobody's.
pub const UNACCOUNTED: Ink = Ink(0x6e, 0x5a, 0x1e);
/// Kept by the driver.
pub const DRIVER: Ink = Ink(0x4a, 0x50, 0x5a);

/// One for each of the largest holders: the palette of Okabe and Ito, which the colour-blind can
/// tell apart, in an order in which neighbours differ in lightness too.
pub const HOLDERS: [Ink; 7] = [
    Ink(0x2a, 0x7a, 0xb8),
    Ink(0xe8, 0xa8, 0x33),
    Ink(0x1f, 0x96, 0x78),
    Ink(0xcf, 0x8a, 0xb0),
    Ink(0x7c, 0xc0, 0xea),
    Ink(0xcf, 0x69, 0x2b),
    Ink(0xea, 0xdf, 0x69),
];

/// How an area is filled: the second cue beside its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fill {
    /// All of it.
    Plain(Ink),
    /// Stripes on paper.
    Striped(Ink),
    /// Dots on paper.
    Dotted(Ink),
}

impl Fill {
    /// Its colour.
    pub const fn ink(self) -> Ink {
        match self {
            Self::Plain(ink) | Self::Striped(ink) | Self::Dotted(ink) => ink,
        }
    }
}

/// Some columns of pixels of an area, and where they begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The first column.
    pub x: i32,
    /// Behind the last one.
    pub end: i32,
    /// The upper edge.
    pub top: i32,
    /// The lower edge.
    pub bottom: i32,
}

/// Where a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is in the middle.
    Middle,
    /// It ends there.
    End,
}

/// One thing to draw.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A filled rectangle: x, y, width, height.
    Rect([i32; 4], Fill),
    /// The outline of one.
    Frame([i32; 4], Ink),
    /// An area over time, with what it stands for. Clean text.
    Area(String, Vec<Step>, Fill),
    /// A vertical line that is broken: x, y, height.
    Dashes([i32; 3], Ink),
    /// The sign of a marker around a point, and what it says. Clean text.
    Sign([i32; 2], MarkerKind, String),
    /// A line of text on its base line. Clean text.
    Text {
        /// Where.
        at: [i32; 2],
        /// What.
        text: String,
        /// In which colour.
        ink: Ink,
        /// Which part of it is there.
        anchor: Anchor,
        /// Whether it is bold.
        bold: bool,
    },
}

impl Shape {
    /// A line of text that begins at a place.
    pub fn text(at: [i32; 2], text: impl Into<String>, ink: Ink) -> Self {
        Self::Text { at, text: text.into(), ink, anchor: Anchor::Start, bold: false }
    }

    /// The same with another part of it there.
    pub fn anchored(at: [i32; 2], text: impl Into<String>, ink: Ink, anchor: Anchor) -> Self {
        Self::Text { at, text: text.into(), ink, anchor, bold: false }
    }

    /// A title.
    pub fn title(at: [i32; 2], text: impl Into<String>) -> Self {
        Self::Text { at, text: text.into(), ink: TEXT, anchor: Anchor::Start, bold: true }
    }
}

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// In pixels.
    pub width: i32,
    /// In pixels.
    pub height: i32,
    /// In the order in which they are drawn.
    pub shapes: Vec<Shape>,
    /// What it shows, in one sentence. Clean text.
    pub title: String,
}

/// The sign of a kind: polygons around a point, in pixels, and their colour.
pub const fn sign(kind: MarkerKind) -> (&'static [&'static [(i32, i32)]], Ink) {
    match kind {
        MarkerKind::Came => (&[&[(0, -5), (5, 4), (-5, 4)]], Ink(0x1f, 0x7a, 0x5c)),
        MarkerKind::Went => (&[&[(-5, -4), (5, -4), (0, 5)]], Ink(0x5c, 0x64, 0x70)),
        MarkerKind::Peak => (&[&[(0, -5), (5, 0), (0, 5), (-5, 0)]], Ink(0x20, 0x24, 0x2b)),
        MarkerKind::Gap => {
            (&[&[(-5, -1), (-1, -1), (-1, 2), (-5, 2)], &[(1, -1), (5, -1), (5, 2), (1, 2)]], DIM)
        }
        MarkerKind::Kill => (
            &[&[
                (-5, -3),
                (-3, -5),
                (0, -2),
                (3, -5),
                (5, -3),
                (2, 0),
                (5, 3),
                (3, 5),
                (0, 2),
                (-3, 5),
                (-5, 3),
                (-2, 0),
            ]],
            Ink(0x8a, 0x3f, 0x7d),
        ),
        MarkerKind::Oom => (
            &[&[(-2, -6), (2, -6), (1, 2), (-1, 2)], &[(-2, 3), (2, 3), (2, 6), (-2, 6)]],
            Ink(0xc0, 0x2a, 0x1e),
        ),
        MarkerKind::Xid => (&[&[(-5, -5), (5, -5), (5, 5), (-5, 5)]], Ink(0xc0, 0x2a, 0x1e)),
    }
}
