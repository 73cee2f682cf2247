//! What follows from the ticks. Pure: the same history gives the same view, live and in replay.

mod view;
pub mod workload;

pub use view::*;
