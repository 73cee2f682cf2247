//! Which columns the table of processes has, in which order and how wide; and where they stand.

use crate::fields::{Align, FIELDS, Field, FieldId, Scope};
use crate::sample::nearest::did_you_mean;

/// The columns without another word.
const USUAL: [FieldId; 14] = [
    FieldId::Gpu,
    FieldId::Pid,
    FieldId::User,
    FieldId::State,
    FieldId::Vram,
    FieldId::Delta,
    FieldId::Fragmentation,
    FieldId::Sm,
    FieldId::Age,
    FieldId::Cpu,
    FieldId::Rss,
    FieldId::Peak,
    FieldId::Unit,
    FieldId::Command,
];

/// Which columns are kept where the screen is narrow, the most telling first. What is not named
/// goes first.
const RANK: [FieldId; 13] = [
    FieldId::Pid,
    FieldId::Vram,
    FieldId::State,
    FieldId::Gpu,
    FieldId::User,
    FieldId::Delta,
    FieldId::Sm,
    FieldId::Age,
    FieldId::Fragmentation,
    FieldId::Cpu,
    FieldId::Rss,
    FieldId::Peak,
    FieldId::Unit,
];

/// Before the first column: the marks.
pub const MARGIN: u16 = 2;
/// The narrowest column of words, and the widest of all.
const WIDTHS: std::ops::RangeInclusive<u16> = 3..=200;

/// The chosen columns, each with its width where that is not the field's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Vec<(FieldId, Option<u16>)>);

impl Default for Columns {
    fn default() -> Self {
        Self(USUAL.into_iter().map(|id| (id, None)).collect())
    }
}

/// A column and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    /// What it shows.
    pub field: &'static Field,
    /// Its first column on the screen.
    pub x: u16,
    /// Columns of the screen.
    pub width: u16,
}

impl Columns {
    /// From words such as `vram`, `user:12`.
    ///
    /// # Errors
    /// A sentence about the first word that names no column, or no width that it can have.
    pub fn parse<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<Self, String> {
        let mut chosen: Vec<(FieldId, Option<u16>)> = Vec::new();
        for word in words {
            let (name, width) = match word.split_once(':') {
                Some((name, width)) => (name, Some(width)),
                None => (word, None),
            };
            let id = FieldId::by_name(name).ok_or_else(|| no_column(name))?;
            if chosen.iter().any(|(other, _)| *other == id) {
                return Err(format!("{name} stands there twice"));
            }
            chosen.push((id, width.map(|width| wide(id.field(), width)).transpose()?));
        }
        if chosen.is_empty() {
            return Err(format!("at least one of {}", known().collect::<Vec<_>>().join(", ")));
        }
        Ok(Self(chosen))
    }

    /// The usual ones, as the configuration writes them.
    pub fn usual() -> impl Iterator<Item = &'static str> {
        USUAL.into_iter().map(|id| id.field().name)
    }

    /// The columns that fit; the command takes what remains, and at least a little. Depends on the
    /// width alone, so that nothing jumps when numbers change.
    pub fn place(&self, width: u16, mig: bool) -> Vec<Placed> {
        let columns_of = |id: FieldId, own: Option<u16>| {
            own.unwrap_or(id.field().width) + u16::from(mig && id == FieldId::Gpu)
        };
        let command = self.0.iter().any(|(id, _)| *id == FieldId::Command);
        let mut ranked: Vec<_> =
            self.0.iter().copied().filter(|(id, _)| *id != FieldId::Command).collect();
        ranked.sort_by_key(|(id, _)| RANK.iter().position(|other| other == id).unwrap_or(99));
        let mut kept: Vec<FieldId> = Vec::with_capacity(ranked.len());
        let mut used = MARGIN;
        for (n, (id, own)) in ranked.into_iter().enumerate() {
            // Each further column must leave the command more room.
            let least = match n {
                _ if !command => 0,
                0..3 => 8,
                3..9 => 14,
                _ => 22,
            };
            // The first one stands even where it is cut.
            if n > 0 && used + columns_of(id, own) + 1 + least > width {
                break;
            }
            used += columns_of(id, own) + 1;
            kept.push(id);
        }
        let mut x = MARGIN;
        let mut placed = Vec::with_capacity(kept.len() + 1);
        for (id, own) in &self.0 {
            let columns = if *id == FieldId::Command {
                // Words after a number: a little further away.
                x += u16::from(x > MARGIN);
                let rest = width.saturating_sub(used + u16::from(x > MARGIN));
                own.map_or(rest, |own| own.min(rest))
            } else if kept.contains(id) {
                columns_of(*id, *own)
            } else {
                continue;
            };
            placed.push(Placed { field: id.field(), x, width: columns });
            x += columns + 1;
        }
        placed
    }
}

