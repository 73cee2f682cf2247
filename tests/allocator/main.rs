//! The allocator reader against recorded memory, a stand-in process and hostile memory.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::string_slice)]

mod hostile;
mod images;
mod layouts;
mod process;
/// The host process uses more of it.
#[allow(dead_code)]
mod standin;
mod torch;
