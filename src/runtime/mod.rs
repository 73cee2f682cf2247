//! Threads, the event loop, the terminal, signals and clocks: the only part that waits.

pub mod clock;
pub mod explain;
pub mod gather;
pub mod input;
pub mod inspector;
pub mod kill;
pub mod live;
pub mod looper;
pub mod options;
pub mod player;
pub mod probing;
pub mod sampler;
pub mod screen;
pub mod signals;
pub mod snapshot;
