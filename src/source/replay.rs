//! A recording as a source of ticks.

use std::fmt::Display;

use crate::ids::Stamp;
use crate::sample::Tick;
use crate::source::{Source, SourceError, Wants};

/// A silence in a recording lasts no longer than this in replay, in milliseconds of the watcher's
/// time: a machine that slept for a night is not waited for.
const LONGEST_WAIT_MS: u64 = 3_000;
/// Speeds that can be asked for.
const SPEEDS: (f64, f64) = (0.01, 10_000.0);

/// Gives recorded ticks in their order. It does not wait: [`ReplaySource::wait_ms`] says how long
/// the next one is still to come, and whoever drives it waits for as long, or does not.
pub struct ReplaySource<I> {
    ticks: I,
    ahead: Option<Tick>,
    pace: Pace,
}

/// How recorded time passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As ticks arrive: the far end of a pipe sets the pace.
    AsItComes,
    /// This many times as fast as it was recorded.
    Speed {
        /// The factor.
        factor: f64,
        /// The moment from which time is measured: in the watcher's time and in recorded time,
        /// milliseconds since either boot.
        anchor: Option<(u64, u64)>,
    },
}

impl Pace {
    /// Recorded time, `factor` times as fast. What is no sensible speed counts as 1.
    pub fn speed(factor: f64) -> Self {
        let sensible = factor.is_finite() && factor > 0.0;
        let factor = if sensible { factor.clamp(SPEEDS.0, SPEEDS.1) } else { 1.0 };
        Self::Speed { factor, anchor: None }
    }

    fn wait_ms(&mut self, now_ms: u64, tick_ms: u64) -> u64 {
        let Self::Speed { factor, anchor } = self else { return 0 };
        let (began, first) = *anchor.get_or_insert((now_ms, tick_ms));
        let passed = tick_ms.saturating_sub(first) as f64 / *factor;
        let wait = (began + passed as u64).saturating_sub(now_ms);
        if wait > LONGEST_WAIT_MS || tick_ms < first {
            // Measured anew from here, or the silence would be waited for at the next tick.
            let wait = wait.min(LONGEST_WAIT_MS);
            *anchor = Some((now_ms + wait, tick_ms));
            return wait;
        }
        wait
    }
}

impl<I, E> ReplaySource<I>
where
    I: Iterator<Item = Result<Tick, E>>,
    E: Display,
{
    /// Over ticks in their order, such as a reader of a recording.
    pub const fn new(ticks: I, pace: Pace) -> Self {
        Self { ticks, ahead: None, pace }
    }

    /// Goes on with other ticks: after a jump to another place of the recording.
    pub fn jump(&mut self, ticks: I) {
        (self.ticks, self.ahead) = (ticks, None);
        self.set_pace(self.pace);
    }

    /// Changes the pace from here on.
    pub const fn set_pace(&mut self, pace: Pace) {
        self.pace = match pace {
            Pace::Speed { factor, .. } => Pace::Speed { factor, anchor: None },
            Pace::AsItComes => Pace::AsItComes,
        };
    }

    /// Time is measured anew from the next tick on: after it stood still.
    pub const fn reanchor(&mut self) {
        self.set_pace(self.pace);
    }

    /// When the next tick was recorded; `None` at the end. From a pipe this waits for it.
    pub fn peek_at(&mut self) -> Result<Option<Stamp>, SourceError> {
        if self.ahead.is_none() {
            self.ahead = self.read()?;
        }
        Ok(self.ahead.as_ref().map(Tick::at))
    }

    /// For how long from `now` the next tick is not due, in milliseconds; `None` at the end. Asked
    /// again after the wait it says 0.
    pub fn wait_ms(&mut self, now: Stamp) -> Result<Option<u64>, SourceError> {
        let Some(at) = self.peek_at()? else { return Ok(None) };
        Ok(Some(self.pace.wait_ms(now.boot_ms, at.boot_ms)))
    }

    fn read(&mut self) -> Result<Option<Tick>, SourceError> {
        self.ticks.next().transpose().map_err(|error| SourceError::Stream(error.to_string()))
    }
}

impl<I, E> Source for ReplaySource<I>
where
    I: Iterator<Item = Result<Tick, E>> + Send,
    E: Display,
{
    /// The next recorded tick, at once.
    fn next(&mut self, _now: Stamp, _wants: Wants) -> Result<Option<Tick>, SourceError> {
        match self.ahead.take() {
            Some(tick) => Ok(Some(tick)),
            None => self.read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Gap, GapCause};

    fn stamp(boot_ms: u64) -> Stamp {
        Stamp { boot_ms, wall_ms: 0 }
    }

    fn ticks(at: &[u64]) -> std::vec::IntoIter<Result<Tick, String>> {
        let gap = |at: &u64| Gap { from: stamp(*at), to: stamp(*at), cause: GapCause::Away };
        at.iter().map(|at| Ok(Tick::Gap(gap(at)))).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn ticks_come_in_order_and_say_when_they_are_due() {
        let mut source = ReplaySource::new(ticks(&[1000, 2000, 4000]), Pace::speed(2.0));
        assert_eq!(source.wait_ms(stamp(50)), Ok(Some(0)));
        assert_eq!(source.peek_at(), Ok(Some(stamp(1000))));
        assert!(source.next(stamp(50), Wants::default()).unwrap().is_some());
        assert_eq!(source.wait_ms(stamp(50)), Ok(Some(500)));
        assert_eq!(source.wait_ms(stamp(550)), Ok(Some(0)));
        source.next(stamp(550), Wants::default()).unwrap();
        assert_eq!(source.wait_ms(stamp(550)), Ok(Some(1000)));
        source.next(stamp(1550), Wants::default()).unwrap();
        assert_eq!(source.wait_ms(stamp(1550)), Ok(None));
        assert_eq!(source.next(stamp(1550), Wants::default()), Ok(None));
    }

    #[test]
    fn a_long_silence_is_cut_short_once() {
        let mut source = ReplaySource::new(ticks(&[0, 3_600_000, 3_601_000]), Pace::speed(1.0));
        source.wait_ms(stamp(0)).unwrap();
        source.next(stamp(0), Wants::default()).unwrap();
        assert_eq!(source.wait_ms(stamp(0)), Ok(Some(LONGEST_WAIT_MS)));
        assert_eq!(source.wait_ms(stamp(LONGEST_WAIT_MS)), Ok(Some(0)));
        source.next(stamp(LONGEST_WAIT_MS), Wants::default()).unwrap();
        assert_eq!(source.wait_ms(stamp(LONGEST_WAIT_MS)), Ok(Some(1000)));
    }

    #[test]
    fn a_pipe_is_never_waited_for_and_nonsense_is_no_speed() {
        let mut source = ReplaySource::new(ticks(&[0, 9_000]), Pace::AsItComes);
        source.next(stamp(0), Wants::default()).unwrap();
        assert_eq!(source.wait_ms(stamp(0)), Ok(Some(0)));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Pace::speed(bad), Pace::speed(1.0));
        }
    }

    #[test]
    fn a_broken_stream_says_so() {
        let broken = vec![Err::<Tick, _>("no space")].into_iter();
        let mut source = ReplaySource::new(broken, Pace::AsItComes);
        let error = source.next(stamp(0), Wants::default()).unwrap_err();
        assert_eq!(error, SourceError::Stream("no space".to_owned()));
    }
}
