//! Stands in for the driver library.
