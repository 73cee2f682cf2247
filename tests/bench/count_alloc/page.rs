//! The file in which the counts of a program's processes stand: so many words of 8 bytes, a slot a
//! process. Each process maps it; whoever wants to know reads it.

use std::ffi::CStr;

/// The environment variable that names the file.
pub const VARIABLE: &CStr = c"VRAMLENS_COUNT_ALLOC";
/// The whole file, in words.
pub const WORDS: usize = 8192;
/// A slot, in words. The first one is nobody's: it has only [`LOST`].
pub const SLOT: usize = 8;

/// Whose slot it is; 0 is nobody's.
pub const PID: usize = 0;
/// Allocations so far.
pub const CALLS: usize = 1;
/// Bytes that they asked for; of a block that grew, what it grew by.
pub const BYTES: usize = 2;
/// Bytes that are allocated and not freed, as the C library rounds them.
pub const LIVE: usize = 3;

/// In the first slot: processes for which there was no slot.
pub const LOST: usize = 0;
