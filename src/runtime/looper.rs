//! The event loop of the live view. It owns all state and waits for nothing but events: the driver,
//! the processes, the terminal and the disk each have their own thread.

mod hosts;
mod killing;
mod telling;
mod waiting;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{self, Receiver};

use crate::analyze::KillPlan;
use crate::runtime::alerts::Notifier;
use crate::runtime::happened::Happened;
use crate::runtime::idle::{self, Idle};
use crate::runtime::input::{self, Input};
use crate::runtime::live::{Answer, From, Live};
use crate::runtime::options::Options;
use crate::runtime::parking::Parking;
use crate::runtime::presence;
use crate::runtime::reload;
use crate::runtime::replaying::Past;
use crate::runtime::sampler::Sampled;
use crate::runtime::screen::{Drained, Screen, test_panic};
use crate::runtime::signals::{Signal, stop_self};
use crate::sample::Tick;
use crate::ui::{self, App, Context, Effect, Event, Message};

/// GPU facts wait this long for the process facts of the same moment, to be drawn with them.
const JOIN: Duration = Duration::from_millis(80);
/// Frames follow each other no closer: 25 a second.
const FRAME: Duration = Duration::from_millis(40);
/// But what a key does is seen at once: only a flood of them waits.
const KEY_FRAME: Duration = Duration::from_millis(4);
/// Without GPUs, with them, with what their processes are.
const FRAMES_AT_START: u8 = 3;
/// A driver that has answered by then is in the first frame.
const FIRST: Duration = Duration::from_millis(20);

/// How the view ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The user left.
    Quit,
    /// A signal asked for it.
    Terminated,
    /// The terminal is gone: nobody is there to be told anything.
    HungUp,
}

/// Runs the view until the user leaves.
///
/// # Errors
/// Where there is no terminal to be had, or no thread.
pub fn run(app: App, options: Options, from: From) -> io::Result<End> {
    crate::runtime::footprint::share_one_heap();
    let (drained, drained_in) = mpsc::channel(4);
    let mouse = options.mouse;
    let notifier = Notifier::spawn(options.alerts, options.alert_actions.clone())?;
    // The source is asked while the terminal is being prepared.
    let live = Live::open(app, options, from)?;
    presence::watch(live.answer_to.clone());
    let screen = Screen::open(mouse, move |what| drop(drained.try_send(what)))?;
    let input = input::spawn()?;
    let mut looper = Looper {
        notifier,
        live,
        screen,
        input,
        parking: Parking::here(),
        drained: drained_in,
        draw_at: Some(Instant::now() + FIRST),
        last_frame: None,
        pressed: false,
        quiet_since: Instant::now(),
        at_start: FRAMES_AT_START,
        end: None,
        idle: Idle::default(),
        plan: None,
    };
    let end = looper.run();
    looper.screen.close();
    // Threads that hang in the driver are not waited for.
    end
}

struct Looper {
    live: Live,
    screen: Screen,
    input: Receiver<Input>,
    parking: Parking,
    drained: Receiver<Drained>,
    /// When the next frame is wanted; `None` when what is shown is right.
    draw_at: Option<Instant>,
    last_frame: Option<Instant>,
    /// The next frame answers a key.
    pressed: bool,
    /// When anything happened last.
    quiet_since: Instant,
    /// Frames left that are drawn as soon as there is something new.
    at_start: u8,
    end: Option<End>,
    idle: Idle,
    notifier: Notifier,
    /// The plan that the dialog shows.
    plan: Option<KillPlan>,
}

impl Looper {
    fn run(&mut self) -> io::Result<End> {
        loop {
            let happened = self.next();
            self.take(happened)?;
            if let Some(end) = self.end {
                return Ok(end);
            }
            if self.draw_at.is_some_and(|at| at <= Instant::now()) && self.idle.draws(&self.screen)
            {
                self.draw()?;
            }
        }
    }

