//! Why a reading ended as it did, for those who ask.

use std::cell::RefCell;

/// Different reasons that are kept of one reading.
const MOST_NOTES: usize = 64;

/// What was refused on the way, in the order in which it first happened, and how often.
#[derive(Debug, Clone, Default)]
pub struct Notes(RefCell<Vec<(String, u32)>>);

impl Notes {
    /// Adds a reason; one that is known already is only counted.
    pub fn add(&self, text: String) {
        let Ok(mut notes) = self.0.try_borrow_mut() else { return };
        if let Some(row) = notes.iter_mut().find(|row| row.0 == text) {
            row.1 += 1;
        } else if notes.len() < MOST_NOTES {
            notes.push((text, 1));
        }
    }

    /// The reasons, each with how often it was met.
    pub fn take(&self) -> Vec<(String, u32)> {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_reason_is_counted_and_many_are_bounded() {
        let notes = Notes::default();
        for n in 0..1000 {
            notes.add("same".to_owned());
            notes.add(format!("number {n}"));
        }
        let taken = notes.take();
        assert_eq!(taken.len(), MOST_NOTES);
        assert_eq!(taken.first(), Some(&("same".to_owned(), 1000)));
        assert_eq!(notes.take(), []);
    }
}
