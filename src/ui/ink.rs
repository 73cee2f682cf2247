//! How cells look, each look once: a cell names one by its number. A screen has some thirty.

use ratatui::style::Style;

use super::packed::packed;

/// How a cell looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ink {
    pub fore: u32,
    pub back: u32,
    pub modifier: u32,
}

impl Ink {
    pub fn patch(&mut self, style: Style) {
        if let Some(fore) = style.fg {
            self.fore = packed(fore);
        }
        if let Some(back) = style.bg {
            self.back = packed(back);
        }
        self.modifier &= !u32::from(style.sub_modifier.bits());
        self.modifier |= u32::from(style.add_modifier.bits());
    }

    pub fn of(style: Style) -> Self {
        let mut ink = Self::default();
        ink.patch(style);
        ink
    }
}

/// More than any theme has; with more of them it begins anew.
const MOST: usize = 256;

/// Looks by number; 0 is the terminal's own.
#[derive(Debug, Clone, Default)]
pub(super) struct Inks(Vec<Ink>);

impl Inks {
    /// The number of a look.
    pub fn number(&mut self, ink: Ink) -> u32 {
        if ink == Ink::default() {
            return 0;
        }
        let known = self.0.iter().position(|known| *known == ink);
        let place = known.unwrap_or_else(|| {
            self.0.push(ink);
            self.0.len() - 1
        });
        place as u32 + 1
    }

    /// And back.
    pub fn get(&self, number: u32) -> Ink {
        let place = (number as usize).checked_sub(1);
        place.and_then(|place| self.0.get(place)).copied().unwrap_or_default()
    }

    /// How many numbers there are.
    pub const fn len(&self) -> u32 {
        self.0.len() as u32 + 1
    }

    /// Whether every number that both know means the same to both.
    pub fn agree(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(own, others)| own == others)
    }

    /// Takes over the numbers of another.
    pub fn adopt(&mut self, other: &Self) {
        if self.0.len() != other.0.len() || !self.agree(other) {
            self.0.clone_from(&other.0);
        }
    }

    /// Forgets all where they have become too many.
    pub fn bound(&mut self) {
        if self.0.len() > MOST {
            self.0.clear();
        }
    }
}
