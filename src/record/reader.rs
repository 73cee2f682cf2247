//! A recording back to ticks, as far as it is whole.

use std::collections::VecDeque;
use std::io::{self, Read};

use crate::ids::Stamp;
use crate::record::frames::{Frames, Piece, TextLine};
use crate::record::lines::{self, Header, Line, SCHEMA, SchemaVersion};
use crate::record::{MAX_LINE_BYTES, span};
use crate::sample::{Gap, GapCause, Tick};

/// Damaged places after which the rest is given up: a file of nothing but false frames would
/// otherwise be tried at each of its bytes.
const MAX_DAMAGE: u32 = 4096;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is something else, or nothing of it is left.
    #[error("not a recording of vramlens, or one that was cut off before its first tick")]
    NotARecording,
    /// Written by a version whose lines mean something else.
    #[error(
        "the recording has schema {0} and this version reads {SCHEMA}: use the version of vramlens \
         that wrote it, or a later one"
    )]
    Schema(SchemaVersion),
    /// The file or pipe failed.
    #[error("the recording cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Gives the ticks of a recording in order. Both forms are told apart by their first bytes.
///
/// Damage costs the frame that it hit and no more, and shows as a [`Gap`] with the cause
/// `Damaged` between the ticks around it. A file that was not closed in order ends in such a gap.
/// No length in the file is trusted: lines, frames and their decompressed text have fixed bounds.
pub struct Reader<R> {
    frames: Frames<R>,
    plain: bool,
    header: Option<Header>,
    ready: VecDeque<Tick>,
    text: Vec<u8>,
    text_at: usize,
    last: Option<Stamp>,
    damaged: bool,
    damage_count: u32,
    closed: bool,
    done: bool,
}

impl<R: Read> Reader<R> {
    /// Reads up to the header, or to the first tick where the header is damaged.
    pub fn new(input: R) -> Result<Self, ReadError> {
        let mut reader = Self::bare(input);
        let first = reader.frames.peek()?;
        reader.plain = first.first() == Some(&b'{') && first != span::DATA_MAGIC;
        while reader.header.is_none() && reader.ready.is_empty() {
            if !reader.step()? {
                return Err(ReadError::NotARecording);
            }
        }
        Ok(reader)
    }

    /// Reads on from the middle of a file in frames, whose header is known.
    pub(super) fn resumed(input: R, header: Option<Header>) -> Self {
        Self { header, ..Self::bare(input) }
    }

    const fn bare(input: R) -> Self {
        Self {
            frames: Frames::new(input),
            plain: false,
            header: None,
            ready: VecDeque::new(),
            text: Vec::new(),
            text_at: 0,
            last: None,
            damaged: false,
            damage_count: 0,
            closed: false,
            done: false,
        }
    }

    /// What the recording says of itself; `None` where that is damaged.
    pub const fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Whether the plain form is read: most likely a live stream.
    pub const fn is_plain(&self) -> bool {
        self.plain
    }

    /// Takes one line or one frame in; no at the end.
    fn step(&mut self) -> Result<bool, ReadError> {
        if self.plain { self.step_plain() } else { self.step_frames() }
    }

    fn step_plain(&mut self) -> Result<bool, ReadError> {
        match self.frames.line(MAX_LINE_BYTES)? {
            None => return Ok(false),
            Some(TextLine::TooLong) => self.damage(),
            // Where it is cut, the newline alone may be missing; a half line is damage.
            Some(TextLine::Whole(line) | TextLine::Cut(line)) => self.take(&line)?,
        }
        Ok(self.damage_count < MAX_DAMAGE)
    }

    fn step_frames(&mut self) -> Result<bool, ReadError> {
        if let Some(line) = self.text.get(self.text_at..).filter(|rest| !rest.is_empty()) {
            let length = memchr::memchr(b'\n', line).unwrap_or(line.len());
            let line = line.get(..length).unwrap_or_default().to_vec();
            self.text_at += length + 1;
            if line.len() > MAX_LINE_BYTES {
                self.damage();
            } else {
                self.take(&line)?;
            }
            return Ok(true);
        }
        match self.frames.next()? {
            Piece::End => {
                // A file without its last line was cut off where a frame ended.
                self.damaged |= !self.closed;
                return Ok(false);
            }
            Piece::Damage => self.damage(),
            Piece::Text(text) => (self.text, self.text_at) = (text, 0),
        }
        Ok(self.damage_count < MAX_DAMAGE)
    }

    fn damage(&mut self) {
        self.damaged = true;
        self.damage_count += 1;
    }

    fn take(&mut self, line: &[u8]) -> Result<(), ReadError> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        match lines::parse(line) {
            Line::Foreign(schema) => return Err(ReadError::Schema(schema)),
            // A second one stands where recordings were joined.
            Line::Header(header) => {
                self.closed = false;
                self.header.get_or_insert(*header);
            }
            Line::Unknown | Line::Note(_) => {}
            Line::End => self.closed = true,
            Line::Damaged => self.damage(),
            Line::Tick(tick) => {
                self.closed = false;
                self.mend(tick.at());
                self.last = Some(tick.at());
                self.ready.push_back(*tick);
            }
        }
        Ok(())
    }

    /// Names the damage since the last tick, now that it is known where it ends.
    fn mend(&mut self, to: Stamp) {
        if std::mem::take(&mut self.damaged) {
            let from = self.last.unwrap_or(to);
            self.ready.push_back(Tick::Gap(Gap { from, to, cause: GapCause::Damaged }));
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Tick, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(tick) = self.ready.pop_front() {
                return Some(Ok(tick));
            }
            if self.done {
                return None;
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => {
                    self.done = true;
                    if let Some(end) = self.last.or(self.header.as_ref().map(|h| h.started)) {
                        self.mend(end);
                    }
                }
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
