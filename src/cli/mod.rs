//! Arguments, settings and generated documents.

pub mod args;
pub mod config;
pub mod dispatch;
pub mod hosts;
pub mod settings;
mod tools;
