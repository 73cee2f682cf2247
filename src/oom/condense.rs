//! The first pass: any amount of log in, a bounded digest out. It looks for a few hundred short
//! texts at once, keeps what stands around those that announce an error, single lines around those
//! that only inform, and the two ends of the log; everything else is only counted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::lines::{LINE_MAX, Line, read};
use super::{clues, signatures};

/// Kept before an error, in bytes: its traceback.
const BEFORE: usize = 8 << 10;
/// Kept after an error, in bytes: the rest of the message, and what came of it.
const AFTER: usize = 8 << 10;
/// The buffer is worked on when it holds this much.
const BATCH: usize = 512 << 10;
/// Kept of the beginning and of the end, in bytes.
const ENDS: usize = 12 << 10;
/// Stretches around the first errors, and around the last ones.
const FIRST_BLOCKS: usize = 40;
const LAST_BLOCKS: usize = 12;
/// Lines kept for one informing text: the first ones and the last ones.
const FIRST_LINES: usize = 24;
const LAST_LINES: usize = 24;
/// The last ones are this far apart, in bytes: a log that says it on every line is not copied.
const SPACING: u64 = 4 << 10;
/// An informing line is cut to this.
const CLUE_LINE_MAX: usize = 1 << 10;

/// One text that the first pass looks for.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    text: &'static str,
    error: bool,
}

struct Needles {
    automaton: AhoCorasick,
    anchors: Vec<Anchor>,
}

/// Every text that a signature or a clue is found by. A text that both name announces an error.
static NEEDLES: LazyLock<Option<Needles>> = LazyLock::new(|| {
    let mut texts: BTreeMap<&'static str, bool> = BTreeMap::new();
    for signature in signatures::all() {
        for anchor in signature.anchors {
            *texts.entry(anchor).or_default() |= signature.class.is_error();
        }
    }
    for clue in clues::TABLE.iter().filter(|clue| clue.mark.is_looked_for()) {
        texts.entry(clue.needle).or_default();
    }
    for unit in clues::UNITS {
        texts.entry(unit).or_default();
    }
    let anchors: Vec<Anchor> =
        texts.into_iter().map(|(text, error)| Anchor { text, error }).collect();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(anchors.iter().map(|anchor| anchor.text))
        .ok()?;
    Some(Needles { automaton, anchors })
});

/// What was looked for, in words.
pub(super) fn needles() -> usize {
    NEEDLES.as_ref().map_or(0, |needles| needles.anchors.len())
}

#[derive(Debug, Default)]
struct Tally {
    hits: u64,
    first: Vec<(u64, Vec<u8>)>,
    last: VecDeque<(u64, Vec<u8>)>,
    /// No line before this place is kept any more: the last ones are spread out.
    not_before: u64,
}

#[derive(Debug)]
struct Block {
    start: u64,
    bytes: Vec<u8>,
}

/// The first pass. Memory is bounded whatever arrives.
#[derive(Debug)]
pub(super) struct Condenser {
    buf: Vec<u8>,
    /// Offset of `buf[0]` in the input.
    base: u64,
    /// Up to where `buf` has been searched.
    searched: usize,
    /// Up to where blocks cover the input.
    covered: u64,
    tallies: Vec<Tally>,
    first: Vec<Block>,
    last: VecDeque<Block>,
    lost_blocks: u64,
    steps: u64,
}

/// What the second pass reads.
#[derive(Debug, Default)]
pub(super) struct Digest {
    pub lines: Vec<Line>,
    /// How often each text was met in the whole input.
    pub counts: BTreeMap<&'static str, u64>,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Stretches that were dropped for space: first and last ones are kept.
    pub lost_blocks: u64,
    /// Whether the input ended with a line break.
    pub ends_with_newline: bool,
    /// Work done, in bytes touched.
    pub steps: u64,
}

