//! One file per command.

use std::process::ExitCode;

/// How a command ends; documented in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Fine.
    Fine,
    /// There are findings, or something does not fit.
    Findings,
    /// Wrong usage or bad input.
    Usage,
    /// No driver, or no GPU.
    NoDriver,
    /// The driver does not answer.
    Stalled,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    /// As the number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Findings => 1,
            Self::Usage => 2,
            Self::NoDriver => 3,
            Self::Stalled => 4,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
