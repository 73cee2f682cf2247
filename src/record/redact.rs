//! What does not go into a recording.

use std::borrow::Cow;
use std::sync::Arc;

use crate::record::Header;
use crate::record::pseudonyms::{Pseudonyms, argument, variable};
use crate::sample::{KillMark, KillMarked, ProcSample, ProcTick, Reading, Tick, Why};

/// Takes secrets out of the arguments of a command.
pub type RedactCommand = fn(&[String]) -> Vec<String>;

/// What is taken out of ticks before they are written.
#[derive(Debug, Clone)]
pub struct Redaction {
    command: RedactCommand,
    identities: bool,
    names: Pseudonyms,
}

impl Redaction {
    /// Secrets in command lines only.
    pub const fn secrets(command: RedactCommand) -> Self {
        Self { command, identities: false, names: Pseudonyms::new() }
    }

    /// Besides: arguments, names of users and of the host, paths, units, containers, jobs,
    /// environments. What verdicts are made of stays, so that the recording leads to the same ones:
    /// names of programs, states, bytes and times, the words by which a worker is known, whether
    /// something is a service, and, by names that stand for others, what is of one user, unit or job.
    pub const fn identities(command: RedactCommand) -> Self {
        Self { command, identities: true, names: Pseudonyms::new() }
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
        let tick = match tick {
            Tick::Procs(tick) => tick,
            Tick::Kill(mark) if self.identities => return Cow::Owned(Tick::Kill(nameless(mark))),
            _ => return Cow::Borrowed(tick),
        };
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
        tick.host.euid = self.names.uid(tick.host.euid);
        tick.host.hostname = tick.host.hostname.as_ref().map(|_| "host".to_owned());
        if let Some(container) = &mut tick.host.container {
            container.id = None;
        }
    }

    fn anonymous(&mut self, process: &mut ProcSample) {
        if let Reading::Value(arguments) = &mut process.cmdline {
            *arguments = arguments
                .iter()
                .enumerate()
                .filter_map(|(n, text)| match n {
                    0 => Some(base_name(text)),
                    _ => argument(n, text),
                })
                .collect();
        }
        let uid = process.uid.map(|uid| self.names.uid(uid));
        process.uid = uid;
        process.user = process.user.as_ref().and_then(|_| uid).map(Pseudonyms::user);
        process.cgroup = process.cgroup.as_ref().map(|path| self.names.cgroup(path));
        process.unit = process.unit.take().map(|unit| self.names.unit(&unit));
        if let Some(container) = &mut process.container {
            container.id = None;
        }
        process.slurm_job = process.slurm_job.take().map(|job| self.names.job(&job));
        if let Some(Reading::Value(variables)) = &mut process.environment {
            *variables = variables.iter().filter_map(variable).collect();
        }
        process.model_files.clear();
    }
}

/// A script's name is an argument.
fn nameless(mark: &KillMark) -> KillMark {
    let mut mark = mark.clone();
    if let KillMarked::Signal { name, .. } = &mut mark.what {
        name.clear();
    }
    mark
}

/// The last part of a path. A process may write anything at all over its arguments: what does not
/// look like a program's name is cut at the first blank.
fn base_name(program: &str) -> String {
    let word = program.split_whitespace().next().unwrap_or_default();
    word.rsplit('/').next().unwrap_or_default().to_owned()
}
