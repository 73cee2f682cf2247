//! The far end: what `record - --answer` does beside recording. Everything that makes a kill safe
//! happens here, where the processes are: the plan with whom it leaves alone, the pidfds, the second
//! look at each identity, the proof of what came back.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

use crate::analyze::{self, KillPlan, KillProof, View, select};
use crate::history::History;
use crate::record::{
    Answer, Answered, Ask, Call, Expected, MAX_REQUEST_BYTES, MAX_TARGETS, Note, Offer, OfferRow,
    Outcome, Pulse, Recorder, Request,
};
use crate::runtime::kill::{self, CONFIRMATION, Killing, POLL};
use crate::runtime::options::{Options, blank};
use crate::runtime::{clock, sampler::Sampler};
use crate::sample::{KillEvent, KillMark, KillMarked, Tick};
use crate::source::Wants;
use crate::ui::kill::Typed;

/// Requests that wait at the most.
const REQUESTS: usize = 16;
/// Answers that wait for a link that does not drain. More than an order of hundreds makes.
const ANSWERS: usize = 4096;
/// Between two signs of life.
const PULSE: Duration = Duration::from_secs(1);

/// What came in.
pub enum Heard {
    /// A request, or why a line is none.
    Request(Result<Request, String>),
    /// The near end is gone: there is nobody to record for.
    Gone,
    /// Something happened while a plan is carried out.
    Kill(Option<KillEvent>),
    /// Time for a sign of life.
    Pulse,
}

/// The answering side of a recording.
pub struct Far {
    options: Options,
    history: History,
    requests: Receiver<Heard>,
    /// The plan that may be carried out, and the request that asked for it.
    plan: Option<(u64, KillPlan, View)>,
    killing: Option<(u64, Killing)>,
    answers: VecDeque<Box<Note>>,
    marks: Vec<KillMark>,
    failure: Option<String>,
    pulse_at: Instant,
    /// How often is looked, and whether at the traffic on the bus.
    looks: (u64, bool),
}

