//! The terminal that a command is run on: the user's, and the one that stands between.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::getpgrp;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, tcsetwinsize,
};

/// A pseudo-terminal.
pub struct Pty {
    /// What is written to it comes out here.
    pub master: OwnedFd,
    /// What the command gets.
    pub slave: OwnedFd,
}

impl Pty {
    /// Opens one; it becomes nobody's controlling terminal by that.
    ///
    /// # Errors
    /// Where there are none to be had.
    pub fn open() -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        Ok(Self { master, slave })
    }

    /// One in the state of `outer`, as large as it is.
    ///
    /// # Errors
    /// Where there are none to be had, or `outer` is no terminal.
    pub fn like(outer: impl AsFd) -> io::Result<Self> {
        let pty = Self::open()?;
        tcsetattr(&pty.slave, OptionalActions::Now, &tcgetattr(&outer)?)?;
        copy_size(&outer, &pty.master);
        Ok(pty)
    }

    /// One that changes no byte: `outer` does what a terminal does with them.
    ///
    /// # Errors
    /// Where there are none to be had.
    pub fn transparent(outer: impl AsFd) -> io::Result<Self> {
        let pty = Self::open()?;
        let mut plain = tcgetattr(&pty.slave)?;
        plain.make_raw();
        tcsetattr(&pty.slave, OptionalActions::Now, &plain)?;
        copy_size(&outer, &pty.master);
        Ok(pty)
    }
}

/// Gives one terminal the size of another. One that tells none leaves it.
pub fn copy_size(from: impl AsFd, to: impl AsFd) {
    if let Ok(size) = tcgetwinsize(from) {
        let _ = tcsetwinsize(to, size);
    }
}

/// Whether this process's group has the terminal: may read from it and change it.
pub fn is_foreground(tty: impl AsFd) -> bool {
    tcgetpgrp(tty).is_ok_and(|group| group == getpgrp())
}

/// Whether this process's group has the terminal that is its standard input.
pub fn stdin_is_foreground() -> bool {
    let stdin = io::stdin();
    stdin.is_terminal() && is_foreground(stdin)
}

/// The user's terminal, in raw mode while the command has it.
pub struct Outer {
    tty: OwnedFd,
    before: Termios,
    raw: bool,
}

impl Outer {
    /// The terminal on standard input.
    ///
    /// # Errors
    /// Where it is none.
    pub fn open() -> io::Result<Self> {
        let tty = io::stdin().as_fd().try_clone_to_owned()?;
        let before = tcgetattr(&tty)?;
        Ok(Self { tty, before, raw: false })
    }

    /// Keys go to the command as they are.
    ///
    /// # Errors
    /// Where the terminal refuses.
    pub fn enter(&mut self) -> io::Result<()> {
        if !self.raw {
            self.before = tcgetattr(&self.tty)?;
            let mut wanted = self.before.clone();
            wanted.make_raw();
            tcsetattr(&self.tty, OptionalActions::Now, &wanted)?;
            self.raw = true;
        }
        Ok(())
    }

    /// The terminal as it was. In the background it is somebody else's and is left alone.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.raw) && is_foreground(&self.tty) {
            let _ = tcsetattr(&self.tty, OptionalActions::Now, &self.before);
        }
    }

    /// Whether this process may read from it.
    pub fn is_foreground(&self) -> bool {
        is_foreground(&self.tty)
    }

    /// Gives `master` its size.
    pub fn copy_size(&self, master: impl AsFd) {
        copy_size(&self.tty, master);
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        self.leave();
    }
}
