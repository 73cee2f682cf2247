//! What the kernel says: processes, their files, users, cgroups; and the only place that signals.

pub mod absence;
