//! Arguments, settings and generated documents.

pub mod args;
pub mod config;
pub mod dispatch;
pub mod errors;
pub mod hosts;
mod reload;
mod scope;
mod setting;
pub mod settings;
mod show;
mod terminal;
mod themes;
mod tools;
mod values;

// What the program says of itself, and the log.
mod about;
pub mod entry;
pub mod generate;
pub mod help;
mod man;