    fn take(&mut self, happened: Happened) -> io::Result<()> {
        let now = Instant::now();
        if matches!(happened, Happened::Clock) && self.due_at() > now {
            // The process facts are late: GPU facts are shown without them.
            self.live.pair.end();
            return Ok(());
        }
        self.quiet_since = now;
        if !matches!(happened, Happened::Sampled(_) | Happened::Facts(_)) {
            self.live.pair.end();
        }
        self.seen(&happened);
        match happened {
            Happened::Input(Some(Input::Signal(signal))) => self.signal(signal)?,
            Happened::Input(Some(Input::Event(event))) => self.input(event)?,
            Happened::Input(Some(Input::Gone) | None)
            | Happened::Drained(Some(Drained::Gone) | None) => self.end = Some(End::HungUp),
            Happened::Sampled(sampled) => self.sampled(sampled)?,
            Happened::Facts(Some(tick)) => {
                self.live.push(tick);
                self.follow(true);
                self.live.pair_up(JOIN);
                self.want_frame(idle::frame_after(&self.live, Duration::ZERO));
            }
            Happened::Drained(Some(Drained::Ready))
            | Happened::Facts(None)
            | Happened::Answer(None) => {}
            Happened::Kill(event) => self.kill(event)?,
            Happened::Hosts => self.hosts()?,
            Happened::Answer(Some(answer)) => self.answered(answer)?,
            Happened::Model => {
                self.live.age();
                self.want_frame(Duration::ZERO);
            }
            Happened::Clock => {
                if self.live.killing.is_some() {
                    self.live.nudge();
                    self.prove()?;
                }
                if self.draw_at.is_none() {
                    self.live.age();
                    self.want_frame(Duration::ZERO);
                }
                // A driver that does not answer sends nothing that would tell of it.
                drop(self.live.unseen(false));
                self.spare();
            }
        }
        Ok(())
    }

    /// Takes what tells that somebody looks, or that nobody does.
    fn seen(&mut self, happened: &Happened) {
        let (idle, live) = (&mut self.idle, &mut self.live);
        let due = match happened {
            Happened::Input(Some(_)) => idle.touched(live),
            Happened::Drained(Some(Drained::Ready)) => idle.drained(live),
            Happened::Answer(Some(Answer::Attached(attached))) => idle.attached(live, *attached),
            _ => None,
        };
        self.draw_at = due.or(self.draw_at);
    }

    /// What another thread has found out.
    fn answered(&mut self, answer: Answer) -> io::Result<()> {
        match answer {
            Answer::NoGpu(absence) => {
                let advice = absence.advice.join("\n");
                let found = ui::NoGpu { facts: absence.rows, advice };
                self.update(Event::NoGpu(found))?;
            }
            Answer::Message(message) => self.update(Event::Message(message))?,
            Answer::Settings(new) => {
                let (notifier, screen) = (&mut self.notifier, &mut self.screen);
                for event in reload::take(new, &mut self.live, notifier, screen) {
                    self.update(event)?;
                }
            }
            Answer::Foreseen(found) => self.live.foreseen(*found),
            Answer::Attached(_) => self.spare(),
            Answer::Rewound(found) => {
                self.live.rewound(found);
                self.want_frame(Duration::ZERO);
            }
        }
        Ok(())
    }

    /// Does less where nobody looks.
    fn spare(&mut self) {
        let busy = self.live.killing.is_some() || self.notifier.listens();
        if self.idle.spare(&mut self.live, &self.screen, busy) {
            self.want_frame(Duration::ZERO);
        }
    }

    fn sampled(&mut self, sampled: Option<Sampled>) -> io::Result<()> {
        match sampled {
            Some(Sampled::Tick(tick)) => {
                let first = self.live.history.latest().is_none();
                let wait = matches!(*tick, Tick::Gpus(_)) && !first && !self.live.is_replay();
                self.live.push(*tick);
                self.idle.looked();
                if matches!(self.live.app.page, ui::Page::NoGpu(_)) {
                    self.update(Event::Gpus)?;
                }
                let join = if wait { self.live.joins(JOIN) } else { Duration::ZERO };
                self.want_frame(idle::frame_after(&self.live, join));
                self.spare();
                self.follow(false);
                self.prove()?;
            }
            Some(Sampled::Failed(error)) => {
                self.live.failed(&error);
                self.want_frame(Duration::ZERO);
            }
            Some(Sampled::End) | None => self.live.ended()?,
        }
        Ok(())
    }

