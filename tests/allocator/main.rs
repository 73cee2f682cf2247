//! The allocator reader against recorded memory, a stand-in process and hostile memory.

mod images;