impl Condenser {
    pub(super) fn new() -> Self {
        let count = needles();
        Self {
            buf: Vec::with_capacity(BATCH + BATCH / 2),
            base: 0,
            searched: 0,
            covered: 0,
            tallies: std::iter::repeat_with(Tally::default).take(count).collect(),
            first: Vec::new(),
            last: VecDeque::new(),
            lost_blocks: 0,
            steps: 0,
        }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = (BATCH + BATCH / 2).saturating_sub(self.buf.len()).max(1);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buf.extend_from_slice(now);
            bytes = later;
            if self.buf.len() >= BATCH {
                self.search(self.buf.len() - AFTER);
                self.forget();
            }
        }
    }

    fn end(&self) -> u64 {
        self.base + self.buf.len() as u64
    }

    /// Searches `buf` up to `limit`.
    fn search(&mut self, limit: usize) {
        let Some(needles) = NEEDLES.as_ref() else { return };
        if self.base == 0 && self.covered == 0 {
            self.keep_block(0, ENDS.min(self.buf.len()));
        }
        let from = self.searched;
        if limit <= from {
            return;
        }
        self.steps += (limit - from) as u64;
        let buf = std::mem::take(&mut self.buf);
        let mut at = from;
        // A text across the limit is found by the next search, which starts where this one ended.
        while let Some(hit) = needles.automaton.find(aho_corasick::Input::new(&buf).range(at..)) {
            if hit.start() >= limit {
                break;
            }
            at = hit.end();
            self.note(&buf, hit.start(), hit.pattern().as_usize(), needles);
        }
        self.searched = limit.max(at);
        self.buf = buf;
    }

    fn note(&mut self, buf: &[u8], at: usize, id: usize, needles: &Needles) {
        let error = needles.anchors.get(id).is_some_and(|anchor| anchor.error);
        if let Some(tally) = self.tallies.get_mut(id) {
            tally.hits += 1;
        }
        let position = self.base + at as u64;
        if error {
            // Well inside a block: the rest of its message is there.
            if position + (AFTER / 4) as u64 > self.covered {
                let covered = usize::try_from(self.covered.saturating_sub(self.base));
                let start = line_start(buf, at.saturating_sub(BEFORE), at);
                let start = start.max(covered.unwrap_or(usize::MAX).min(at));
                let end = line_end(buf, (at + AFTER).min(buf.len()));
                self.store(buf, start, end);
            }
        } else if position >= self.covered {
            self.keep_line(buf, at, id);
        }
    }

    fn keep_block(&mut self, start: usize, end: usize) {
        let buf = std::mem::take(&mut self.buf);
        self.store(&buf, start, line_end(&buf, end));
        self.buf = buf;
    }

    fn store(&mut self, buf: &[u8], start: usize, end: usize) {
        let Some(bytes) = buf.get(start..end) else { return };
        self.steps += bytes.len() as u64;
        let start = self.base + start as u64;
        self.covered = start + bytes.len() as u64;
        if self.first.len() < FIRST_BLOCKS {
            self.first.push(Block { start, bytes: bytes.to_vec() });
            return;
        }
        let mut block = if self.last.len() < LAST_BLOCKS {
            Block { start, bytes: Vec::with_capacity(bytes.len()) }
        } else {
            self.lost_blocks += 1;
            self.last.pop_front().unwrap_or(Block { start, bytes: Vec::new() })
        };
        block.start = start;
        block.bytes.clear();
        block.bytes.extend_from_slice(bytes);
        self.last.push_back(block);
    }

    fn keep_line(&mut self, buf: &[u8], at: usize, id: usize) {
        let position = self.base + at as u64;
        let Some(tally) = self.tallies.get_mut(id).filter(|tally| position >= tally.not_before)
        else {
            return;
        };
        let start = line_start(buf, at.saturating_sub(CLUE_LINE_MAX / 2), at);
        let end = next_break(buf, at, CLUE_LINE_MAX / 2);
        let Some(line) = buf.get(start..end) else { return };
        self.steps += line.len() as u64;
        let offset = self.base + start as u64;
        if tally.first.len() < FIRST_LINES {
            if tally.first.last().is_none_or(|(last, _)| *last != offset) {
                tally.first.push((offset, line.to_vec()));
            }
            return;
        }
        tally.not_before = position + SPACING;
        let mut kept = if tally.last.len() < LAST_LINES { None } else { tally.last.pop_front() }
            .unwrap_or_default();
        kept.0 = offset;
        kept.1.clear();
        kept.1.extend_from_slice(line);
        tally.last.push_back(kept);
    }

    /// Drops what nothing needs any more.
    fn forget(&mut self) {
        let keep = self.searched.saturating_sub(BEFORE.max(ENDS) + CLUE_LINE_MAX);
        self.steps += (self.buf.len() - keep) as u64;
        self.buf.copy_within(keep.., 0);
        self.buf.truncate(self.buf.len() - keep);
        self.base += keep as u64;
        self.searched -= keep;
    }

    /// The end of the input.
    pub(super) fn finish(mut self) -> Digest {
        self.search(self.buf.len());
        let tail = self.buf.len().saturating_sub(ENDS);
        let covered = usize::try_from(self.covered.saturating_sub(self.base)).unwrap_or(usize::MAX);
        if covered < self.buf.len() {
            let tail = line_start(&self.buf, tail, self.buf.len());
            self.keep_block(tail.max(covered), self.buf.len());
        }
        let bytes = self.end();
        let ends_with_newline = self.buf.last().is_none_or(|byte| *byte == b'\n');
        let mut counts = BTreeMap::new();
        if let Some(needles) = NEEDLES.as_ref() {
            for (anchor, tally) in needles.anchors.iter().zip(&self.tallies) {
                counts.insert(anchor.text, tally.hits);
            }
        }
        let (lost_blocks, steps) = (self.lost_blocks, self.steps);
        Digest { lines: self.lines(), counts, bytes, lost_blocks, ends_with_newline, steps }
    }

    /// Blocks and lines in the order of the input, each part once.
    fn lines(self) -> Vec<Line> {
        let mut parts: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for tally in self.tallies {
            for (offset, line) in tally.first.into_iter().chain(tally.last) {
                let slot = parts.entry(offset).or_default();
                if line.len() > slot.len() {
                    *slot = line;
                }
            }
        }
        for block in self.first.into_iter().chain(self.last) {
            parts.insert(block.start, block.bytes);
        }
        let mut lines = Vec::new();
        let mut reached = 0_u64;
        for (start, bytes) in parts {
            let end = start + bytes.len() as u64;
            let skip = usize::try_from(reached.saturating_sub(start)).unwrap_or(usize::MAX);
            let Some(fresh) = bytes.get(skip..).filter(|fresh| !fresh.is_empty()) else { continue };
            // A line break between two parts does not part them.
            split(fresh, start + skip as u64, start > reached + 2, &mut lines);
            reached = reached.max(end);
        }
        lines
    }
}

