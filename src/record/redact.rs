//! What does not go into a recording.

use std::borrow::Cow;
use std::sync::Arc;

use crate::record::Header;
use crate::record::kept;
use crate::record::pseudonyms::Pseudonyms;
use crate::sample::{
    Container, GpuTick, KillMark, KillMarked, ProcSample, ProcTick, Reading, Tick, Why,
};

/// Takes secrets out of the arguments of a command.
pub type RedactCommand = fn(&[String]) -> Vec<String>;

/// What is taken out of ticks before they are written.
#[derive(Debug, Clone)]
pub struct Redaction {
    command: RedactCommand,
    identities: bool,
    names: Box<Pseudonyms>,
}

impl Redaction {
    /// Secrets in command lines only.
    pub fn secrets(command: RedactCommand) -> Self {
        Self { command, identities: false, names: Box::new(Pseudonyms::new()) }
    }

    /// Besides: arguments, names of users and of the host, paths, units, containers, jobs, models,
    /// scripts, environments, UUIDs of GPUs. What verdicts are made of stays, so that the recording
    /// leads to the same ones: names of programs, states, bytes and times, the words by which a worker
    /// is known, whether something is a service, and, by names that stand for others, what is of one
    /// user, unit, job or GPU.
    pub fn identities(command: RedactCommand) -> Self {
        Self { command, identities: true, names: Box::new(Pseudonyms::new()) }
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
            Tick::Gpus(tick) if self.identities => return Cow::Owned(Tick::Gpus(self.gpus(tick))),
            Tick::Kill(mark) if self.identities => return Cow::Owned(Tick::Kill(nameless(mark))),
            _ => return Cow::Borrowed(tick),
        };
        let mut tick = tick.clone();
        if self.identities {
            self.names.begin_processes();
        }
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

    fn gpus(&mut self, tick: &GpuTick) -> GpuTick {
        let mut tick = tick.clone();
        self.names.begin_gpus();
        for gpu in &mut tick.gpus {
            gpu.uuid = self.names.gpu(&gpu.uuid);
            if let Some(mig) = &mut gpu.mig {
                mig.parent = self.names.gpu(&mig.parent);
            }
        }
        let watched = tick.xid.watched.iter_mut().map(|watched| &mut watched.gpu);
        for uuid in watched.chain(tick.xid.events.iter_mut().map(|event| &mut event.gpu)) {
            *uuid = self.names.gpu(uuid);
        }
        tick
    }

    fn host(&mut self, tick: &mut ProcTick) {
        tick.host.euid = self.names.uid(tick.host.euid);
        tick.host.hostname = tick.host.hostname.as_ref().map(|_| "host".to_owned());
        tick.host.container = tick.host.container.as_ref().map(nameless_container);
    }

    fn anonymous(&mut self, process: &mut ProcSample) {
        let arguments = process.cmdline.value().map_or(&[][..], Vec::as_slice);
        process.comm = self.names.comm(&process.comm, arguments);
        if let Reading::Value(arguments) = &mut process.cmdline {
            *arguments = arguments
                .iter()
                .enumerate()
                .filter_map(|(n, text)| match n {
                    0 => Some(self.names.program(text)),
                    _ => kept::argument(n, text),
                })
                .collect();
        }
        let uid = process.uid.map(|uid| self.names.uid(uid));
        process.uid = uid;
        process.user = process.user.as_ref().and_then(|_| uid).map(Pseudonyms::user);
        process.cgroup = process.cgroup.as_ref().map(|path| self.names.cgroup(path));
        process.unit = process.unit.take().map(|unit| self.names.unit(&unit));
        process.container = process.container.as_ref().map(nameless_container);
        process.slurm_job = process.slurm_job.take().map(|job| self.names.job(&job));
        if let Some(Reading::Value(variables)) = &mut process.environment {
            *variables =
                variables.iter().filter_map(|variable| self.names.variable(variable)).collect();
        }
        process.model_files.clear();
        if let Some(Reading::Value(server)) = &mut process.server {
            for model in &mut server.models {
                model.name = self.names.model(&model.name);
                // In the time of a place.
                model.expires = None;
            }
        }
        if let Some(Reading::Value(allocator)) = &mut process.allocator {
            for device in &mut allocator.devices {
                device.gpu = device.gpu.as_ref().map(|uuid| self.names.gpu(uuid));
            }
        }
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

/// Neither its id nor a word that somebody chose.
fn nameless_container(container: &Container) -> Container {
    Container { runtime: kept::runtime(&container.runtime), id: None }
}
