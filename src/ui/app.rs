//! All state of the view. It holds what the user has chosen; what is shown comes with each call.

use std::collections::BTreeSet;

use ratatui::layout::Rect;

use super::action::{Action, KeyMap};
use super::charts::Charts;
use super::columns::Columns;
use super::dismissed::Dismissed;
use super::filter::Filter;
use super::kill::Dialog;
use super::look::Themes;
use super::rows::{Choice, Row, RowKey, Sort, Subject, build};
use super::theme::Look;
use super::time::{ChartForm, Play};
use crate::analyze::{Holder, View};
use crate::fields::{FieldId, OwnCost};
use crate::ids::GpuUuid;
use crate::rules::{Finding, Fit, Wanted};

/// What is set once and rarely changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Colours and characters.
    pub look: Look,
    /// The themes that can be chosen.
    pub themes: Themes,
    /// Which key does what.
    pub keys: KeyMap,
    /// The columns of the table.
    pub columns: Columns,
    /// Local time, in seconds east of UTC.
    pub utc_offset_s: i32,
    /// Refresh interval, in milliseconds.
    pub interval_ms: u64,
    /// Whether `z` asks first.
    pub confirm_kill: bool,
    /// The stretch of time in the charts, in milliseconds.
    pub chart_ms: u64,
    /// What charts are drawn with, where the terminal has both.
    pub chart: ChartForm,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            look: Look::new(true, false),
            themes: Themes::default(),
            keys: KeyMap::default(),
            columns: Columns::default(),
            utc_offset_s: 0,
            interval_ms: 1000,
            confirm_kill: true,
            chart_ms: 600_000,
            chart: ChartForm::default(),
        }
    }
}

/// What fills the screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Page {
    /// GPUs, processes, fixes.
    #[default]
    Main,
    /// One process.
    Detail(Tab),
    /// Every key.
    Help,
    /// Every fix, the selected one in full.
    Fixes,
    /// A text: what `explain` said.
    Text {
        /// Its title.
        title: String,
        /// Its lines. Hostile text.
        lines: Vec<String>,
    },
    /// No GPU can be read here.
    NoGpu(NoGpu),
}

/// The tabs of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tab {
    /// What it is, and why.
    #[default]
    Verdict,
    /// What its allocator says.
    Allocator,
    /// What it computes.
    Workload,
    /// How its memory moved.
    History,
    /// The variables that matter.
    Environment,
}

impl Tab {
    /// In their order.
    pub const ALL: [Self; 5] =
        [Self::Verdict, Self::Allocator, Self::Workload, Self::History, Self::Environment];

    /// Its name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Allocator => "allocator",
            Self::Workload => "workload",
            Self::History => "history",
            Self::Environment => "environment",
        }
    }

    /// The tab `by` further, round.
    #[must_use]
    pub fn step(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// What was found where a GPU was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NoGpu {
    /// What was looked for, and what was found.
    pub facts: Vec<(String, String)>,
    /// What to do.
    pub advice: String,
}

/// A line of text that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What for.
    pub kind: PromptKind,
    /// What stands there.
    pub text: String,
}

/// What is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// A filter; it applies while it is typed.
    Filter,
    /// An error message to explain.
    Explain,
    /// The name of a recording.
    Recording,
    /// A moment to go to.
    Time,
}

/// One line about something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What. Hostile text.
    pub text: String,
    /// Whether something failed.
    pub error: bool,
}

/// Where in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Position {
    /// At the newest tick, following.
    #[default]
    Live,
    /// Held at a moment, in milliseconds since boot.
    At(u64),
}

/// Something that can be clicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hit {
    /// Selects a row.
    Row(RowKey),
    /// Sorts.
    Column(FieldId),
    /// Presses a key.
    Do(Action),
    /// Chooses a GPU.
    Gpu(GpuUuid),
    /// Opens a tab.
    Tab(Tab),
    /// Selects a fix.
    Finding(usize),
    /// Shows a machine.
    Host(usize),
    /// Goes to a moment, in milliseconds since boot.
    Time(u64),
}

/// What the last frame showed where: `draw` gives it, the next click needs it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drawn {
    /// What can be clicked, the topmost last.
    pub hits: Vec<(Rect, Hit)>,
    /// Which row of the table was selected.
    pub selected: usize,
    /// The first row of the table that was shown.
    pub first_row: usize,
    /// How many rows fit.
    pub rows: usize,
    /// Lines of a text page that do not fit: as far as it can be scrolled.
    pub overflow: usize,
    /// Whether something slow to read was shown.
    pub wants: Wants,
}

/// What is shown and costs the driver time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Wants {
    /// Traffic on the bus.
    pub pcie: bool,
    /// Use of the multiprocessors by process.
    pub process_utilization: bool,
}

