//! Stands in for the driver's `libnvidia-ml.so.1` in tests: the same C functions, answering from a
//! scenario file that may change while they are called.
//!
//! The scenario is named by the environment variable `VRAMLENS_FAKE_NVML`, or lies beside the
//! library as `<library file>.toml`; `tests/scenarios/` has examples and `scenario.rs` every key.
//! With `count_calls = true` the number of calls of each function stands in `<library file>.calls`.
//! A scenario that cannot be read leaves the last good one in force and says why in
//! `<library file>.error`.
//!
//! A driver without some function is a copy of this library with that name blanked out, see
//! `tests/support/fake.rs`.

mod answer;
mod events;
mod exports;
mod lists;
mod live;
mod peers;
mod scenario;
mod state;