    fn want_frame(&mut self, within: Duration) {
        let at = self.idle.not_before(Instant::now() + within);
        self.draw_at = Some(self.draw_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let least = if self.pressed { KEY_FRAME } else { FRAME };
        if let Some(last) = self.last_frame
            && now < last + least
            && self.at_start == 0
        {
            self.draw_at = Some(last + least);
            return Ok(());
        }
        (self.draw_at, self.last_frame, self.pressed) = (None, Some(now), false);
        self.at_start = self.at_start.saturating_sub(1);
        test_panic("loop");
        self.live.rebuild();
        let live = &mut self.live;
        live.measure(self.screen.written_bytes());
        let past = Past::new(&live.history, &live.timeline, &live.replaying);
        let context = Context { view: &live.view, history: &past, findings: &live.findings };
        let app = &live.app;
        let mut drawn = None;
        self.screen.draw(|grid| drawn = Some(ui::draw(grid, app, context)))?;
        self.idle.drawn();
        if let Some(drawn) = drawn {
            // What the frame shows decides what is worth reading.
            if drawn.wants != live.app.wanted {
                live.app.wanted = drawn.wants;
                live.want(drawn.wants);
                live.pair.end();
            }
            live.app.drawn = drawn;
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match signal {
            Signal::Quit => self.end = Some(End::Terminated),
            Signal::HangUp if reload::terminal_is_there() => self.perform(Effect::Reload)?,
            Signal::HangUp => self.end = Some(End::HungUp),
            Signal::Stop => self.suspend()?,
            Signal::Continue => {
                self.screen.resume()?;
                self.live.nudge();
                self.want_frame(Duration::ZERO);
            }
            Signal::Resize => {
                self.screen.invalidate();
                self.update(Event::Resize)?;
            }
        }
        Ok(())
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.screen.suspend();
        stop_self();
        self.screen.resume()?;
        self.want_frame(Duration::ZERO);
        Ok(())
    }

    fn input(&mut self, event: crossterm::event::Event) -> io::Result<()> {
        use crossterm::event::Event as Terminal;
        self.pressed |= matches!(event, Terminal::Key(_));
        match event {
            Terminal::Key(key) => self.update(Event::Key(key)),
            Terminal::Mouse(mouse) => self.update(Event::Mouse(mouse)),
            Terminal::Paste(text) => self.update(Event::Paste(text)),
            // The size comes by signal; focus changes nothing.
            Terminal::Resize(..) | Terminal::FocusGained | Terminal::FocusLost => Ok(()),
        }
    }

    fn update(&mut self, event: Event) -> io::Result<()> {
        let live = &mut self.live;
        let past = Past::new(&live.history, &live.timeline, &live.replaying);
        let context = Context { view: &live.view, history: &past, findings: &live.findings };
        for effect in ui::update(&mut live.app, event, context) {
            self.perform(effect)?;
        }
        Ok(())
    }

    fn perform(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Quit => self.end = Some(End::Quit),
            Effect::Redraw => self.want_frame(Duration::ZERO),
            Effect::Repaint => {
                self.screen.invalidate();
                self.want_frame(Duration::ZERO);
            }
            Effect::SetWants(wants) => self.live.want(wants),
            Effect::SetInterval(interval_ms) => self.live.set_interval(interval_ms),
            Effect::PlanKill { targets, preset } => self.plan_kill(&targets, preset)?,
            Effect::PlanZombies => self.plan_zombies()?,
            Effect::Kill(order) => self.begin_kill(&order)?,
            Effect::CancelKill => self.cancel_kill(),
            Effect::SelectHost(to) => {
                self.live.select_host(to);
                self.want_frame(Duration::ZERO);
            }
            Effect::RetryHost => self.retry_host(),
            Effect::Copy(text) => self.copy(&text)?,
            Effect::StartDemo => self.reopen(From::Demo)?,
            Effect::OpenRecording(path) => self.reopen(From::File(path.into(), 1.0))?,
            Effect::Play(step) => self.live.play(step),
            Effect::Seek(_) => {
                self.live.play(ui::PlayStep::AsSet);
                self.want_frame(Duration::ZERO);
            }
            Effect::Explain(text) => {
                let (title, lines) = self.live.explain(&text);
                self.update(Event::Text { title, lines })?;
            }
            Effect::SaveSnapshot => crate::runtime::snapshot::save(&self.live),
            Effect::Look => self.live.wake(),
            Effect::Reload => reload::begin(&mut self.live),
            Effect::Suspend => self.suspend()?,
        }
        Ok(())
    }

    fn reopen(&mut self, from: From) -> io::Result<()> {
        self.live.app.recording = from.title();
        self.live.reopen(from)?;
        self.update(Event::Gpus)
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        let mut bytes = Vec::new();
        let copy = crossterm::clipboard::CopyToClipboard::to_clipboard_from(text);
        crossterm::queue!(bytes, copy)?;
        bytes.flush()?;
        self.screen.send(&bytes);
        let text = "copied: your terminal has it in its clipboard if it speaks OSC 52".to_owned();
        self.update(Event::Message(Message { text, error: false }))
    }
}
