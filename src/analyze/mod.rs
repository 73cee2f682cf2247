//! What follows from the ticks. Pure: the same history gives the same view, live and in replay.

pub mod alerts;
mod build;
mod causes;
mod fragment;
mod freshness;
mod growth;
mod holders;
mod job;
mod judged;
mod kept;
mod kill_freed;
mod kill_plan;
mod kill_proof;
mod kill_row;
mod ledger;
pub mod moment;
mod past;
mod scene;
mod served;
pub mod timeline;
mod verdict;
mod view;
pub mod workload;
pub mod xid;

pub mod select;

pub use judged::Judged;
pub use kept::Kept;
pub use kill_freed::Freed;
pub use kill_plan::{ExpectedBytes, KillPlan, PlanRow, Refusal, freed_by, plan, zombies};
pub use kill_proof::{KillProof, OrderEnd, Remaining, Silent, kill_proof, proven};
pub use ledger::{Entry, Ledger};
pub use verdict::{Effect, TRAPS, Trap, shows_screen};
pub use view::*;
