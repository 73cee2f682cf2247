//! What the kernel says: processes, their files, users, cgroups; and the only place that signals.
//!
//! Everything is read below a [`Root`], so that a test can put a tree of its own there. Memory of
//! a GPU belongs to open device files, not to pids: the heart of this module is the search for
//! processes that have such a file open, by device number and not by name.

pub mod absence;
mod cgroup;
mod detail;
mod devices;
pub mod doctor;
mod entry;
mod environment;
mod facts;
mod fds;
mod identity;
mod listen;
mod models;
pub mod multiplexer;
pub mod power;
mod preset;
mod probe;
mod rest;
mod root;
mod scan;
pub mod signals;
mod slow;
mod stat;
mod status;
mod target;
mod users;

pub use devices::{DeviceRole, DeviceTable, StandIn};
pub use environment::ALLOWED as ALLOWED_ENVIRONMENT;
pub use identity::identify;
pub use preset::{KillContext, Patience};
pub use probe::{Options, Probe, Said};
pub use root::Root;
