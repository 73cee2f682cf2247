//! One machine of a fleet: its link, its clock, what was seen of it.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;

use crate::analyze::timeline::Timeline;
use crate::analyze::{Moment, View, select};
use crate::history::History;
use crate::ids::Stamp;
use crate::record::{Answer, Header, Note, Pulse};
use crate::rules::{self, Finding, Severity};
use crate::runtime::clock;
use crate::runtime::options::{Options, blank};
use crate::runtime::remote::inbox::{Came, LinkState};
use crate::runtime::remote::link::Link;
use crate::runtime::remote::{Host, Setup};
use crate::sample::{Gap, GapCause, Reading, Tick};
use crate::ui::Position;
use crate::ui::hosts::{HostLine, HostState};

/// Figures of a machine that is not selected are made of its ticks this often, in milliseconds.
const OVERVIEW_MS: u64 = 2_000;
/// Without anything for this long, and than three intervals, a link is silent. Milliseconds.
const SILENT_MS: u64 = 5_000;
/// A far clock is believed to lag no further for it, a sample. Milliseconds.
const DRIFT_MS: i64 = 2;
/// What a machine's clock went back by where it was started anew and does not say so. Milliseconds.
const REBOOT_MS: u64 = 60_000;

/// What was seen of a machine.
pub struct Seen {
    /// All.
    pub history: History,
    /// What happened when.
    pub timeline: Timeline,
    /// The state that was last made of it.
    pub view: View,
    /// What should be known about it.
    pub findings: Vec<Finding>,
}

impl Seen {
    fn nothing(options: &Options) -> Self {
        let history = History::new();
        let view = View::build(&history, &blank(clock::now(), options.interval_ms));
        Self { history, timeline: Timeline::new(), view, findings: Vec::new() }
    }
}

/// A machine.
pub struct Machine {
    /// Which.
    pub host: Host,
    /// What was seen of it; of the selected one the loop has this.
    pub seen: Seen,
    /// The way to it.
    pub link: Link,
    state: Way,
    boot_id: Option<String>,
    /// What its clocks are ahead of ours, in milliseconds: since boot, and of the wall.
    ahead_ms: Option<(i64, i64)>,
    last: Option<Stamp>,
    last_gpus: Option<Stamp>,
    pulse: Option<Pulse>,
    heard_ms: u64,
    gap_due: bool,
    looks: (u32, u32),
    line: HostLine,
    made_ms: Option<u64>,
    stale: bool,
    /// Which GPU was asked for that it does not have, in words.
    pub nowhere: Option<String>,
}

/// How the way to it is.
#[derive(Debug, Clone)]
enum Way {
    Connecting,
    Open { older: bool },
    Away { since_ms: u64, why: String, retry_at: Option<Instant> },
}

