//! Arguments, settings and generated documents.

pub mod args;
pub mod config;
pub mod dispatch;
pub mod settings;
mod tools;

// What the program says of itself, and the log.
mod about;
pub mod entry;
pub mod generate;
pub mod help;
mod man;
