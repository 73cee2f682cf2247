//! What is looked for in a command's output while it passes.

use std::collections::VecDeque;

use memchr::memmem;

use crate::units::Bytes;

/// An out-of-memory error that went by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// What it means, or the message as it was printed: one line each. May hold hostile text.
    pub lines: Vec<String>,
    /// What it asked for, where it says that.
    pub requested: Option<Bytes>,
    /// Whether the host ran out of memory, not a GPU.
    pub host: bool,
}

/// Looks at a stream of bytes as they pass. It is on the way of the command's output: it must be
/// fast, and bounded in memory whatever comes.
pub trait Watch: Send {
    /// Takes the next bytes. True where an out-of-memory error has just been seen.
    fn feed(&mut self, bytes: &[u8]) -> bool;

    /// What was seen in all.
    fn finish(self: Box<Self>) -> Option<Seen>;
}

/// What any such error has in it.
const MARKS: [&[u8]; 5] = [
    b"ut of memory",
    b"OUT_OF_MEMORY",
    b"OutOfMemoryError",
    b"cudaErrorMemoryAllocation",
    b"RESOURCE_EXHAUSTED",
];
/// One less than the longest of them: a mark can lie across two reads.
const OVERLAP: usize = 24;
/// Of the output, this much is remembered for the message.
const KEPT: usize = 16 << 10;
/// Longest line that is given back.
const LINE: usize = 2_000;

/// Looks for the words that all such errors share, and gives back the lines that hold them.
pub struct Marks {
    finders: Vec<memmem::Finder<'static>>,
    tail: VecDeque<u8>,
    hit: bool,
    /// The output around the last error, frozen once the line is over.
    found: Vec<u8>,
    open: bool,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            finders: MARKS.iter().map(memmem::Finder::new).collect(),
            tail: VecDeque::with_capacity(KEPT),
            hit: false,
            found: Vec::new(),
            open: false,
        }
    }
}

impl Marks {
    fn has_mark(&self, bytes: &[u8]) -> bool {
        self.finders.iter().any(|finder| finder.find(bytes).is_some())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let bytes = bytes.get(bytes.len().saturating_sub(KEPT)..).unwrap_or_default();
        let surplus = (self.tail.len() + bytes.len()).saturating_sub(KEPT);
        self.tail.drain(..surplus);
        self.tail.extend(bytes);
    }
}

impl Watch for Marks {
    fn feed(&mut self, bytes: &[u8]) -> bool {
        let from = self.tail.len().saturating_sub(OVERLAP);
        let mut seam: Vec<u8> = self.tail.range(from..).copied().collect();
        seam.extend(bytes.get(..bytes.len().min(OVERLAP)).unwrap_or_default());
        let hit = self.has_mark(&seam) || self.has_mark(bytes);
        if hit {
            // A long read may hold the error far from its end.
            let at = self.finders.iter().filter_map(|finder| finder.find(bytes)).min();
            let near = at.map_or(bytes, |at| {
                let end = (at + KEPT / 2).min(bytes.len());
                bytes.get(at.saturating_sub(KEPT / 2)..end).unwrap_or_default()
            });
            self.keep(near);
            self.found = self.tail.iter().copied().collect();
            self.open = true;
        } else {
            self.keep(bytes);
            if self.open && self.found.len() < 2 * KEPT {
                self.found.extend(bytes.iter().take(KEPT));
            }
            self.open = false;
        }
        self.hit |= hit;
        hit
    }

    fn finish(self: Box<Self>) -> Option<Seen> {
        if !self.hit {
            return None;
        }
        let text = String::from_utf8_lossy(&self.found);
        let marked = |line: &&str| self.has_mark(line.as_bytes());
        let lines = text.split(['\n', '\r']).filter(marked);
        let mut lines: Vec<String> = lines
            .map(|line| line.trim().chars().filter(|c| !c.is_control()).take(LINE).collect())
            .collect();
        lines.dedup();
        let surplus = lines.len().saturating_sub(3);
        lines.drain(..surplus);
        let host = lines.iter().all(|line| line.contains("DefaultCPUAllocator"));
        Some(Seen { lines, requested: None, host })
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
        let mut marks = Box::new(Marks::default());
        assert!(!marks.feed(b"epoch 1\n"));
        assert_eq!(marks.finish(), None);
    }

    #[test]
    fn a_long_read_loses_nothing() {
        let mut bytes = vec![b'x'; 40_000];
        bytes.extend(b"\nRuntimeError: CUDA out of memory.\n");
        bytes.extend(vec![b'y'; 40_000]);
        let mut marks = Box::new(Marks::default());
        assert!(marks.feed(&bytes));
        assert_eq!(marks.finish().unwrap().lines, ["RuntimeError: CUDA out of memory."]);
    }

    proptest! {
        #[test]
        fn it_is_seen_wherever_it_is_cut(cuts in proptest::collection::vec(0_usize..ERROR.len(), 0..6)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut marks = Box::new(Marks::default());
            let (mut from, mut hit) = (0, false);
            for cut in cuts.into_iter().chain([ERROR.len()]) {
                hit |= marks.feed(&ERROR.as_bytes()[from..cut]);
                from = cut;
            }
            prop_assert!(hit);
            let seen = marks.finish().unwrap();
            prop_assert!(seen.lines[0].contains("OutOfMemoryError: CUDA out"), "{:?}", seen);
            prop_assert!(!seen.host);
        }

        #[test]
        fn any_bytes_are_taken(chunks in proptest::collection::vec(any::<Vec<u8>>(), 0..8)) {
            let mut marks = Box::new(Marks::default());
            for chunk in &chunks {
                marks.feed(chunk);
            }
            marks.finish();
        }
    }
}
