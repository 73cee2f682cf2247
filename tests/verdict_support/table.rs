//! The shape of a case of the verdict table, and the processes that cases begin with.

use vramlens::analyze::{Class, View};
use vramlens::history::History;
use vramlens::ids::Pid;
use vramlens::sample::{GpuSample, HostFacts, ProcSample, ProcState, Signals, Tick};

use super::{GIB, T0, cuda, gpu, gpu_tick, host, init, moment, proc_tick, process, row, with_rows};

/// What a case shows of a trap's rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shows {
    /// It is about a class only.
    Class,
    /// The rule applies.
    Hit,
    /// The same without the trap.
    Clear,
    /// What the rule would take cannot be read.
    CannotTell,
}

pub struct World {
    pub gpus: Vec<GpuSample>,
    pub host: HostFacts,
    pub procs: Vec<ProcSample>,
}

pub struct Case {
    pub name: &'static str,
    /// The trap that it is about, or nothing.
    pub trap: &'static str,
    pub shows: Shows,
    pub class: Class,
    pub zombie: bool,
    /// A fact that must be named; for a clear case: one that must not.
    pub key: &'static str,
    /// Whom it judges.
    pub pid: u32,
    /// How long it is watched, in seconds.
    pub seconds: u64,
    /// What each second shows.
    pub at: fn(u64) -> World,
}

impl Case {
    /// A case about a class, watched for longer than an idle process needs.
    pub fn class(
        name: &'static str,
        class: Class,
        key: &'static str,
        at: fn(u64) -> World,
    ) -> Self {
        let (trap, shows) = ("", Shows::Class);
        Self { name, trap, shows, class, zombie: false, key, pid: 500, seconds: 130, at }
    }

    /// A case about a trap.
    pub fn trap(trap: &'static str, shows: Shows, class: Class, at: fn(u64) -> World) -> Self {
        Self { trap, shows, ..Self::class(trap, class, trap, at) }
    }

    pub fn zombie(self) -> Self {
        Self { zombie: true, ..self }
    }

    pub fn of(self, pid: u32) -> Self {
        Self { pid, ..self }
    }

    pub fn for_seconds(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }

    pub fn view(&self) -> View {
        self.view_of(self.ticks())
    }

    /// All that is seen, in its order.
    pub fn ticks(&self) -> Vec<Tick> {
        let second = |second: u64| {
            let world = (self.at)(second);
            let now = T0 + second * 1_000;
            [gpu_tick(now, world.gpus), proc_tick(now + 100, world.host, world.procs)]
        };
        (0..=self.seconds).flat_map(second).collect()
    }

    /// The view at the end of such ticks.
    pub fn view_of(&self, ticks: impl IntoIterator<Item = Tick>) -> View {
        let mut history = History::new();
        for tick in ticks {
            history.push(&tick);
        }
        let mut moment = moment(T0 + self.seconds * 1_000 + 200);
        moment.idle_after_ms = 120_000;
        View::build(&history, &moment)
    }
}

/// One GPU on which 500 is listed, and these processes beside PID 1.
pub fn world(procs: Vec<ProcSample>) -> World {
    let mut all = vec![init()];
    all.extend(procs);
    World { gpus: vec![with_rows(gpu(0), vec![row(500, 5 * GIB)])], host: host(), procs: all }
}

/// The same where the row is at work.
pub fn at_work(procs: Vec<ProcSample>) -> World {
    let mut world = world(procs);
    world.gpus = vec![with_rows(gpu(0), vec![super::busy(row(500, 5 * GIB))])];
    world
}

/// 500 as a job that somebody started in a shell with a terminal.
pub fn job() -> ProcSample {
    let mut job = cuda(process(500, "python"), &[0]);
    job.parent = Pid(400);
    job.session = Pid(400);
    job.tty = 34816;
    job
}

/// The shell of the job.
pub fn shell() -> ProcSample {
    let mut shell = process(400, "bash");
    shell.tty = 34816;
    shell
}

/// 500 with the leaders of its group and session gone: an orphan.
pub fn orphan() -> ProcSample {
    let mut orphan = cuda(process(500, "python"), &[0]);
    orphan.group = Pid(900);
    orphan.session = Pid(900);
    orphan
}

/// 500 as an engine whose server is gone.
pub fn engine() -> ProcSample {
    let mut engine = orphan();
    engine.comm = String::from("VLLM::EngineCor");
    engine.cmdline = super::args(engine.clone(), &["VLLM::EngineCore"]).cmdline;
    engine
}

/// 600, forked by the dead 500, which the driver still lists.
pub fn survivor() -> ProcSample {
    let mut survivor = cuda(process(600, "python"), &[0]);
    survivor.group = Pid(500);
    survivor.session = Pid(400);
    survivor
}

pub fn with(mut process: ProcSample, change: fn(&mut ProcSample)) -> ProcSample {
    change(&mut process);
    process
}

pub fn state(mut process: ProcSample, state: ProcState) -> ProcSample {
    process.state = state;
    process
}

pub fn pending(mut process: ProcSample, signals: u64) -> ProcSample {
    process.signals = Some(Signals { pending: signals, ..Signals::default() });
    process
}
