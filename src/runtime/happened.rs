//! What the loop waits for.

use crate::runtime::input::Input;
use crate::runtime::live::Answer;
use crate::runtime::sampler::Sampled;
use crate::runtime::screen::Drained;
use crate::sample::{KillEvent, Tick};

/// Everything that can happen.
pub(super) enum Happened {
    Input(Option<Input>),
    Sampled(Option<Sampled>),
    Facts(Option<Tick>),
    Drained(Option<Drained>),
    Kill(Option<KillEvent>),
    /// Something has come from the machines of the fleet.
    Hosts,
    Answer(Option<Answer>),
    Model,
    Clock,
}
