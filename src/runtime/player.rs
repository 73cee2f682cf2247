//! The thread that plays a recording: each tick when it is due, none lost. A [`Remote`] holds it,
//! changes its speed, and lets it run to a moment at once.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::runtime::clock;
use crate::runtime::desk::Desk;
use crate::runtime::sampler::Sampled;
use crate::sample::Tick;
use crate::source::replay::{Pace, ReplaySource};
use crate::source::{Source, SourceError, Wants};

/// Ticks in flight at the most; the player waits for the loop.
const IN_FLIGHT: usize = 64;

/// A tick that is behind another by more than this is not of its moment: recordings can be joined.
const MOMENT_MS: u64 = 1_000;

/// What is asked of a player. The newest wish counts.
#[derive(Debug, Default)]
struct Wish {
    /// Another speed, until it has been taken over.
    speed: Option<f64>,
    held: bool,
    /// Without waiting up to here, in recorded milliseconds since boot.
    run_to: Option<u64>,
    /// So many looks at the GPUs without waiting.
    samples: u32,
    closed: bool,
}

/// Tells a player how to go on. Dropped, the player ends.
#[derive(Debug, Default)]
pub struct Remote {
    desk: Arc<Desk<Wish>>,
}

impl Remote {
    /// Plays at this speed, or holds.
    pub fn set(&self, speed: f64, held: bool) {
        self.change(|wish| (wish.speed, wish.held) = (Some(speed), held));
    }

    /// Plays up to a moment without waiting, held or not.
    pub fn run_to(&self, boot_ms: u64) {
        self.change(|wish| wish.run_to = Some(boot_ms));
    }

    /// Plays on to the next look at the GPUs, held or not.
    pub fn sample(&self) {
        self.change(|wish| wish.samples = wish.samples.saturating_add(1));
    }

    fn change(&self, change: impl FnOnce(&mut Wish)) {
        self.desk.leave(change);
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.change(|wish| wish.closed = true);
    }
}

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
    start(pace, Arc::default(), open)
}

/// The same under a remote.
///
/// # Errors
/// Where no thread is to be had.
pub fn spawn_under<I, E>(
    remote: &Remote,
    speed: f64,
    open: impl FnOnce() -> Result<I, SourceError> + Send + 'static,
) -> io::Result<mpsc::Receiver<Sampled>>
where
    I: Iterator<Item = Result<Tick, E>> + Send + 'static,
    E: Display,
{
    start(Pace::speed(speed), Arc::clone(&remote.desk), open)
}

fn start<I, E>(
    pace: Pace,
    desk: Arc<Desk<Wish>>,
    open: impl FnOnce() -> Result<I, SourceError> + Send + 'static,
) -> io::Result<mpsc::Receiver<Sampled>>
where
    I: Iterator<Item = Result<Tick, E>> + Send + 'static,
    E: Display,
{
    let (ticks, ticks_in) = mpsc::channel(IN_FLIGHT);
    std::thread::Builder::new().name("player".to_owned()).stack_size(1 << 20).spawn(move || {
        let source = open().map(|open| ReplaySource::new(open, pace));
        let last = match source.and_then(|source| play(source, &desk, &ticks)) {
            Ok(()) => Sampled::End,
            Err(error) => Sampled::Failed(error),
        };
        let _ = ticks.blocking_send(last);
    })?;
    Ok(ticks_in)
}

/// What is to be done before the next tick.
enum Next {
    /// It is due.
    Give,
    /// Look again.
    Again,
    /// Nobody wants it.
    Leave,
}

fn play<I, E>(
    mut source: ReplaySource<I>,
    desk: &Desk<Wish>,
    to: &mpsc::Sender<Sampled>,
) -> Result<(), SourceError>
where
    I: Iterator<Item = Result<Tick, E>> + Send,
    E: Display,
{
    let mut given_ms = None;
    loop {
        match next(&mut source, desk, given_ms)? {
            Some(Next::Give) => {}
            Some(Next::Again) => continue,
            Some(Next::Leave) | None => return Ok(()),
        }
        let Some(tick) = source.next(clock::now(), Wants::default())? else { return Ok(()) };
        if matches!(tick, Tick::Gpus(_)) {
            let mut wish = desk.lock();
            wish.samples = wish.samples.saturating_sub(1);
        }
        given_ms = given_ms.max(Some(tick.at().boot_ms));
        if to.blocking_send(Sampled::Tick(Box::new(tick))).is_err() {
            return Ok(());
        }
    }
}

