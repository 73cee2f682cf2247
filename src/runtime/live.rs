//! What the loop owns: the history, the view made of it, the state of the screen, and where ticks
//! come from.

mod earlier;
mod feed;
mod hosts;
mod pair;
mod told;

use std::io;

use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::analyze::timeline::Timeline;
use crate::analyze::{Moment, View, select};
use crate::history::History;
use crate::ids::Stamp;
use crate::rules::{self, Finding};
use crate::runtime::clock;
use crate::runtime::conclude::Conclusions;
use crate::runtime::cost::{Counts, Meter};
use crate::runtime::idle::Rhythm;
use crate::runtime::kill::Killing;
use crate::runtime::models::Models;
use crate::runtime::options::{Options, absent, blank};
use crate::runtime::remote::fleet::Fleet;
use crate::runtime::replaying::{Foreseen, Replaying, Rewound};
use crate::runtime::sampler::Sampled;
use crate::sample::{Gap, GapCause, Tick};
use crate::source::SourceError;
use crate::ui::{self, App, Position};

pub use feed::{DEMO, From};
use feed::{Feed, open};
use pair::Pair;

/// Something that another thread found out.
#[derive(Debug)]
pub enum Answer {
    /// Why there is no GPU.
    NoGpu(crate::sample::Absence),
    /// Something to say.
    Message(ui::Message),
    /// The settings, read again, or what is wrong with them.
    Settings(crate::runtime::reload::Outcome),
    /// What is in the rest of a recording.
    Foreseen(Box<Foreseen>),
    /// Whether anybody is attached to the multiplexer, which has changed.
    Attached(bool),
    /// An earlier moment of a recording.
    Rewound(Rewound),
}

/// The state of a session.
pub struct Live {
    /// What the user has chosen.
    pub app: App,
    /// What was seen.
    pub history: History,
    /// What is shown.
    pub view: View,
    /// What should be known about it.
    pub findings: Vec<Finding>,
    /// Arrivals from the source.
    pub samples: Receiver<Sampled>,
    /// Arrivals from the inspector; never one in replay.
    pub facts: Receiver<Tick>,
    /// Answers of other threads.
    pub answers: Receiver<Answer>,
    /// Headers of the models that run.
    pub models: Models,
    /// An order that is carried out.
    pub killing: Option<Killing>,
    /// The machines, where there are several.
    pub fleet: Option<Fleet>,
    /// For answers.
    pub answer_to: Sender<Answer>,
    /// What happened when.
    pub timeline: Timeline,
    /// The recording that is played.
    pub replaying: Replaying,
    options: Options,
    from: From,
    feed: Feed,
    now: Stamp,
    seen_gpus: bool,
    stale: bool,
    conclusions: Conclusions,
    held: Option<earlier::Held>,
    pub(super) rhythm: Rhythm,
    /// What need not wake the loop.
    pub pair: Pair,
    /// What is shown of a source that hangs, until it answers again.
    complaint: Option<String>,
    /// What is said of a GPU that was asked for and is not there, until it is.
    nowhere: Option<String>,
    /// Whether the newest of a recording is a place that is damaged, and whether that was said once.
    broken: (bool, bool),
    meter: Meter,
}

