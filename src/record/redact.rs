//! What does not go into a recording.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record::Header;
use crate::sample::{ProcSample, ProcTick, Reading, Tick, Why};

/// Takes secrets out of the arguments of a command.
pub type RedactCommand = fn(&[String]) -> Vec<String>;

/// What is taken out of ticks before they are written.
#[derive(Debug, Clone)]
pub struct Redaction {
    command: RedactCommand,
    identities: bool,
    /// Numbers that stand for user ids, in the order of their first sight.
    users: BTreeMap<u32, u32>,
}

/// Numbers that stand for users begin here, as a distribution's ordinary users do.
const FIRST_USER: u32 = 1000;

impl Redaction {
    /// Secrets in command lines only.
    pub const fn secrets(command: RedactCommand) -> Self {
        Self { command, identities: false, users: BTreeMap::new() }
    }

    /// Besides: arguments, names of users and of the host, paths, units, containers, jobs,
    /// environments. What verdicts are made of stays, so that the recording can still be used to
    /// show a fault: names of programs, states, bytes and times, and which processes are of one
    /// user.
    pub const fn identities(command: RedactCommand) -> Self {
        Self { command, identities: true, users: BTreeMap::new() }
    }

    pub(super) fn header(&self, mut header: Header) -> Header {
        header.redacted = self.identities;
        if self.identities {
            header.hostname = header.hostname.map(|_| "host".to_owned());
            header.boot_id = Reading::Absent(Why::NotAsked);
        }
        header
    }

    pub(super) fn tick<'a>(&mut self, tick: &'a Tick) -> Cow<'a, Tick> {
        let Tick::Procs(tick) = tick else { return Cow::Borrowed(tick) };
        let mut tick = tick.clone();
        for process in &mut tick.procs {
            if let Reading::Value(arguments) = &process.cmdline {
                let redacted = (self.command)(arguments);
                if redacted != *arguments {
                    Arc::make_mut(process).cmdline = Reading::Value(redacted);
                }
            }
            if self.identities {
                self.anonymous(Arc::make_mut(process));
            }
        }
        if self.identities {
            self.host(&mut tick);
        }
        Cow::Owned(Tick::Procs(tick))
    }

    fn host(&mut self, tick: &mut ProcTick) {
        tick.host.euid = self.user(tick.host.euid);
        tick.host.hostname = tick.host.hostname.as_ref().map(|_| "host".to_owned());
        if let Some(container) = &mut tick.host.container {
            container.id = None;
        }
    }

    fn anonymous(&mut self, process: &mut ProcSample) {
        if let Reading::Value(arguments) = &mut process.cmdline {
            arguments.truncate(1);
            if let Some(program) = arguments.first_mut() {
                *program = base_name(program);
            }
        }
        let uid = process.uid.map(|uid| self.user(uid));
        process.uid = uid;
        process.user = process.user.as_ref().and_then(|_| uid).map(|uid| match uid {
            0 => "root".to_owned(),
            _ => format!("user{}", uid.saturating_sub(FIRST_USER) + 1),
        });
        process.cgroup = Reading::Absent(Why::NotAsked);
        process.unit = process.unit.take().map(|unit| match unit.rsplit_once('.') {
            Some((_, kind)) if KINDS_OF_UNIT.contains(&kind) => format!("unit.{kind}"),
            _ => "unit".to_owned(),
        });
        if let Some(container) = &mut process.container {
            container.id = None;
        }
        process.slurm_job = process.slurm_job.take().map(|_| "0".to_owned());
        process.environment = process.environment.take().map(|_| Reading::Absent(Why::NotAsked));
        process.model_files.clear();
    }

    fn user(&mut self, uid: u32) -> u32 {
        if uid == 0 {
            return 0;
        }
        let next = FIRST_USER + self.users.len() as u32;
        *self.users.entry(uid).or_insert(next)
    }
}

const KINDS_OF_UNIT: [&str; 3] = ["service", "scope", "slice"];

/// The last part of a path. A process may write anything at all over its arguments: what does not
/// look like a program's name is cut at the first blank.
fn base_name(program: &str) -> String {
    let word = program.split_whitespace().next().unwrap_or_default();
    word.rsplit('/').next().unwrap_or_default().to_owned()
}
