//! What is said of a recording that is not whole: where something is lost, on standard error.

use std::io::Write;

use crate::analyze::moment::clock;
use crate::ids::Stamp;
use crate::runtime::clock::utc_offset_seconds;
use crate::sample::text::clean;
use crate::sample::{GapCause, Tick};

/// So many places are named; the rest is counted.
const NAMED: usize = 5;

/// The damaged places of a recording, as its ticks pass.
#[derive(Debug, Default)]
pub struct Damage {
    places: Vec<(Stamp, Stamp)>,
    more: usize,
    /// Whether a tick came after the last of them.
    goes_on: bool,
    whole: u64,
}

impl Damage {
    /// Looks at the next tick.
    pub fn push(&mut self, tick: &Tick) {
        match tick {
            Tick::Gap(gap) if gap.cause == GapCause::Damaged => {
                self.goes_on = false;
                if self.places.len() < NAMED {
                    self.places.push((gap.from, gap.to));
                } else {
                    self.more += 1;
                }
            }
            _ => {
                self.goes_on = true;
                self.whole += 1;
            }
        }
    }

    /// Whether not one tick was left.
    const fn is_all(&self) -> bool {
        self.whole == 0 && !self.places.is_empty()
    }

    /// What is lost, in a sentence for each place; empty where the recording is whole.
    pub fn words(&self) -> Vec<String> {
        let time = |at: &Stamp| clock(*at, utc_offset_seconds(*at));
        let last = self.places.len().checked_sub(1).filter(|_| !self.goes_on && self.more == 0);
        let place = |(n, (from, to)): (usize, &(Stamp, Stamp))| {
            if Some(n) == last {
                format!("it breaks off after {}, and was not closed", time(from))
            } else if from == to {
                format!("it is damaged before {}", time(to))
            } else {
                format!("it is damaged between {} and {}", time(from), time(to))
            }
        };
        let mut words: Vec<String> = self.places.iter().enumerate().map(place).collect();
        if self.more > 0 {
            words.push(format!("and in {} more places", self.more));
        }
        words
    }

    /// Says it on standard error, where something is left.
    ///
    /// # Errors
    /// Where nothing is.
    pub fn check(&self, name: &str) -> anyhow::Result<()> {
        if self.is_all() {
            anyhow::bail!("{name}: {}, so nothing can be read of it", self.words().join("; "));
        }
        if let words @ [_, ..] = self.words().as_slice() {
            let text = format!("vramlens: {name}: {}; what is lost is left out", words.join("; "));
            let _ = writeln!(std::io::stderr(), "{}", clean(&text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Gap;

    fn gap(from: u64, to: u64, cause: GapCause) -> Tick {
        let at = |boot_ms| Stamp { boot_ms, wall_ms: boot_ms };
        Tick::Gap(Gap { from: at(from), to: at(to), cause })
    }

    #[test]
    fn what_is_lost_is_told_by_its_place() {
        let mut damage = Damage::default();
        damage.push(&gap(0, 1, GapCause::Suspended));
        assert!(damage.words().is_empty());
        damage.push(&gap(1_000, 61_000, GapCause::Damaged));
        damage.push(&gap(61_000, 61_001, GapCause::Suspended));
        let words = damage.words();
        assert!(words.len() == 1 && words[0].contains("damaged between"), "{words:?}");
        damage.push(&gap(90_000, 90_000, GapCause::Damaged));
        let words = damage.words();
        assert!(words.len() == 2 && words[1].contains("breaks off after"), "{words:?}");
        for at in 0..NAMED as u64 {
            damage.push(&gap(at, at, GapCause::Damaged));
        }
        assert_eq!(damage.words().last().unwrap(), "and in 2 more places");
        assert!(!damage.is_all());
    }
}