impl Far {
    /// Begins to listen to `input` on a thread of its own.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn spawn(options: &Options, input: impl Read + Send + 'static) -> io::Result<Self> {
        let (to, requests) = channel(REQUESTS);
        std::thread::Builder::new()
            .name("requests".to_owned())
            .stack_size(256 << 10)
            .spawn(move || listen(BufReader::new(input), &to))?;
        Ok(Self {
            options: options.clone(),
            history: History::new(),
            requests,
            plan: None,
            killing: None,
            answers: VecDeque::new(),
            marks: Vec::new(),
            failure: None,
            pulse_at: Instant::now(),
            looks: (options.interval_ms, false),
        })
    }

    /// The next thing that happens.
    pub async fn next(&mut self) -> Heard {
        let killing = async {
            match &mut self.killing {
                Some((_, killing)) => Heard::Kill(killing.next().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            heard = self.requests.recv() => heard.unwrap_or(Heard::Gone),
            heard = killing => heard,
            () = sleep_until(self.pulse_at) => Heard::Pulse,
        }
    }

    /// Takes it; no when the near end is gone.
    pub fn take(&mut self, heard: Heard, sampler: &Sampler, recorder: &Recorder) -> bool {
        match heard {
            Heard::Gone => return false,
            Heard::Request(Ok(request)) => self.answer(request, sampler),
            Heard::Request(Err(why)) => self.say(0, Answered::Refused(why)),
            Heard::Kill(event) => {
                let id = self.killing.as_ref().map_or(0, |(id, _)| *id);
                if let Some(event) = event {
                    let mark = self.killing.as_ref().and_then(|(_, killing)| killing.mark(&event));
                    self.marks.extend(mark);
                    self.say(id, Answered::Kill(event));
                }
                sampler.nudge();
            }
            Heard::Pulse => self.pulse(sampler, recorder),
        }
        self.flush(recorder);
        true
    }

    /// Takes a tick that goes into the stream.
    pub fn tick(&mut self, tick: &Tick, recorder: &Recorder) {
        self.failure = None;
        self.history.push(tick);
        self.prove();
        self.flush(recorder);
    }

    /// The driver cannot be asked.
    pub fn failed(&mut self, why: String) {
        self.failure = Some(why);
    }

    fn pulse(&mut self, sampler: &Sampler, recorder: &Recorder) {
        let waiting = self.killing.as_ref().is_some_and(|(_, killing)| killing.has_finished());
        self.pulse_at = Instant::now() + if waiting { POLL } else { PULSE };
        if waiting {
            sampler.nudge();
            self.prove();
        }
        let call = sampler.progress.current().as_ref().map(Call::from);
        let dropped = recorder.totals().dropped + sampler.dropped();
        let failure = self.failure.clone();
        let pulse = Pulse { at: clock::now(), call, dropped, failure };
        // A link that is full needs no sign of life.
        let _ = recorder.try_note(Box::new(Note::Pulse(pulse)));
    }

    fn answer(&mut self, request: Request, sampler: &Sampler) {
        let id = request.id;
        match request.ask {
            Ask::Plan { targets, .. } if targets.is_empty() || targets.len() > MAX_TARGETS => {
                let why = format!("a request names 1 to {MAX_TARGETS} processes");
                self.say(id, Answered::Refused(why));
            }
            Ask::Plan { targets, preset } => {
                let view = self.view();
                let plan = analyze::plan(&view, &targets, preset);
                self.offer(id, plan, view);
            }
            Ask::Zombies { gpu } => {
                let view = self.view();
                let plan = analyze::zombies(&view, gpu);
                self.offer(id, plan, view);
            }
            Ask::Kill { plan, typed } => {
                if let Err(why) = self.begin(id, plan, typed.as_deref()) {
                    self.say(id, Answered::Refused(why));
                }
            }
            Ask::Cancel {} => {
                if let Some((_, killing)) = &self.killing {
                    killing.cancel();
                }
            }
            Ask::Look { interval_ms, pcie } => {
                let looks = (interval_ms.clamp(100, 3_600_000), pcie);
                // Each change is looked at once; what is no change is not.
                if std::mem::replace(&mut self.looks, looks) == looks {
                    return;
                }
                self.options.interval_ms = looks.0;
                sampler.set_interval(looks.0);
                sampler.want(Wants { pcie, process_utilization: true, details: true });
            }
        }
    }

    fn offer(&mut self, id: u64, plan: KillPlan, view: View) {
        self.say(id, Answered::Plan(Box::new(offer(&plan))));
        self.plan = Some((id, plan, view));
    }

    /// The user's word is given: for the plan that was shown, and for nothing else.
    fn begin(&mut self, id: u64, plan: u64, typed: Option<&str>) -> Result<(), String> {
        if self.killing.is_some() {
            return Err("another plan is being carried out".to_owned());
        }
        let Some((_, plan, before)) = self.plan.take_if(|(asked, ..)| *asked == plan) else {
            return Err("this plan is not the newest: ask for it again".to_owned());
        };
        if plan.is_empty() {
            return Err("there is nobody to end in this plan".to_owned());
        }
        if plan.needs_typed_confirmation && typed != Some(CONFIRMATION) {
            return Err("others may need one of these: the word was not typed".to_owned());
        }
        let killing = Killing::begin(plan, before).map_err(|error| error.to_string())?;
        self.killing = Some((id, killing));
        Ok(())
    }

    /// Says what came back, once it is known or can be waited for no longer.
    fn prove(&mut self) {
        let Some((id, killing)) = &self.killing else { return };
        if !killing.has_finished() {
            return;
        }
        if let Some(proof) = killing.proof(&self.view()) {
            let id = *id;
            self.killing = None;
            let what = KillMarked::Outcome(proof.sentence.clone());
            self.marks.push(KillMark { at: clock::now(), what });
            self.say(id, Answered::Proof(outcome(&proof)));
        }
    }

    fn view(&self) -> View {
        let mut moment = blank(clock::now(), self.options.interval_ms);
        moment.idle_after_ms = self.options.idle_after_ms;
        moment.request = self.options.request;
        let mut view = View::build(&self.history, &moment);
        select::keep(&mut view, &self.options.gpus);
        view
    }

    fn say(&mut self, id: u64, what: Answered) {
        if self.answers.len() < ANSWERS {
            self.answers.push_back(Box::new(Note::Answer(Answer { id, what })));
        }
    }

    fn flush(&mut self, recorder: &Recorder) {
        // What was done belongs into the stream, for whoever keeps it.
        for mark in self.marks.drain(..) {
            recorder.try_send(Tick::Kill(mark));
        }
        while let Some(note) = self.answers.pop_front() {
            if let Err(note) = recorder.try_note(note) {
                self.answers.push_front(note);
                return;
            }
        }
    }
}

/// A plan in words.
fn offer(plan: &KillPlan) -> Offer {
    let dialog = kill::dialog(plan);
    let rows = dialog.rows.into_iter().zip(&plan.rows).map(|(row, planned)| OfferRow {
        id: planned.id,
        user: row.user,
        command: row.command,
        bytes: row.bytes,
        reason: row.note,
    });
    Offer {
        title: dialog.title,
        rows: rows.collect(),
        refused: dialog.refused,
        note: dialog.note,
        order: dialog.order,
        typed: dialog.typed.map(|Typed { word, .. }| word),
        expected: plan
            .expected
            .iter()
            .map(|part| Expected { gpu: part.gpu.clone(), bytes: part.bytes })
            .collect(),
    }
}

fn outcome(proof: &KillProof) -> Outcome {
    let shown = kill::shown(proof);
    Outcome {
        sentence: shown.sentence,
        complete: shown.complete,
        unknown: shown.unknown,
        freed: proof.freed_total(),
        remaining: shown.remaining,
    }
}

/// Reads requests until the near end is gone.
fn listen(mut input: impl BufRead, to: &Sender<Heard>) {
    loop {
        let heard = match line(&mut input) {
            Ok(None) | Err(_) => Heard::Gone,
            Ok(Some(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(line)) if line.len() > MAX_REQUEST_BYTES => {
                Heard::Request(Err(format!("a request has at most {MAX_REQUEST_BYTES} bytes")))
            }
            Ok(Some(line)) => Heard::Request(
                serde_json::from_slice(&line).map_err(|error| format!("no request: {error}")),
            ),
        };
        let gone = matches!(heard, Heard::Gone);
        if to.blocking_send(heard).is_err() || gone {
            return;
        }
    }
}

/// The next line; of one that is too long only so much that this shows.
fn line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let limit = MAX_REQUEST_BYTES as u64 + 1;
    if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let whole = line.ends_with(b"\n");
    while !whole && line.len() > MAX_REQUEST_BYTES {
        let rest = input.fill_buf()?;
        let (used, ended) = match memchr::memchr(b'\n', rest) {
            Some(at) => (at + 1, true),
            None => (rest.len(), rest.is_empty()),
        };
        input.consume(used);
        if ended {
            break;
        }
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &[u8]) -> Vec<Heard> {
        let (to, mut from) = channel(64);
        listen(text, &to);
        std::iter::from_fn(|| from.try_recv().ok()).collect()
    }

    #[test]
    fn requests_are_bounded_and_nonsense_is_answered() {
        let long = [&b"{"[..], &vec![b' '; 3 * MAX_REQUEST_BYTES], b"\n"].concat();
        let text =
            [b"\n{\"id\":1,\"cancel\":{}}\nhello\n", &long[..], b"{\"id\":2,\"zombies\":{}}"];
        let heard = heard(&text.concat());
        assert_eq!(heard.len(), 5);
        assert!(matches!(&heard[0], Heard::Request(Ok(Request { id: 1, ask: Ask::Cancel {} }))));
        assert!(matches!(&heard[1], Heard::Request(Err(why)) if why.starts_with("no request")));
        assert!(matches!(&heard[2], Heard::Request(Err(why)) if why.contains("at most")));
        assert!(matches!(&heard[3], Heard::Request(Ok(Request { id: 2, .. }))));
        assert!(matches!(heard[4], Heard::Gone));
    }
}