impl Live {
    /// Opens a session.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn open(mut app: App, options: Options, from: From) -> io::Result<Self> {
        let (answer_to, answers) = mpsc::channel(16);
        let replaying = Replaying::begin(&from, &answer_to);
        let (feed, samples, facts) = open(&options, &from, &replaying.remote)?;
        app.play = from.play();
        let fleet = match &from {
            From::Hosts(setup) => Some(Fleet::open(setup, &options)?),
            _ => None,
        };
        let history = History::new();
        let moment = blank(clock::now(), options.interval_ms);
        let view = View::build(&history, &moment);
        let now = clock::now();
        Ok(Self {
            app,
            history,
            view,
            findings: Vec::new(),
            samples,
            facts,
            answers,
            models: Models::none(),
            killing: None,
            fleet,
            answer_to,
            timeline: Timeline::new(),
            replaying,
            options,
            from,
            feed,
            now,
            seen_gpus: false,
            stale: false,
            conclusions: Conclusions::default(),
            held: None,
            rhythm: Rhythm::default(),
            pair: Pair::default(),
            complaint: None,
            nowhere: None,
            broken: (false, false),
            meter: Meter::default(),
        })
    }

    /// Opens another source; what was seen so far is forgotten.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn reopen(&mut self, from: From) -> io::Result<()> {
        self.replaying = Replaying::begin(&from, &self.answer_to);
        let opened = open(&self.options, &from, &self.replaying.remote)?;
        (self.feed, self.samples, self.facts) = opened;
        let speed = self.app.play.map(|play| play.speed);
        self.app.play = from.play();
        if let (Some(play), Some(speed)) = (&mut self.app.play, speed) {
            play.speed = speed;
        }
        (self.from, self.fleet) = (from, None);
        (self.history, self.timeline) = (History::new(), Timeline::new());
        (self.conclusions, self.held) = (Conclusions::default(), None);
        self.seen_gpus = false;
        self.broken = (false, false);
        self.stale = true;
        (self.app.position, self.app.heading_ms) = (Position::Live, None);
        self.play(ui::PlayStep::AsSet);
        Ok(())
    }

    /// The number of the GPU that the view is narrowed to.
    pub fn scope_index(&self) -> Option<crate::ids::GpuIndex> {
        let scope = self.app.scope.as_ref()?;
        self.view.gpus.iter().find(|gpu| gpu.sample.uuid == *scope).map(|gpu| gpu.sample.index)
    }

    /// Whether the ticks are of the past.
    pub const fn is_replay(&self) -> bool {
        matches!(self.feed, Feed::Recording)
    }

    /// Takes a tick.
    pub fn push(&mut self, tick: Tick) {
        if let (Tick::Gpus(gpus), Feed::Driver { .. }) = (&tick, &self.feed) {
            self.pair.gpus();
            self.seen_gpus |= !gpus.gpus.is_empty();
            let shown = self.app.message.as_ref().map(|message| &message.text);
            if self.complaint.is_some() && shown == self.complaint.as_ref() {
                self.app.message = None;
            }
            self.complaint = None;
        }
        self.seen_gpus |= self.is_replay();
        if let Some(text) = crate::runtime::journal::complaint() {
            self.app.message = Some(ui::Message { text, error: true });
        }
        let at = tick.at();
        if self.is_replay() {
            let damaged = |gap: &Gap| gap.cause == GapCause::Damaged;
            self.broken.0 = matches!(&tick, Tick::Gap(gap) if damaged(gap));
            if self.broken.0 && !std::mem::replace(&mut self.broken.1, true) {
                self.app.say("the recording is damaged: what is lost is left out".to_owned());
            }
        }
        self.history.take(tick);
        if self.is_replay() {
            self.now = self.history.latest().unwrap_or(at);
        }
        self.timeline.follow(&self.history);
        // What is shown while paused does not change.
        self.stale |= !self.is_paused();
    }

    /// The source failed: with nothing seen so far the reason fills the screen, otherwise it is a
    /// line.
    pub fn failed(&mut self, error: &SourceError) {
        // Nothing is said of GPUs where only the process that asks, or a recording, has failed.
        let elsewhere =
            matches!(error, SourceError::Hangs(_) | SourceError::Died(_) | SourceError::Stream(_));
        if self.seen_gpus || elsewhere {
            // That one has ended stays true when another answers.
            let hangs = matches!(error, SourceError::Hangs(_));
            self.complaint = hangs.then(|| error.to_string());
            self.app.message = Some(ui::Message { text: error.to_string(), error: true });
            self.stale = true;
            return;
        }
        let (to, error) = (self.answer_to.clone(), error.clone());
        let library = self.options.library_name().to_owned();
        // It reads files, which can hang where /proc or /sys does.
        let _ = std::thread::Builder::new().name("absence".to_owned()).spawn(move || {
            let _ = to.blocking_send(Answer::NoGpu(absent(&error, &library)));
        });
    }

    /// The recording has ended.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn ended(&mut self) -> io::Result<()> {
        match &self.from {
            // One that was asked to hold does not begin anew.
            From::Demo if self.app.play.is_none_or(|play| !play.paused) => self.reopen(From::Demo),
            From::Demo | From::File(..) => {
                let (keys, look) = (&self.app.settings.keys, &self.app.settings.look);
                let back = keys.label(ui::action::Action::Back, look.glyphs.ascii);
                let how =
                    if self.broken.0 { "breaks off, and was not closed" } else { "ends here" };
                self.app.say(format!("the recording {how}: {back} goes back in it"));
                Ok(())
            }
            From::Driver | From::Hosts(_) => Ok(()),
        }
    }

    /// Makes the view of now, where something has changed since the last one.
    pub fn rebuild(&mut self) {
        if !self.stale {
            return self.show_hosts();
        }
        self.stale = false;
        if self.shows_earlier() {
            return self.sum_up_hosts();
        }
        // The last one goes first: what it held is what the next one needs.
        self.view.holders = Vec::new();
        self.view.gpus = Vec::new();
        self.view = self.built();
        crate::runtime::journal::look(&self.view);
        self.narrow();
        if matches!(self.feed, Feed::Driver { .. }) {
            self.models.complete(&mut self.view);
        }
        let wanted = self.app.wanted_size;
        if self.is_replay() {
            // The same moment gives the same, whichever was shown before.
            self.conclusions.anew();
        }
        self.conclusions.rules(&self.view, wanted, &mut self.findings);
        self.app.fit = wanted.and_then(|w| rules::closest(&self.view, w, &self.findings));
        self.sum_up_hosts();
    }

    /// Leaves the GPUs that were asked for. Of one that is not there is said so, for as long as it is
    /// not: it may come back, so the view goes on.
    fn narrow(&mut self) {
        let nowhere = select::nowhere(&self.view, &self.options.gpus);
        select::keep(&mut self.view, &self.options.gpus);
        let shown = self.app.message.as_ref().map(|message| &message.text);
        if shown.is_none() || shown == self.nowhere.as_ref() {
            self.app.message = nowhere.clone().map(|text| ui::Message { text, error: true });
        }
        self.nowhere = nowhere;
    }

    /// What a pasted error means. The request that failed is from then on what is wanted.
    pub fn explain(&mut self, text: &str) -> (String, Vec<String>) {
        let explained = crate::runtime::explain::explained(text, &self.view);
        if let Some(wanted) = explained.wanted {
            self.app.wanted_size = Some(wanted);
            self.app.wanted_by_error = true;
            self.options.request = Some(wanted.need);
            self.stale = true;
        }
        (explained.title, explained.lines)
    }

    /// That figures have aged although nothing arrived.
    pub const fn age(&mut self) {
        self.stale = true;
    }

    fn moment(&self) -> Moment {
        if let Some(moment) = self.host_moment() {
            return moment;
        }
        let live = blank(clock::now(), self.options.interval_ms);
        let at_boot_ms = match self.app.position {
            Position::Live => None,
            Position::At(at) => Some(at),
        };
        let (in_flight, dropped_ticks) = match &self.feed {
            Feed::Driver { sampler, .. } => (sampler.progress.current(), sampler.dropped()),
            Feed::Recording | Feed::Hosts => (None, 0),
        };
        Moment {
            now: if self.is_replay() { self.now } else { live.now },
            at_boot_ms,
            replay: self.is_replay(),
            in_flight: in_flight.map(|c| (c.call.to_owned(), c.gpu, c.since_boot_ms)),
            dropped_ticks,
            idle_after_ms: self.options.idle_after_ms,
            request: self.options.request,
            ..live
        }
    }

    /// Measures what this program costs, while that is shown.
    pub fn measure(&mut self, written_bytes: u64) {
        if !self.app.shows_cost {
            self.app.cost = None;
            return;
        }
        let apart = match &self.feed {
            Feed::Driver { sampler, .. } => sampler.progress.apart(),
            Feed::Recording | Feed::Hosts => None,
        };
        let looks = self.history.gpu_tick().map_or(0, |tick| tick.seq + 1);
        let counts = Counts { written_bytes, looks, apart };
        self.app.cost = Some(self.meter.read(&self.view, counts));
    }

    /// What it was told from outside.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Tells it something else. Threads that run keep what they were begun with.
    pub fn set_options(&mut self, options: Options) {
        self.options = options;
        self.stale = true;
    }
}
