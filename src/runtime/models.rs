//! Headers of the models that run: read once per file on a thread of their own, since a file can lie
//! on a disk that does not answer. The thread begins with the first of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::mpsc;

use crate::analyze::View;
use crate::model::{ModelFacts, facts};
use crate::sample::{Reading, Why};

/// Files that wait to be read at the most; the others are asked for again with the next view.
const QUEUE: usize = 16;
/// Headers that are kept at the most.
const KEPT: usize = 256;

type Answer = (String, Reading<ModelFacts>);

/// The reader of headers, seen from the loop.
pub struct Models {
    known: BTreeMap<String, Reading<ModelFacts>>,
    asked: BTreeSet<String>,
    /// The thread, once there is something to read.
    to: Option<SyncSender<String>>,
    answer: mpsc::Sender<Answer>,
    answers: mpsc::Receiver<Answer>,
}

impl Models {
    /// Of none yet.
    pub fn none() -> Self {
        let (answer, answers) = mpsc::channel(QUEUE);
        Self { known: BTreeMap::new(), asked: BTreeSet::new(), to: None, answer, answers }
    }

    /// Puts what is known into a view, and asks for what is not.
    pub fn complete(&mut self, view: &mut View) {
        self.collect();
        let mut models = BTreeMap::new();
        for path in view.model_paths() {
            match self.known.get(path) {
                Some(facts) => drop(models.insert(path.to_owned(), facts.clone())),
                None if self.asked.contains(path) => {}
                None => {
                    let asks = reader(&mut self.to, &self.answer);
                    if asks.is_some_and(|to| to.try_send(path.to_owned()).is_ok()) {
                        self.asked.insert(path.to_owned());
                    }
                }
            }
        }
        view.models = models;
    }

    /// Whether a header is still being read.
    pub fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }

    /// The next header, once it is read; whether one came.
    pub async fn next(&mut self) -> bool {
        match self.answers.recv().await {
            Some(answer) => {
                self.keep(answer);
                true
            }
            None => std::future::pending().await,
        }
    }

    fn collect(&mut self) {
        while let Ok(answer) = self.answers.try_recv() {
            self.keep(answer);
        }
    }

    fn keep(&mut self, (path, facts): Answer) {
        self.asked.remove(&path);
        if self.known.len() >= KEPT {
            self.known.clear();
        }
        self.known.insert(path, facts);
    }
}

/// The thread that reads; `None` where none is to be had now.
fn reader<'t>(
    to: &'t mut Option<SyncSender<String>>,
    answer: &mpsc::Sender<Answer>,
) -> Option<&'t SyncSender<String>> {
    if to.is_none() {
        let (paths, paths_in) = sync_channel(QUEUE);
        let answer = answer.clone();
        let thread = std::thread::Builder::new().name("models".to_owned());
        thread.spawn(move || read(&paths_in, &answer)).ok()?;
        *to = Some(paths);
    }
    to.as_ref()
}

fn read(paths: &Receiver<String>, answers: &mpsc::Sender<Answer>) {
    while let Ok(path) = paths.recv() {
        let reading = match facts(Path::new(&path)) {
            Ok(facts) => Reading::Value(facts),
            Err(_) => Reading::Absent(why(Path::new(&path))),
        };
        if answers.blocking_send((path, reading)).is_err() {
            return;
        }
    }
}

/// Why a header could not be read, as far as the file itself shows it.
fn why(path: &Path) -> Why {
    match std::fs::metadata(path).map(|_| ()).map_err(|error| error.kind()) {
        Err(io::ErrorKind::PermissionDenied) => Why::NoPermission,
        Err(_) => Why::Gone,
        Ok(()) => Why::UnknownLayout,
    }
}
