//! `vramlens`: who holds the memory of an NVIDIA GPU, which of it is garbage, whether it is used or
//! only held, and what to do now.
//!
//! ```text
//!   Source (NVML | recording | pipe)          Probe (/proc, cgroups, allocator reader)
//!         │ GpuTick                                  │ ProcTick
//!         └──────────────► History (ring) ◄──────────┘
//!                               │
//!                      View::build(&History, now)          pure
//!                      ledger · verdicts · growth · fragmentation
//!                               │
//!                      rules::run(&View) → Findings         pure
//!                               │
//!           ┌─────────┬─────────┼──────────┬───────────┐
//!          ui       triage     json     metrics      run post-mortem
//! ```
//!
//! Lower modules never import higher ones; `tests/layering.rs` is the referee. Ticks are recorded,
//! not views, so live and replay share everything after the first arrow.

pub mod allocator;
pub mod analyze;
pub mod cli;
pub mod cmd;
pub mod fields;
pub mod history;
pub mod host;
pub mod ids;
pub mod model;
pub mod oom;
pub mod record;
pub mod report;
pub mod rules;
pub mod runtime;
pub mod sample;
pub mod source;
pub mod ui;
pub mod units;
