//! The process that makes the driver calls. It ends with its parent: at the end of its standard
//! input, and by the kernel's hand where it cannot see that.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::wire::{self, Call, Reply, Request};
use crate::runtime::clock;
use crate::sample::Tick;
use crate::source::{Progress, Source};

/// A call that takes longer is reported, in milliseconds.
const LONG_MS: u64 = 200;
/// How often that is looked at.
const WATCH: Duration = Duration::from_millis(100);

/// Answers requests until its parent, `parent`, is gone.
///
/// # Errors
/// Where the parent cannot be followed, or the pipe fails.
pub fn run(parent: i32, progress: &Arc<Progress>, mut source: impl Source) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(Pid::as_raw_nonzero).map(std::num::NonZero::get) != Some(parent) {
        // It went before the line above.
        return Ok(());
    }
    // A program that is started by `/proc/self/exe` would be called `exe` in every list.
    let _ = std::fs::write("/proc/self/comm", "vramlens");
    let out = Arc::new(Mutex::new(io::stdout()));
    let (teller_out, teller_progress) = (Arc::clone(&out), Arc::clone(progress));
    std::thread::Builder::new()
        .name("teller".to_owned())
        .spawn(move || tell(&teller_progress, &teller_out))?;
    let mut input = io::stdin().lock();
    while let Some(request) = wire::read::<Request>(&mut input)? {
        if request.wake {
            progress.wake();
        }
        let reply = match source.next(clock::now(), request.wants()) {
            Ok(Some(Tick::Gpus(tick))) => Reply::Gpus(tick),
            Ok(_) => break,
            Err(error) => Reply::Failed(error.into()),
        };
        wire::write(&mut *out.lock().unwrap_or_else(PoisonError::into_inner), &reply)?;
    }
    Ok(())
}

/// Names a call that takes long, once.
fn tell(progress: &Progress, out: &Mutex<io::Stdout>) {
    let mut told = None;
    loop {
        std::thread::sleep(WATCH);
        let call = progress
            .current()
            .filter(|call| clock::now().boot_ms.saturating_sub(call.since_boot_ms) >= LONG_MS);
        if let Some(call) = call.filter(|call| told.as_ref() != Some(call)) {
            let message = Reply::Call(Call::from(&call));
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            if wire::write(&mut *out, &message).is_err() {
                return;
            }
            told = Some(call);
        }
    }
}