fn known() -> impl Iterator<Item = &'static str> + Clone {
    FIELDS.iter().filter(|field| field.scope == Scope::Holder).map(|field| field.name)
}

fn no_column(name: &str) -> String {
    let name: String = name.chars().take(64).collect();
    let list = known().collect::<Vec<_>>().join(", ");
    format!(
        "a list of columns, and {name:?} is none{}; there are {list}",
        did_you_mean(&name, known())
    )
}

/// A number that is cut is another number: columns of numbers can only become wider.
fn wide(field: &Field, text: &str) -> Result<u16, String> {
    let least = if field.align == Align::Right { field.width } else { *WIDTHS.start() };
    let allowed = least..=*WIDTHS.end();
    let width = text.parse().ok().filter(|width| allowed.contains(width));
    width.ok_or_else(|| {
        let (name, most) = (field.name, WIDTHS.end());
        format!("a width from {least} to {most} for {name}: {name}:{}", least.max(12))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Columns, String> {
        Columns::parse(text.split_whitespace())
    }

    #[test]
    fn columns_are_chosen_ordered_and_sized() {
        let columns = parse("vram pid:9 command user:12").unwrap();
        let placed = columns.place(60, false);
        let seen: Vec<_> =
            placed.iter().map(|placed| (placed.field.name, placed.x, placed.width)).collect();
        assert_eq!(seen, [("vram", 2, 6), ("pid", 9, 9), ("command", 20, 27), ("user", 48, 12)]);
        assert_eq!(parse("command:10 vram").unwrap().place(80, false)[0].width, 10);
        assert_eq!(Columns::parse(Columns::usual()), Ok(Columns::default()));
    }

    #[test]
    fn a_mistake_is_named_with_what_is_allowed() {
        let unknown = parse("gpu vramm").unwrap_err();
        assert!(unknown.contains("did you mean vram?") && unknown.contains("command"), "{unknown}");
        assert!(parse("gpu total").is_err(), "a field of a GPU is no column");
        assert_eq!(parse("gpu gpu").unwrap_err(), "gpu stands there twice");
        assert!(parse("pid:3").unwrap_err().contains("from 7 to 200"), "numbers are never cut");
        assert!(parse("user:x").is_err() && parse("user:9999").is_err() && parse("").is_err());
        assert!(parse("user:3").is_ok());
    }

    proptest! {
        #[test]
        fn columns_never_overlap_and_never_leave_the_screen(
            names in prop::sample::subsequence(known().collect::<Vec<_>>(), 1..15).prop_shuffle(),
            width in 20_u16..300,
            mig in any::<bool>(),
        ) {
            let columns = Columns::parse(names).unwrap();
            let placed = columns.place(width, mig);
            prop_assert!(!placed.is_empty());
            for pair in placed.windows(2) {
                prop_assert!(pair[0].x + pair[0].width < pair[1].x, "{placed:?}");
            }
            for one in &placed {
                prop_assert!(one.x + one.width <= width, "{placed:?} in {width}");
            }
        }
    }
}
