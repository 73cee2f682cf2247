//! The line to type for each fix and program, with what it costs. The first row that fits counts.

use super::{lines_model, lines_step};

/// A row: fix, program (`*` for any), what must hold, line, cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub fix: u8,
    pub software: &'static str,
    pub when: When,
    /// `{name}` is filled in where the figure is known; a row with an unknown figure is passed over.
    pub line: &'static str,
    pub cost: &'static str,
}

/// What must hold for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    Training,
    Attention,
    Loss,
    Decode,
    Capture,
    Optimizer,
    Fragmented,
    FragmentedOld,
    FragmentedNoVirtualMemory,
    Growing,
    Siblings,
    Collective,
    ReserveSet,
    NoVirtualMemory,
    MapsFull,
    AlreadyExpandable,
    FlashOff,
    Float32,
}

pub(super) const fn row(
    fix: u8,
    software: &'static str,
    when: When,
    line: &'static str,
    cost: &'static str,
) -> Row {
    Row { fix, software, when, line, cost }
}

/// Every row.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    lines_model::ROWS.iter().chain(lines_step::ROWS)
}
