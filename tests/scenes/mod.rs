//! The machines that the screens are drawn of.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod build;
mod machines;
mod texts;

pub use build::*;
pub use machines::*;
pub use texts::*;
