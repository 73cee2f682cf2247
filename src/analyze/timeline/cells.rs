//! Markers in the columns of a line: one in each, and how many more.

use super::Marker;

/// What one column shows.
#[derive(Debug, Clone, Copy)]
pub struct Mark<'a> {
    /// The most important one.
    pub marker: &'a Marker,
    /// How many fall into the column.
    pub count: usize,
}

/// The column of a moment of a stretch of time, both of its ends included.
pub const fn column(at_ms: u64, (from_ms, to_ms): (u64, u64), columns: usize) -> Option<usize> {
    if columns == 0 || at_ms < from_ms || at_ms > to_ms {
        return None;
    }
    let whole = (to_ms - from_ms) as u128;
    if whole == 0 {
        return Some(columns - 1);
    }
    let column = (at_ms - from_ms) as u128 * columns as u128 / whole;
    Some(if column >= columns as u128 { columns - 1 } else { column as usize })
}

/// Puts markers into `columns` of a stretch of time.
pub fn cells<'a>(
    markers: impl Iterator<Item = &'a Marker>,
    span_ms: (u64, u64),
    columns: usize,
) -> Vec<Option<Mark<'a>>> {
    let mut cells: Vec<Option<Mark<'a>>> = vec![None; columns];
    for marker in markers {
        let Some(at) = column(marker.at.boot_ms, span_ms, columns) else { continue };
        let cell = &mut cells[at];
        let count = cell.map_or(0, |mark| mark.count) + 1;
        let shown = match cell {
            Some(mark) if mark.marker.weight() >= marker.weight() => mark.marker,
            _ => marker,
        };
        *cell = Some(Mark { marker: shown, count });
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::super::MarkerKind;
    use super::*;
    use crate::ids::Stamp;

    #[test]
    fn in_one_column_the_most_important_is_shown_and_all_are_counted() {
        let mark = |kind, at| Marker::new(kind, Stamp { boot_ms: at, wall_ms: at });
        let all = [
            mark(MarkerKind::Came, 100),
            mark(MarkerKind::Oom, 101),
            mark(MarkerKind::Went, 102),
            mark(MarkerKind::Peak, 200),
            mark(MarkerKind::Gap, 99),
        ];
        let cells = cells(all.iter(), (100, 200), 10);
        let shown = |n: usize| cells[n].map(|cell| (cell.marker.kind, cell.count));
        assert_eq!(shown(0), Some((MarkerKind::Oom, 3)));
        assert_eq!(shown(9), Some((MarkerKind::Peak, 1)), "the end belongs to it");
        assert_eq!(cells.iter().flatten().count(), 2, "what lies before it does not");
        assert_eq!(column(5, (5, 5), 3), Some(2));
        assert_eq!(column(5, (0, 9), 0), None);
    }
}
