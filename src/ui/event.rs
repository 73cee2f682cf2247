//! What comes in, and what is to be done outside.

use crossterm::event::{KeyEvent, MouseEvent};

use super::app::{Message, NoGpu, Settings, Wants};
use super::kill::{Dialog, Proof};
use crate::ids::ProcId;
use crate::sample::{KillEvent, KillOrder, KillPreset};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A key.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// The terminal has another size.
    Resize,
    /// Text from the clipboard. Hostile.
    Paste(String),
    /// There is a new view.
    Tick,
    /// The plan of a kill that was asked for.
    Plan(Dialog),
    /// Something happened while an order was carried out.
    Kill(KillEvent),
    /// What came back of it.
    Proof(Proof),
    /// Something to say.
    Message(Message),
    /// A text to show: what `explain` found.
    Text {
        /// Its title.
        title: String,
        /// Its lines.
        lines: Vec<String>,
    },
    /// The settings were read again.
    Settings(Box<Settings>),
    /// No GPU can be read.
    NoGpu(NoGpu),
    /// A GPU can be read again.
    Gpus,
}

/// Something to do outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// Draw, soon.
    Redraw,
    /// Forget what the terminal shows, and draw all of it.
    Repaint,
    /// Read these from now on.
    SetWants(Wants),
    /// Another refresh interval, in milliseconds.
    SetInterval(u64),
    /// Plan to end these; the answer is [`Event::Plan`].
    PlanKill {
        /// Whom.
        targets: Vec<ProcId>,
        /// How hard; `None` for what suits each.
        preset: Option<KillPreset>,
    },
    /// Plan to end all zombies; the answer is [`Event::Plan`].
    PlanZombies,
    /// Carry an order out.
    Kill(KillOrder),
    /// Send no further signal.
    CancelKill,
    /// Put into the clipboard.
    Copy(String),
    /// Show the recording that is built in.
    StartDemo,
    /// Show a recording.
    OpenRecording(String),
    /// Another moment.
    Seek(Seek),
    /// A recording plays on in another way.
    Play(PlayStep),
    /// Explain an error message; the answer is [`Event::Text`].
    Explain(String),
    /// Show this machine, by its place in the overview.
    SelectHost(usize),
    /// Try to reach the selected machine now.
    RetryHost,
    /// Write this moment to a file.
    SaveSnapshot,
    /// Look at GPUs that sleep too.
    Look,
    /// Read the configuration again; the answer is [`Event::Settings`].
    Reload,
    /// To the shell.
    Suspend,
}

/// Which moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// The newest, following.
    Live,
    /// In milliseconds since boot.
    At(u64),
}

/// How a recording plays on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayStep {
    /// It runs or is held as [`App::play`](super::App) says.
    AsSet,
    /// At once up to this moment of it, in milliseconds since boot.
    RunTo(u64),
    /// One sample.
    Sample,
}
