//! What is looked for in a command's output while it passes.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use memchr::memmem;

use crate::oom::{Explanation, Scanner};

/// Looks at a stream of bytes as they pass. It is on the way of the command's output: it must be
/// fast, and bounded in memory whatever comes.
pub trait Watch: Send {
    /// Takes the next bytes. True where an out-of-memory error has just been seen.
    fn feed(&mut self, bytes: &[u8]) -> bool;

    /// What the whole stream says; `None` where it says nothing that is known.
    fn finish(self: Box<Self>) -> Option<Explanation>;
}

/// What nearly every such error has in it.
const MARKS: [&[u8]; 5] = [
    b"ut of memory",
    b"OUT_OF_MEMORY",
    b"OutOfMemoryError",
    b"cudaErrorMemoryAllocation",
    b"RESOURCE_EXHAUSTED",
];
/// One less than the longest of them: a mark can lie across two reads.
const OVERLAP: usize = 24;

/// Tells at once that an error goes by. What it means takes longer, see [`Scan`].
struct Marks {
    finders: Vec<memmem::Finder<'static>>,
    tail: Vec<u8>,
}

impl Marks {
    fn new() -> Self {
        let finders = MARKS.iter().map(memmem::Finder::new).collect();
        Self { finders, tail: Vec::with_capacity(2 * OVERLAP) }
    }

    fn feed(&mut self, bytes: &[u8]) -> bool {
        let has_mark = |bytes: &[u8]| self.finders.iter().any(|mark| mark.find(bytes).is_some());
        self.tail.extend(bytes.get(..bytes.len().min(OVERLAP)).unwrap_or_default());
        let hit = has_mark(&self.tail) || has_mark(bytes);
        if bytes.len() > OVERLAP {
            self.tail.clear();
            self.tail.extend(bytes.get(bytes.len() - OVERLAP..).unwrap_or_default());
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(OVERLAP));
        }
        hit
    }
}

/// Pieces of output that wait to be scanned.
const QUEUE: usize = 64;
/// How long the explanation of what has come may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Has the stream explained, on a thread of its own from the first byte on: to get ready takes
/// longer than a short command runs.
pub struct Scan {
    marks: Marks,
    thread: Option<(SyncSender<Vec<u8>>, Receiver<Explanation>)>,
    failed: bool,
}

impl Default for Scan {
    fn default() -> Self {
        Self { marks: Marks::new(), thread: None, failed: false }
    }
}

impl Scan {
    fn begin(&mut self) {
        let (pieces, pieces_in) = sync_channel::<Vec<u8>>(QUEUE);
        let (answer, answer_in) = sync_channel(1);
        let scan = move || {
            let mut scanner = Scanner::new();
            for piece in pieces_in {
                scanner.push(&piece);
            }
            let _ = answer.send(scanner.finish());
        };
        match std::thread::Builder::new().name("scan".to_owned()).spawn(scan) {
            Ok(_) => self.thread = Some((pieces, answer_in)),
            Err(_) => self.failed = true,
        }
    }
}

impl Watch for Scan {
    fn feed(&mut self, bytes: &[u8]) -> bool {
        if self.thread.is_none() && !self.failed {
            self.begin();
        }
        if let Some((pieces, _)) = &self.thread {
            // It waits for nothing but its own arithmetic: a full queue is soon less full.
            let _ = pieces.send(bytes.to_vec());
        }
        self.marks.feed(bytes)
    }

    fn finish(self: Box<Self>) -> Option<Explanation> {
        let (pieces, answer) = self.thread?;
        drop(pieces);
        answer.recv_timeout(PATIENCE).ok().filter(|answer| answer.recognised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ERROR: &str = "Traceback\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate \
                         2.00 GiB. GPU 0 has a total capacity of 139.81 GiB\nmore\n";

    #[test]
    fn nothing_is_seen_in_ordinary_output() {
        let mut scan = Box::new(Scan::default());
        assert!(!scan.feed(b"epoch 1\n"));
        assert_eq!(scan.finish(), None);
        assert_eq!(Box::new(Scan::default()).finish(), None);
    }

    #[test]
    fn a_long_stream_is_explained() {
        let mut bytes = b"y\n".repeat(300_000);
        bytes.extend(ERROR.as_bytes());
        bytes.extend(b"y\n".repeat(300_000));
        let mut scan = Box::new(Scan::default());
        let hits = bytes.chunks(60_000).filter(|piece| scan.feed(piece)).count();
        assert!((1..=2).contains(&hits));
        let answer = scan.finish().unwrap();
        assert!(answer.is_gpu_oom);
        assert_eq!(answer.requested_bytes, Some(2 << 30));
    }

    proptest! {
        #[test]
        fn it_is_seen_wherever_it_is_cut(
            cuts in proptest::collection::vec(0_usize..ERROR.len(), 0..6),
        ) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut marks = Marks::new();
            let (mut from, mut hit) = (0, false);
            for cut in cuts.into_iter().chain([ERROR.len()]) {
                hit |= marks.feed(&ERROR.as_bytes()[from..cut]);
                from = cut;
            }
            prop_assert!(hit);
        }

        #[test]
        fn any_bytes_are_taken(chunks in proptest::collection::vec(any::<Vec<u8>>(), 0..8)) {
            let mut marks = Marks::new();
            for chunk in &chunks {
                marks.feed(chunk);
                prop_assert!(marks.tail.len() <= OVERLAP);
            }
        }
    }
}
