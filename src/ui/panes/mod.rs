//! The parts of the screen, one file each.

pub mod charts;
pub mod detail;
pub mod fixes;
pub mod footer;
pub mod gpus;
pub mod header;
pub mod help;
pub mod hosts;
pub mod kill;
pub mod nogpu;
mod past;
pub mod table;
pub mod tabs;
pub mod text;
pub mod timeline;
pub mod workload;

use super::app::{App, Context};
use super::rows::Row;
use crate::analyze::Holder;

/// What is to be drawn.
pub struct Scene<'a> {
    /// What the user has chosen.
    pub app: &'a App,
    /// What there is.
    pub context: Context<'a>,
    /// The rows of the table.
    pub rows: Vec<Row<'a>>,
    /// Which of them is selected.
    pub at: usize,
}

impl<'a> Scene<'a> {
    /// Of this state and moment.
    pub fn new(app: &'a App, context: Context<'a>) -> Self {
        let rows = app.rows(context.view);
        let at = app.selected_in(&rows);
        Self { app, context, rows, at }
    }

    /// The selected row.
    pub fn row(&self) -> Option<&Row<'a>> {
        self.rows.get(self.at)
    }

    /// The selected process.
    pub fn holder(&self) -> Option<&'a Holder> {
        self.app.subject_of_page(self.context.view, &self.rows)
    }
}
