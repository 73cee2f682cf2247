//! Running a monitor and counting what it costs.

pub mod allocations;
pub mod load;
pub mod measure;
pub mod table;