/// All state of the view.
#[derive(Debug, Default)]
pub struct App {
    /// Look, keys, interval.
    pub settings: Settings,
    /// The settings as they were last read, before any key changed them.
    pub loaded: Option<Box<Settings>>,
    /// What fills the screen.
    pub page: Page,
    /// The selected row; `None` for the first.
    pub selected: Option<RowKey>,
    /// Processes of this GPU only.
    pub scope: Option<GpuUuid>,
    /// The order of the rows.
    pub sort: Sort,
    /// Processes under their launchers.
    pub tree: bool,
    /// Which rows there are.
    pub filter: Filter,
    /// Marked rows.
    pub marks: BTreeSet<RowKey>,
    /// What is being typed.
    pub prompt: Option<Prompt>,
    /// A kill that is asked for or under way.
    pub kill: Option<Dialog>,
    /// Whether the plan under way is that of the key for all zombies.
    pub zombies_asked: bool,
    /// The choice of how hard, for `X`.
    pub choosing: bool,
    /// The last thing that happened.
    pub message: Option<Message>,
    /// Where in time.
    pub position: Position,
    /// The name of the recording that is shown. Hostile text.
    pub recording: Option<String>,
    /// The machines, where there are several.
    pub hosts: super::hosts::Hosts,
    /// How it plays.
    pub play: Option<Play>,
    /// The moment of the last jump: while it is on its way the next one counts from there.
    pub heading_ms: Option<u64>,
    /// Whether charts show who holds the memory rather than what of it is allocated.
    pub stacked: bool,
    /// The selected fix.
    pub finding: usize,
    /// What is wanted: by the command line, or the request of an error that was pasted.
    pub wanted_size: Option<Wanted>,
    /// Whether that is of an error.
    pub wanted_by_error: bool,
    /// Whether that fits, and after what.
    pub fit: Option<Fit>,
    /// Fixes that the user does not want to see again.
    pub dismissed: Dismissed,
    /// How far a text page is scrolled.
    pub scroll: usize,
    /// What the last frame showed.
    pub drawn: Drawn,
    /// What was last asked for.
    pub wanted: Wants,
    /// Whether the last line shows what this program costs.
    pub shows_cost: bool,
    /// What it costs; while it is shown.
    pub cost: Option<OwnCost>,
    /// This frame is the last one: nobody is attached to the terminal.
    pub unattended: bool,
}

impl App {
    /// With these settings, on the main page.
    pub fn new(settings: Settings) -> Self {
        Self { loaded: Some(Box::new(settings.clone())), settings, ..Self::default() }
    }

    /// The rows of the table now.
    pub fn rows<'v>(&self, view: &'v View) -> Vec<Row<'v>> {
        let choice = Choice {
            scope: self.scope.as_ref(),
            filter: &self.filter,
            sort: self.sort,
            tree: self.tree,
        };
        build(view, choice)
    }

    /// Which of the rows is selected; its neighbour where it is gone, the first before any choice.
    pub fn selected_in(&self, rows: &[Row<'_>]) -> usize {
        let Some(key) = &self.selected else { return 0 };
        let found = rows.iter().position(|row| row.is(key));
        found.unwrap_or_else(|| self.drawn.selected.min(rows.len().saturating_sub(1)))
    }

    /// The process that the page is about: in the detail the one that was opened, even where a
    /// filter hides its row, and nobody where it is gone; else that of the selected row.
    pub fn subject_of_page<'v>(&self, view: &'v View, rows: &[Row<'v>]) -> Option<&'v Holder> {
        if let (Page::Detail(_), Some(key)) = (&self.page, &self.selected) {
            return view.holders.iter().find(|holder| RowKey::is_of(key, holder));
        }
        match rows.get(self.selected_in(rows))?.subject {
            Subject::Holder(holder) => Some(holder),
            _ => None,
        }
    }

    /// The GPU that has the full panel: the chosen one, or that of the selected row.
    pub fn focus<'v>(&self, view: &'v View, selected: Option<&Row<'v>>) -> Option<&'v GpuUuid> {
        let known = |uuid: &GpuUuid| {
            view.gpus.iter().map(|gpu| &gpu.sample.uuid).find(|known| *known == uuid)
        };
        let of_row = || match selected?.subject {
            Subject::Holder(holder) => known(&holder.gpu),
            Subject::Unaccounted(gpu, _) => Some(&gpu.sample.uuid),
            Subject::Job(..) => None,
        };
        let first = || view.gpus.first().map(|gpu| &gpu.sample.uuid);
        self.scope.as_ref().and_then(known).or_else(of_row).or_else(first)
    }

    /// Whether an earlier moment is shown.
    pub fn is_earlier(&self) -> bool {
        self.position != Position::Live
    }

    /// Says something in the message line.
    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), error: false });
    }
}

/// What the screen is about at this moment.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the machine.
    pub view: &'a View,
    /// What was seen so far.
    pub history: &'a dyn Charts,
    /// What should be known, as the rules order it.
    pub findings: &'a [Finding],
}
