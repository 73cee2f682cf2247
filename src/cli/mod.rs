//! Arguments, settings and generated documents.

mod about;
pub mod args;
pub mod config;
pub mod dispatch;
pub mod generate;
pub mod help;
mod man;
pub mod settings;
mod tools;
