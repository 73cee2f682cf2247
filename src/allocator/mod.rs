//! Reading a PyTorch process's caching allocator from outside.
//!
//! Nothing is asked of the process and nothing is done to it: `/proc/PID/maps` says where
//! `libc10_cuda.so` lies, its symbol table (in memory, so that neither a deleted file nor another
//! mount namespace matters) says where the allocator is, and `process_vm_readv` copies it. What
//! lies where is found by content, see [`layout`]; a layout that does not fit is refused.
//!
//! ```text
//! maps ─► elf (symbol) ─► locate (object, devices) ─► layout ─► device: counters, walk ─► blocks
//! ```
//!
//! Beside it: [`settings`] judges what the environment asks of an allocator, [`servers`] asks
//! inference servers on their own interface.

pub mod blocks;
pub mod device;
pub mod elf;
pub mod free;
pub mod gpu;
pub mod known;
pub mod layout;
pub mod locate;
pub mod maps;
pub mod memory;
pub mod notes;
mod reader;
pub mod servers;
pub mod settings;
pub mod stats;
pub mod view;
pub mod walk;

pub use memory::Limits;
pub use reader::{Ask, Reader};