/// Waits as long as the tick ahead is not due; `None` at the end.
fn next<I, E>(
    source: &mut ReplaySource<I>,
    desk: &Desk<Wish>,
    given_ms: Option<u64>,
) -> Result<Option<Next>, SourceError>
where
    I: Iterator<Item = Result<Tick, E>>,
    E: Display,
{
    let Some(ahead) = source.peek_at()? else { return Ok(None) };
    let mut wish = desk.lock();
    if wish.closed {
        return Ok(Some(Next::Leave));
    }
    // A moment is all of its ticks: it is never held between two of them.
    let behind_ms = given_ms.and_then(|given_ms| given_ms.checked_sub(ahead.boot_ms));
    if behind_ms.is_some_and(|ms| ms < MOMENT_MS) {
        return Ok(Some(Next::Give));
    }
    if let Some(run_to) = wish.run_to {
        if ahead.boot_ms <= run_to {
            return Ok(Some(Next::Give));
        }
        wish.run_to = None;
        source.reanchor();
    }
    if wish.samples > 0 {
        source.reanchor();
        return Ok(Some(Next::Give));
    }
    if let Some(speed) = wish.speed.take() {
        source.set_pace(Pace::speed(speed));
    }
    if wish.held {
        drop(desk.changed.wait(wish));
        source.reanchor();
        return Ok(Some(Next::Again));
    }
    match source.wait_ms(clock::now())? {
        None => Ok(None),
        Some(0) => Ok(Some(Next::Give)),
        Some(wait_ms) => {
            drop(desk.changed.wait_timeout(wish, Duration::from_millis(wait_ms)));
            Ok(Some(Next::Again))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Stamp;
    use crate::sample::{Gap, GapCause};

    fn ticks(at: &[u64]) -> std::vec::IntoIter<Result<Tick, String>> {
        let stamp = |boot_ms| Stamp { boot_ms, wall_ms: 0 };
        let gap = |at: &u64| Gap { from: stamp(*at), to: stamp(*at), cause: GapCause::Away };
        at.iter().map(|at| Ok(Tick::Gap(gap(at)))).collect::<Vec<_>>().into_iter()
    }

    fn at(sampled: Option<Sampled>) -> Option<u64> {
        match sampled {
            Some(Sampled::Tick(tick)) => Some(tick.at().boot_ms),
            _ => None,
        }
    }

    #[test]
    fn a_held_player_runs_to_a_moment_and_no_further() {
        let remote = Remote::default();
        remote.set(1.0, true);
        remote.run_to(2_000_000);
        let all = ticks(&[1_000_000, 2_000_000, 3_000_000, 9_000_000]);
        let mut player = spawn_under(&remote, 1.0, move || Ok(all)).unwrap();
        assert_eq!(at(player.blocking_recv()), Some(1_000_000));
        assert_eq!(at(player.blocking_recv()), Some(2_000_000));
        assert!(player.try_recv().is_err(), "it holds");
        remote.run_to(u64::MAX);
        assert_eq!(at(player.blocking_recv()), Some(3_000_000));
        assert_eq!(at(player.blocking_recv()), Some(9_000_000));
        assert!(matches!(player.blocking_recv(), Some(Sampled::End)));
    }

    #[test]
    fn a_player_without_its_remote_ends() {
        let remote = Remote::default();
        remote.set(1.0, true);
        let mut player = spawn_under(&remote, 1.0, || Ok(ticks(&[1, 2]))).unwrap();
        drop(remote);
        assert!(matches!(player.blocking_recv(), Some(Sampled::End)));
    }
}
