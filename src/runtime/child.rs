//! Starting a process under a signal mask, and taking over a descriptor by its number: the two
//! places of `run` that the standard library has no safe way for.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::sys::signal::SigSet;
use nix::unistd::{Pid, getpid, setpgid};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{WaitOptions, waitpid};

/// Starts the command with `mask` as its blocked signals, whatever this process blocks. With a
/// terminal, which must be the controlling one, it leads a group of its own that has the terminal
/// before its first instruction.
///
/// # Errors
/// Where it cannot be started; of the system's numbers, `ENOENT` means that there is no such
/// command, `EACCES` that it is no program.
pub fn spawn(command: &mut Command, mask: SigSet, terminal: Option<OwnedFd>) -> io::Result<Child> {
    let prepare = move || {
        if let Some(terminal) = &terminal {
            setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
            // TTOU is blocked here: this group is not the terminal's yet.
            nix::unistd::tcsetpgrp(terminal, getpid())?;
        }
        mask.thread_set_mask()?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes four system calls, all of which POSIX lists
    // as async-signal-safe; it allocates nothing, takes no lock and cannot panic.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

/// What has become of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing that has not been told.
    Nothing,
    /// This signal has stopped it.
    Stopped(i32),
    /// It has ended with this code, and is reaped.
    Exited(i32),
    /// This signal has ended it, and it is reaped.
    Killed(i32),
    /// It has ended, and the system does not tell how: CHLD was ignored from the start.
    Lost,
}

/// Asks, without waiting.
pub fn change(pid: i32) -> Change {
    let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
    loop {
        match waitpid(rustix::process::Pid::from_raw(pid), options) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Change::Lost,
            Ok(None) => return Change::Nothing,
            Ok(Some((_, status))) => {
                let stopped = status.stopping_signal().map(Change::Stopped);
                let killed = || status.terminating_signal().map(Change::Killed);
                let exited = || status.exit_status().map(Change::Exited);
                return stopped.or_else(killed).or_else(exited).unwrap_or(Change::Nothing);
            }
        }
    }
}

/// Takes over an open descriptor that the parent named on the command line; it goes no further.
///
/// # Errors
/// Where it is a standard stream, or not open.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: called once, at the start of a program that has opened nothing by itself: nobody else
    // owns the number. That it is open at all is checked before it is used.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    match fcntl_getfd(&fd).and_then(|flags| fcntl_setfd(&fd, flags | FdFlags::CLOEXEC)) {
        Ok(()) => Ok(fd),
        Err(error) => {
            std::mem::forget(fd);
            Err(error.into())
        }
    }
}