impl Machine {
    /// Begins to connect.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn open(
        host: Host,
        setup: &Arc<Setup>,
        options: &Options,
        bell: &Arc<Notify>,
    ) -> std::io::Result<Self> {
        let link = Link::open(host.clone(), Arc::clone(setup), Arc::clone(bell))?;
        let line = HostLine { name: host.name().to_owned(), ..HostLine::default() };
        Ok(Self {
            host,
            seen: Seen::nothing(options),
            link,
            state: Way::Connecting,
            boot_id: None,
            ahead_ms: None,
            last: None,
            last_gpus: None,
            pulse: None,
            heard_ms: 0,
            gap_due: false,
            looks: (0, 0),
            line,
            made_ms: None,
            stale: true,
            nowhere: None,
        })
    }

    /// Takes what came; `history` is this machine's. Gives an answer that is to be passed on.
    pub fn take(&mut self, came: Came, history: &mut History) -> Option<Answer> {
        self.heard_ms = clock::now().boot_ms;
        match came {
            Came::Link(state) => self.linked(state),
            Came::Header(header) => self.begins(*header, history),
            Came::Tick(tick) => self.tick(&tick, history),
            Came::Note(note) => match *note {
                Note::Pulse(pulse) => self.pulse(pulse),
                Note::Answer(answer) => return Some(answer),
            },
        }
        None
    }

    fn linked(&mut self, state: LinkState) {
        match state {
            LinkState::Connecting => match &mut self.state {
                Way::Away { retry_at, .. } => *retry_at = None,
                way => *way = Way::Connecting,
            },
            LinkState::Older => self.state = Way::Open { older: true },
            LinkState::Away { why, retry_at } => {
                let since_ms = match &self.state {
                    Way::Away { since_ms, .. } => *since_ms,
                    _ => clock::now().boot_ms,
                };
                self.state = Way::Away { since_ms, why, retry_at: Some(retry_at) };
                self.gap_due = self.last.is_some();
                self.pulse = None;
            }
        }
    }

    fn begins(&mut self, header: Header, history: &mut History) {
        self.state = Way::Open { older: false };
        (self.ahead_ms, self.pulse) = (None, None);
        let boot_id = match header.boot_id {
            Reading::Value(id) => Some(id),
            Reading::Absent(_) => None,
        };
        let other = boot_id.is_some() && self.boot_id.is_some() && boot_id != self.boot_id;
        let back = self.last.is_some_and(|last| last.since(header.started) > REBOOT_MS);
        if other || back {
            // Times of two boots have no order.
            *history = History::new();
            (self.last, self.last_gpus, self.gap_due) = (None, None, false);
        }
        self.boot_id = boot_id;
    }

    fn tick(&mut self, tick: &Tick, history: &mut History) {
        let at = tick.at();
        let older = matches!(self.state, Way::Open { older: true });
        if older || self.pulse.is_none() {
            self.hears_clock(at);
        }
        if let Some(from) = self.last.filter(|_| std::mem::take(&mut self.gap_due)) {
            history.push(&Tick::Gap(Gap { from, to: at, cause: GapCause::Away }));
        }
        match tick {
            Tick::Gpus(_) => {
                self.last_gpus = Some(at);
                self.looks.0 += 1;
            }
            Tick::Procs(_) => self.looks.1 += 1,
            Tick::Gap(_) | Tick::Kill(_) => {}
        }
        self.last = self.last.max(Some(at));
        history.push(tick);
        self.stale = true;
    }

    fn pulse(&mut self, pulse: Pulse) {
        self.hears_clock(pulse.at);
        self.pulse = Some(pulse);
    }

    /// What arrives was written before: the clock that is the least behind is the truest.
    fn hears_clock(&mut self, at: Stamp) {
        let now = clock::now();
        let ahead = |far: u64, near: u64| far.cast_signed().saturating_sub(near.cast_signed());
        let heard = (ahead(at.boot_ms, now.boot_ms), ahead(at.wall_ms, now.wall_ms));
        self.ahead_ms = Some(match self.ahead_ms {
            Some((boot, wall)) => {
                let lag = boot.saturating_sub(heard.0).clamp(0, DRIFT_MS);
                (heard.0.max(boot.saturating_sub(lag)), heard.1.max(wall.saturating_sub(lag)))
            }
            None => heard,
        });
    }

    /// Now, on its clocks.
    fn now(&self) -> Stamp {
        let near = clock::now();
        let Some((boot, wall)) = self.ahead_ms else { return self.last.unwrap_or(near) };
        Stamp {
            boot_ms: near.boot_ms.saturating_add_signed(boot),
            wall_ms: near.wall_ms.saturating_add_signed(wall),
        }
    }

    /// The moment that is shown of it.
    pub fn moment(&self, position: Position, options: &Options) -> Moment {
        let call = self.pulse.as_ref().and_then(|pulse| pulse.call.clone());
        Moment {
            at_boot_ms: match position {
                Position::Live => None,
                Position::At(at) => Some(at),
            },
            in_flight: call.map(|call| (call.name, call.gpu, call.since_boot_ms)),
            dropped_ticks: self.dropped(),
            idle_after_ms: options.idle_after_ms,
            request: options.request,
            ..blank(self.now(), options.interval_ms)
        }
    }

    /// Samples lost on the way, at either end.
    fn dropped(&self) -> u64 {
        let far = self.pulse.as_ref().map_or(0, |pulse| pulse.dropped);
        self.link.inbox.dropped().saturating_add(far)
    }

    /// Makes the figures of the overview, where they are old and there is something new.
    pub fn refresh(&mut self, options: &Options) -> bool {
        let now = clock::now().boot_ms;
        let due = self.made_ms.is_none_or(|made| now.saturating_sub(made) >= OVERVIEW_MS);
        if !self.stale || !due {
            return false;
        }
        self.build(options);
        true
    }

    /// Makes the view of now.
    pub fn build(&mut self, options: &Options) {
        let seen = &self.seen;
        let mut view = View::build(&seen.history, &self.moment(Position::Live, options));
        self.nowhere = select::nowhere(&view, &options.gpus);
        select::keep(&mut view, &options.gpus);
        let findings = rules::run(&view);
        self.sum_up(&view, &findings);
        (self.seen.view, self.seen.findings) = (view, findings);
    }

    /// Takes the figures of the overview from a view of it.
    pub fn sum_up(&mut self, view: &View, findings: &[Finding]) {
        let whole = || view.gpus.iter().filter(|gpu| gpu.sample.mig.is_none());
        let ledgers = || whole().filter_map(|gpu| gpu.ledger.get());
        self.line.gpus = whole().count();
        self.line.told = ledgers().count();
        self.line.used = ledgers().map(|ledger| ledger.total.saturating_sub(ledger.free)).sum();
        self.line.total = ledgers().map(|ledger| ledger.total).sum();
        self.line.zombies = view.zombies().0;
        self.line.findings =
            findings.iter().filter(|finding| finding.severity != Severity::Notice).count();
        (self.stale, self.made_ms) = (false, Some(clock::now().boot_ms));
    }

    /// Its line of the overview.
    pub fn line(&self, options: &Options) -> HostLine {
        HostLine {
            state: self.state(options),
            older: self.is_older(),
            age_ms: self.last_gpus.map(|last| self.now().since(last)),
            ..self.line.clone()
        }
    }

    fn state(&self, options: &Options) -> HostState {
        let patience = SILENT_MS.max(options.interval_ms.saturating_mul(3));
        let silent_ms = clock::now().boot_ms.saturating_sub(self.heard_ms);
        match &self.state {
            Way::Connecting => HostState::Connecting,
            Way::Away { since_ms, why, retry_at } => HostState::Away {
                for_ms: clock::now().boot_ms.saturating_sub(*since_ms),
                why: why.clone(),
                retry_in_ms: retry_at
                    .map(|at| at.saturating_duration_since(Instant::now()).as_millis() as u64),
            },
            Way::Open { .. } => {
                if let Some(why) = self.pulse.as_ref().and_then(|pulse| pulse.failure.clone()) {
                    return HostState::NoGpu { why };
                }
                let old = self.last_gpus.map_or(silent_ms, |last| self.now().since(last));
                match old.max(silent_ms) {
                    for_ms if for_ms > patience => HostState::Stalled { for_ms },
                    _ if self.last_gpus.is_none() => HostState::Connecting,
                    _ => HostState::Live,
                }
            }
        }
    }

    /// Whether its far end takes no requests.
    pub const fn is_older(&self) -> bool {
        matches!(self.state, Way::Open { older: true })
    }

    /// Whether there is a link.
    pub const fn is_open(&self) -> bool {
        matches!(self.state, Way::Open { .. })
    }

    /// How often GPUs and processes were looked at.
    pub const fn looks(&self) -> (u32, u32) {
        self.looks
    }
}
