//! What the loop knows of the recording that it plays, and of what happened: markers, also those of
//! the part that is still to come, which a thread of its own reads ahead.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::Sender;

use crate::analyze::timeline::Timeline;
use crate::history::{BusyPoint, ChartPoint, History, StackPoint};
use crate::ids::{GpuUuid, Pid, Stamp};
use crate::record::{Reader, Recording};
use crate::runtime::clock;
use crate::runtime::live::{Answer, DEMO, From, Live};
use crate::runtime::player::Remote;
use crate::runtime::rewind::Rewinder;
use crate::sample::{KillEvent, KillMark, KillMarked, KillStep, ProcSample, Tick};
use crate::ui::time::Play;
use crate::ui::{Charts, PlayStep, Position};

/// A recording read ahead: its ends, and in the second answer what happens in it.
#[derive(Debug)]
pub struct Foreseen {
    stop: Arc<AtomicBool>,
    ends: (Stamp, Stamp),
    line: Option<Timeline>,
}

/// An earlier moment of a recording, made again.
#[derive(Debug)]
pub struct Rewound {
    stop: Arc<AtomicBool>,
    /// Which, in milliseconds since boot.
    pub at_ms: u64,
    /// What was known then; absent where the recording cannot be read any more.
    pub history: Option<Box<History>>,
}

/// A recording under way.
#[derive(Debug, Default)]
pub struct Replaying {
    /// Tells the player how to go on.
    pub remote: Remote,
    /// Makes earlier moments again, where the recording can be read twice.
    pub rewinder: Option<Rewinder>,
    /// The earlier moment that is shown.
    pub rewound: Option<Rewound>,
    stop: Arc<AtomicBool>,
    line: Option<Timeline>,
}

impl Replaying {
    /// Begins to read ahead, where the recording can be read twice. It is no loss where there is no
    /// thread for it: then only what was played is known.
    pub fn begin(from: &From, answer_to: &Sender<Answer>) -> Self {
        let mut new = Self::default();
        new.rewinder = new.rewinder_of(from, answer_to);
        let (stop, to) = (Arc::clone(&new.stop), answer_to.clone());
        let thread = || std::thread::Builder::new().name("foresee".to_owned());
        match from {
            From::Demo => {
                let _ = thread().spawn(move || {
                    let Ok(ticks) = Reader::new(DEMO) else { return };
                    ahead(ticks.filter_map(Result::ok), None, &stop, &to);
                });
            }
            From::File(path, _) if path.as_os_str() != "-" => {
                let path = path.clone();
                let _ = thread().spawn(move || file(&path, &stop, &to));
            }
            _ => {}
        }
        new
    }

    /// It is a loss where there is no thread for it, and no more than that: then less is known of
    /// earlier moments.
    fn rewinder_of(&self, from: &From, answer_to: &Sender<Answer>) -> Option<Rewinder> {
        let (stop, to) = (Arc::clone(&self.stop), answer_to.clone());
        let tell = move |at_ms, history: Option<History>| {
            let (stop, history) = (Arc::clone(&stop), history.map(Box::new));
            let _ = to.blocking_send(Answer::Rewound(Rewound { stop, at_ms, history }));
        };
        match from {
            From::Demo => Rewinder::spawn(|| Recording::built_in(DEMO).ok(), tell).ok(),
            From::File(path, _) if path.as_os_str() != "-" => {
                let path = path.clone();
                Rewinder::spawn(move || Recording::open(&path).ok(), tell).ok()
            }
            _ => None,
        }
    }

    /// Whether an earlier moment is of this recording.
    pub fn takes(&self, found: &Rewound) -> bool {
        Arc::ptr_eq(&found.stop, &self.stop)
    }

    /// Whether this earlier moment is there.
    pub fn is_at(&self, at_ms: u64) -> bool {
        self.rewound.as_ref().is_some_and(|rewound| rewound.at_ms == at_ms)
    }
}

