//! What follows from the ticks. Pure: the same history gives the same view, live and in replay.

mod build;
mod causes;
mod fragment;
mod freshness;
mod growth;
mod holders;
mod ledger;
mod past;
mod scene;
mod verdict;
mod view;

pub mod select;

pub use verdict::{Effect, TRAPS, Trap};
pub use view::*;
