//! Asks inference servers about their memory, on a thread of its own: a server that is busy may not
//! answer within the time it has.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::allocator::servers::{AskLimits, ask, software};
use crate::ids::{ProcId, Stamp};
use crate::runtime::clock;
use crate::sample::{ProcSample, Reading, ServerSample, ServerSoftware, Why};

/// One server is asked no more often, in milliseconds.
const AGAIN_MS: u64 = 10_000;
/// Questions under way at the most.
const QUEUE: usize = 8;

struct Question {
    id: ProcId,
    software: ServerSoftware,
    ports: Vec<u16>,
}

type Answer = (ProcId, Reading<ServerSample>);

/// What servers have said.
pub struct Asking {
    known: HashMap<ProcId, (Stamp, Reading<ServerSample>)>,
    to: SyncSender<Question>,
    answers: Receiver<Answer>,
}

impl Asking {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn spawn() -> io::Result<Self> {
        let (to, questions) = sync_channel::<Question>(QUEUE);
        let (answer, answers) = sync_channel(QUEUE);
        std::thread::Builder::new().name("servers".to_owned()).spawn(move || {
            while let Ok(Question { id, software, ports }) = questions.recv() {
                let said = ask(software, id.pid, &ports, clock::now(), &AskLimits::default());
                if answer.send((id, said)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { known: HashMap::new(), to, answers })
    }

    /// Takes the answers that have come.
    pub fn listen(&mut self, now: Stamp) {
        while let Ok((id, said)) = self.answers.try_recv() {
            self.known.insert(id, (now, said));
        }
    }

    /// Forgets those that are gone.
    pub fn retain(&mut self, alive: impl Fn(ProcId) -> bool) {
        self.known.retain(|id, _| alive(*id));
    }

    /// What is known of a process that is a server; asks it for news.
    pub fn said(&mut self, process: &ProcSample, now: Stamp) -> Option<Reading<ServerSample>> {
        if process.listens.is_empty() {
            return None;
        }
        let software = process.cmdline.value().and_then(|line| software(line))?;
        let known = self.known.get(&process.id);
        if known.is_none_or(|(at, _)| now.since(*at) >= AGAIN_MS) {
            let ports = process.listens.clone();
            if self.to.try_send(Question { id: process.id, software, ports }).is_ok() {
                let before = known.map_or(Reading::Absent(Why::NotYet), |one| one.1.clone());
                self.known.insert(process.id, (now, before));
            }
        }
        self.known.get(&process.id).map(|(_, said)| said.clone())
    }
}
