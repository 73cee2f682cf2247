//! Where a session's ticks come from.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::mpsc::{self, Receiver};

use super::pair::Asking;
use crate::record;
use crate::runtime::inspector::Inspector;
use crate::runtime::options::{Options, driver, probe};
use crate::runtime::player::{self, Remote};
use crate::runtime::remote::Setup;
use crate::runtime::sampler::{Sampled, Sampler};
use crate::sample::Tick;
use crate::source::replay::Pace;
use crate::source::{Progress, SourceError};

/// Where ticks come from.
#[derive(Debug, Clone)]
pub enum From {
    /// The driver.
    Driver,
    /// The recording that is built in; it begins again at its end.
    Demo,
    /// A recording, this many times as fast.
    File(PathBuf, f64),
    /// Several machines.
    Hosts(Arc<Setup>),
}

impl From {
    /// What the banner says of a recording. Hostile text.
    pub fn title(&self) -> Option<String> {
        match self {
            Self::Driver | Self::Hosts(_) => None,
            Self::Demo => Some("an NVIDIA H200, built in".to_owned()),
            Self::File(path, _) => Some(path.display().to_string()),
        }
    }
}

/// The open source.
pub(super) enum Feed {
    Driver { sampler: Sampler, paused: Arc<AtomicBool> },
    Recording,
    Hosts,
}

/// The recording that is built in.
pub const DEMO: &[u8] = include_bytes!("../../../assets/demo.vrt");

/// The feed, what comes from it, and what comes from the inspector.
pub(super) type Opened = (Feed, Receiver<Sampled>, Receiver<Tick>);

/// Opens a source.
pub(super) fn open(options: &Options, from: &From, remote: &Remote) -> io::Result<Opened> {
    match from {
        From::Driver => {
            let progress = Arc::new(Progress::default());
            let (inspector, facts) = Inspector::spawn(probe(options))?;
            let paused = Arc::new(AtomicBool::new(false));
            let source = driver(options, &progress);
            let source = Asking::new(source, inspector, Arc::clone(&paused));
            let (sampler, samples) = Sampler::spawn(
                options.interval_ms,
                crate::source::Wants::default(),
                progress,
                source,
            )?;
            Ok((Feed::Driver { sampler, paused }, samples, facts))
        }
        From::Hosts(_) => Ok((Feed::Hosts, never(), never())),
        From::Demo => {
            let open = || record::Reader::new(DEMO).map_err(unreadable);
            Ok((Feed::Recording, player::spawn_under(remote, 1.0, open)?, never()))
        }
        From::File(path, speed) => {
            let path = path.clone();
            let samples = if path.as_os_str() == "-" {
                player::spawn(Pace::AsItComes, || {
                    record::Reader::new(io::BufReader::new(io::stdin())).map_err(unreadable)
                })?
            } else {
                player::spawn_under(remote, *speed, move || {
                    let recording = record::Recording::open(&path);
                    recording.and_then(|open| open.ticks(None)).map_err(|error| {
                        SourceError::Stream(format!("{}: {error}", path.display()))
                    })
                })?
            };
            Ok((Feed::Recording, samples, never()))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unreadable(error: record::ReadError) -> SourceError {
    SourceError::Stream(error.to_string())
}

/// A channel on which nothing comes; it stays open, so that the loop need not know.
fn never<T>() -> Receiver<T> {
    let (to, from) = mpsc::channel(1);
    std::mem::forget(to);
    from
}
