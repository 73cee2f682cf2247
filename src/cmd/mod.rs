//! One file per command.

pub mod explain;
pub mod fixes;
