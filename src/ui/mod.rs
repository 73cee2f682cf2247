//! The live view: state, keys, panes. Pure: an event and a view go in, a new state, effects and a
//! frame come out.

pub mod action;
mod app;
mod chart;
mod charts;
pub mod columns;
mod commands;
mod dismissed;
mod doc;
mod draw;
mod event;
pub mod filter;
mod gpu_words;
pub mod grid;
pub mod hosts;
mod ink;
mod keymap;
pub mod kill;
mod ledger;
mod look;
mod mouse;
mod packed;
mod paint;
mod panes;
pub mod picture;
pub mod rows;
pub mod theme;
pub mod time;
mod update;
mod words;

pub use app::{
    App, Context, Drawn, Hit, Message, NoGpu, Page, Position, Prompt, PromptKind, Settings, Tab,
    Wants,
};
pub use charts::Charts;
pub use draw::{draw, draw_on};
pub use event::{Effect, Event, PlayStep, Seek};
pub use look::Themes;
pub use update::update;
