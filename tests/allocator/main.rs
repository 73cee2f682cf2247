//! The allocator reader against recorded memory, a stand-in process and hostile memory.

mod hostile;
mod images;
mod layouts;
mod process;
/// The host process uses more of it.
#[allow(dead_code)]
mod standin;