impl Drop for Replaying {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn file(path: &Path, stop: &Arc<AtomicBool>, to: &Sender<Answer>) {
    let Ok(recording) = Recording::open(path) else { return };
    let last_ms = recording.index().covers().map(|covers| covers.1);
    if let Ok(ticks) = recording.ticks(None) {
        ahead(ticks.map_while(Result::ok), last_ms, stop, to);
    }
}

/// Reads all of it. The ends are told at once where an index knows the last moment.
fn ahead(
    ticks: impl Iterator<Item = Tick>,
    last_ms: Option<u64>,
    stop: &Arc<AtomicBool>,
    to: &Sender<Answer>,
) {
    let (mut history, mut line) = (History::new(), Timeline::new());
    let mut ends: Option<(Stamp, Stamp)> = None;
    let tell = |ends, line| {
        let stop = Arc::clone(stop);
        let _ = to.blocking_send(Answer::Foreseen(Box::new(Foreseen { stop, ends, line })));
    };
    for tick in ticks {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let at = tick.at();
        if let (None, Some(last_ms)) = (ends, last_ms) {
            let wall_ms = (at.wall_ms + last_ms).saturating_sub(at.boot_ms);
            tell((at, Stamp { boot_ms: last_ms, wall_ms }), None);
        }
        ends = Some(ends.map_or((at, at), |ends| (ends.0, ends.1.max(at))));
        history.push(&tick);
        line.follow(&history);
    }
    if let Some(ends) = ends {
        tell(ends, Some(line));
    }
}

/// What the screen asks of the past.
pub struct Past<'a> {
    /// All that was seen.
    whole: &'a History,
    /// What was known at the moment that is shown.
    history: &'a History,
    line: &'a Timeline,
}

impl<'a> Past<'a> {
    /// Of what was seen, and of what is known of the rest of a recording.
    pub fn new(history: &'a History, line: &'a Timeline, replaying: &'a Replaying) -> Self {
        let again = replaying.rewound.as_ref().and_then(|again| again.history.as_deref());
        let line = replaying.line.as_ref().unwrap_or(line);
        Self { whole: history, history: again.unwrap_or(history), line }
    }
}

impl Charts for Past<'_> {
    fn latest(&self) -> Option<Stamp> {
        self.whole.latest()
    }

    fn oldest(&self) -> Option<Stamp> {
        self.whole.oldest()
    }

    fn gpu(&self, gpu: &GpuUuid, span_ms: (u64, u64), columns: usize) -> Vec<Option<ChartPoint>> {
        Charts::gpu(self.history, gpu, span_ms, columns)
    }

    fn holder(
        &self,
        holder: (&GpuUuid, Pid),
        span_ms: (u64, u64),
        columns: usize,
    ) -> Vec<Option<ChartPoint>> {
        Charts::holder(self.history, holder, span_ms, columns)
    }

    fn stack(
        &self,
        gpu: &GpuUuid,
        span_ms: (u64, u64),
        columns: usize,
        named: &[Pid],
    ) -> Vec<Option<StackPoint>> {
        Charts::stack(self.history, gpu, span_ms, columns, named)
    }

    fn busy(
        &self,
        gpu: &GpuUuid,
        to_and_span_ms: (u64, u64),
        columns: usize,
    ) -> Option<Vec<BusyPoint>> {
        Charts::busy(self.history, gpu, to_and_span_ms, columns)
    }

    fn timeline(&self) -> Option<&Timeline> {
        Some(self.line)
    }
}

impl From {
    /// How it plays, where it is a recording that can be held: a pipe cannot.
    pub fn play(&self) -> Option<Play> {
        match self {
            Self::Demo => Some(Play::at_speed(1.0)),
            Self::File(path, speed) if path.as_os_str() != "-" => Some(Play::at_speed(*speed)),
            _ => None,
        }
    }
}

impl Live {
    /// What another thread has read ahead; of a recording that is no longer shown it is nothing.
    pub fn foreseen(&mut self, found: Foreseen) {
        if let Some(play) = self.app.play.as_mut()
            && Arc::ptr_eq(&found.stop, &self.replaying.stop)
        {
            play.ends = Some(found.ends);
            self.replaying.line = found.line;
            self.age();
        }
    }

    /// A recording plays on in another way. While an earlier moment is shown it is held.
    pub fn play(&mut self, step: PlayStep) {
        self.age();
        let Some(play) = self.app.play else { return };
        self.replaying.remote.set(play.speed, play.paused || self.app.position != Position::Live);
        self.rewind();
        match step {
            PlayStep::AsSet => {}
            PlayStep::RunTo(boot_ms) => self.replaying.remote.run_to(boot_ms),
            PlayStep::Sample => self.replaying.remote.sample(),
        }
    }

    /// Marks a signal that this program sent.
    pub fn mark_kill(&mut self, event: &KillEvent) {
        let (KillStep::Sent(number), Some(id)) = (&event.what, event.id) else { return };
        let holder = self.view.holders.iter().find(|holder| holder.id == Some(id));
        let name = holder.and_then(|holder| holder.process.as_deref()).map(ProcSample::short_name);
        let name = name.unwrap_or_default();
        let what = KillMarked::Signal { id, name, signal: *number };
        self.timeline.killed(&KillMark { at: clock::now(), what });
    }

    /// Marks what came back.
    pub fn mark_proof(&mut self, sentence: &str) {
        let what = KillMarked::Outcome(sentence.to_owned());
        self.timeline.killed(&KillMark { at: clock::now(), what });
    }
}
