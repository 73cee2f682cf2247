//! The thread that plays a recording: each tick when it is due, none lost.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::runtime::clock;
use crate::runtime::sampler::Sampled;
use crate::sample::Tick;
use crate::source::replay::{Pace, ReplaySource};
use crate::source::{Source, SourceError, Wants};

/// Ticks in flight at the most; the player waits for the loop.
const IN_FLIGHT: usize = 64;

/// Starts to play what `open` gives, which runs on the new thread.
///
/// # Errors
/// Where no thread is to be had.
pub fn spawn<I, E>(
    pace: Pace,
    open: impl FnOnce() -> Result<I, SourceError> + Send + 'static,
) -> io::Result<mpsc::Receiver<Sampled>>
where
    I: Iterator<Item = Result<Tick, E>> + Send + 'static,
    E: Display,
{
    let (ticks, ticks_in) = mpsc::channel(IN_FLIGHT);
    std::thread::Builder::new().name("player".to_owned()).stack_size(1 << 20).spawn(move || {
        let last = match open().and_then(|open| play(ReplaySource::new(open, pace), &ticks)) {
            Ok(()) => Sampled::End,
            Err(error) => Sampled::Failed(error),
        };
        let _ = ticks.blocking_send(last);
    })?;
    Ok(ticks_in)
}

fn play<I, E>(mut source: ReplaySource<I>, to: &mpsc::Sender<Sampled>) -> Result<(), SourceError>
where
    I: Iterator<Item = Result<Tick, E>> + Send,
    E: Display,
{
    while let Some(wait_ms) = source.wait_ms(clock::now())? {
        if wait_ms > 0 {
            std::thread::sleep(Duration::from_millis(wait_ms));
        }
        let Some(tick) = source.next(clock::now(), Wants::default())? else { break };
        if to.blocking_send(Sampled::Tick(Box::new(tick))).is_err() {
            break;
        }
    }
    Ok(())
}