fn split(bytes: &[u8], start: u64, gap: bool, lines: &mut Vec<Line>) {
    let (mut at, mut gap) = (0, gap);
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let shown = length.min(LINE_MAX);
        if shown > 0 {
            read(rest.get(..shown).unwrap_or_default(), start + at as u64, gap, lines);
            gap = false;
        }
        at += if length > LINE_MAX { LINE_MAX } else { length + 1 };
    }
}

/// The beginning of the first whole line at or after `from`; `from` where that is behind `at`.
fn line_start(buf: &[u8], from: usize, at: usize) -> usize {
    if from == 0 {
        return 0;
    }
    let window = buf.get(from.saturating_sub(1)..at).unwrap_or_default();
    // For a single line the nearest break counts, for a block the first one does.
    let found = if at - from <= CLUE_LINE_MAX {
        memchr::memrchr2(b'\n', b'\r', window)
    } else {
        memchr::memchr2(b'\n', b'\r', window)
    };
    found.map_or(from, |offset| from + offset)
}

/// The end of the last whole line before `to`, or `to`.
fn line_end(buf: &[u8], to: usize) -> usize {
    if to >= buf.len() {
        return buf.len();
    }
    let from = to.saturating_sub(AFTER / 2);
    let window = buf.get(from..to).unwrap_or_default();
    memchr::memrchr2(b'\n', b'\r', window).map_or(to, |offset| from + offset + 1)
}

fn next_break(buf: &[u8], at: usize, most: usize) -> usize {
    let end = (at + most).min(buf.len());
    let window = buf.get(at..end).unwrap_or_default();
    memchr::memchr2(b'\n', b'\r', window).map_or(end, |offset| at + offset)
}
