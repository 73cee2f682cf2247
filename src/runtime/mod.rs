//! Threads, the event loop, the terminal, signals and clocks: the only part that waits.

pub mod alerts;
pub mod asking;
pub mod child;
pub mod clock;
pub mod conclude;
pub mod cost;
mod desk;
pub mod explain;
pub mod footprint;
pub mod gather;
mod happened;
pub mod idle;
pub mod input;
pub mod inspector;
pub mod isolate;
pub mod kill;
pub mod live;
pub mod looper;
pub mod models;
pub mod options;
pub mod panics;
pub mod parking;
pub mod player;
pub mod presence;
pub mod probing;
pub mod reload;
pub mod remote;
pub mod replaying;
pub mod rewind;
pub mod rights;
pub mod run_host;
pub mod run_job;
pub mod run_monitor;
pub mod run_pass;
pub mod run_seen;
pub mod run_start;
pub mod run_terminal;
pub mod run_tree;
pub mod run_watch;
pub mod sampler;
pub mod screen;
pub mod serve;
pub mod signals;
pub mod snapshot;

// Used by all of them.
pub mod journal;
