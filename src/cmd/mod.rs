//! One file per command.

pub mod fit;
