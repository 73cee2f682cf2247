//! The kinds of markers: one table. Timeline, charts, pictures and help come from it.

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MarkerKind {
    /// A process appeared in a GPU's list.
    Came,
    /// A process left a GPU's list.
    Went,
    /// The most that a GPU held so far.
    Peak,
    /// Nothing is known from here to the end of the gap.
    Gap,
    /// This program signalled a process.
    Kill,
    /// An allocator counted an out-of-memory error.
    Oom,
    /// The driver reported an error of the GPU.
    Xid,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct MarkerRow {
    /// Which kind.
    pub kind: MarkerKind,
    /// As one column of Unicode.
    pub glyph: &'static str,
    /// As one character of ASCII.
    pub ascii: &'static str,
    /// In a word or two.
    pub word: &'static str,
    /// What it says, and where that comes from.
    pub help: &'static str,
}

const fn row(
    kind: MarkerKind,
    glyph: &'static str,
    ascii: &'static str,
    word: &'static str,
    help: &'static str,
) -> MarkerRow {
    MarkerRow { kind, glyph, ascii, word, help }
}

/// Every kind, the least important first: of several in one place the last one is shown.
pub const MARKERS: [MarkerRow; 7] = [
    row(MarkerKind::Came, "↑", "^", "came", "a process appeared in the driver's list"),
    row(MarkerKind::Went, "↓", "v", "went", "a process left the driver's list"),
    row(MarkerKind::Peak, "◆", "*", "peak", "the most that a GPU held so far"),
    row(MarkerKind::Gap, "╌", "~", "gap", "nothing is known for a while, and why"),
    row(MarkerKind::Kill, "×", "x", "killed", "vramlens sent a signal to a process"),
    row(MarkerKind::Oom, "!", "!", "out of memory", "an allocator counted an out-of-memory error"),
    row(MarkerKind::Xid, "‡", "X", "XID", "the driver reported an error of the GPU"),
];

impl MarkerKind {
    /// Its row of the table.
    pub const fn row(self) -> &'static MarkerRow {
        &MARKERS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row_and_signs_of_its_own() {
        for (n, row) in MARKERS.iter().enumerate() {
            assert_eq!(row.kind as usize, n);
            assert_eq!(row.kind.row().word, row.word);
            assert!(row.ascii.is_ascii() && row.ascii.len() == 1);
            assert_eq!(crate::sample::text::width(row.glyph), 1);
            for other in &MARKERS[n + 1..] {
                assert!(row.glyph != other.glyph && row.ascii != other.ascii);
            }
        }
    }
}
