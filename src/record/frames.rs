//! Bytes to frames, whatever the bytes are.

use std::io::{self, Read};

use memchr::memmem;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use crate::record::MAX_FRAME_BYTES;
use crate::record::span::{DATA_MAGIC, is_skippable};

const CHUNK: usize = 64 << 10;
/// A skippable frame beyond this is not ours, and its length is not believed.
const MAX_SKIP: usize = 1 << 20;
/// Work in vain after which a file is given up, in bytes: frames inside of broken frames could ask
/// for any amount of it.
const MAX_WASTE: usize = 256 << 20;
/// 2^24 bytes hold the largest frame that is accepted.
const WINDOW_LOG: u32 = 24;

/// What comes next.
#[derive(Debug)]
pub(super) enum Piece {
    /// The text of a frame whose checksum is right.
    Text(Vec<u8>),
    /// Bytes that are no frame, or a frame that is broken or cut off. Reading goes on at the next
    /// frame that can be found.
    Damage,
    /// No more bytes.
    End,
}

/// Reads frames and finds the next one after damage.
pub(super) struct Frames<R> {
    input: R,
    held: Vec<u8>,
    start: usize,
    at_end: bool,
    wasted: usize,
}

impl<R: Read> Frames<R> {
    pub(super) const fn new(input: R) -> Self {
        Self { input, held: Vec::new(), start: 0, at_end: false, wasted: 0 }
    }

    pub(super) const fn input_mut(&mut self) -> &mut R {
        &mut self.input
    }

    /// The first bytes, up to four, without taking them.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        self.fill(4)?;
        let rest = self.rest();
        Ok(rest.get(..4).unwrap_or(rest))
    }

    pub(super) fn next(&mut self) -> io::Result<Piece> {
        loop {
            if self.wasted > MAX_WASTE {
                return Ok(Piece::End);
            }
            self.fill(8)?;
            let Some(magic) = self.rest().first_chunk::<4>().copied() else {
                let left = !self.rest().is_empty();
                self.start = self.held.len();
                return Ok(if left { Piece::Damage } else { Piece::End });
            };
            if magic == DATA_MAGIC {
                return self.frame();
            }
            if !is_skippable(magic) || !self.skip()? {
                self.resync()?;
                return Ok(Piece::Damage);
            }
        }
    }

    /// Passes over a skippable frame; says no where its length is not to be believed.
    fn skip(&mut self) -> io::Result<bool> {
        let Some(length) = self.rest().get(4..8).and_then(|b| b.first_chunk::<4>()) else {
            return Ok(false);
        };
        let whole = 8 + u32::from_le_bytes(*length) as usize;
        if whole > MAX_SKIP {
            return Ok(false);
        }
        self.fill(whole)?;
        if self.rest().len() < whole {
            return Ok(false);
        }
        self.start += whole;
        Ok(true)
    }

    fn frame(&mut self) -> io::Result<Piece> {
        if let Some((text, length)) = self.decode()? {
            self.start += length;
            return Ok(Piece::Text(text));
        }
        self.resync()?;
        Ok(Piece::Damage)
    }

    /// The text of the frame at the start and its compressed length; `None` where it is broken, cut
    /// off or too large.
    fn decode(&mut self) -> io::Result<Option<(Vec<u8>, usize)>> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
        let (mut text, mut chunk, mut taken) = (Vec::new(), vec![0; CHUNK], 0);
        loop {
            if taken == self.rest().len() {
                self.fill(taken + 1)?;
            }
            let Some(input) = self.rest().get(taken..).filter(|input| !input.is_empty()) else {
                return Ok(None);
            };
            let mut input = InBuffer::around(input);
            let mut output = OutBuffer::around(&mut chunk[..]);
            let done = decoder.run(&mut input, &mut output);
            taken += input.pos();
            text.extend_from_slice(output.as_slice());
            let Ok(hint) = done else {
                self.wasted += taken + text.len();
                return Ok(None);
            };
            if hint == 0 {
                return Ok(Some((text, taken)));
            }
            if text.len() > MAX_FRAME_BYTES || taken > MAX_FRAME_BYTES {
                self.wasted += taken + text.len();
                return Ok(None);
            }
        }
    }

    /// Goes to the next place, behind the first byte, that looks like the start of a frame. The
    /// broken frame's own length is not believed: it may have swallowed its neighbours.
    fn resync(&mut self) -> io::Result<()> {
        self.start += 1;
        loop {
            if let Some(at) = memmem::find(self.rest(), &DATA_MAGIC) {
                self.start += at;
                return Ok(());
            }
            // The magic number may lie across two reads.
            self.start = self.held.len().saturating_sub(DATA_MAGIC.len() - 1).max(self.start);
            let before = self.rest().len();
            self.fill(before + 1)?;
            if self.rest().len() == before {
                self.start = self.held.len();
                return Ok(());
            }
        }
    }

    fn rest(&self) -> &[u8] {
        self.held.get(self.start..).unwrap_or_default()
    }

    /// Reads until `count` bytes are there or no more come.
    fn fill(&mut self, count: usize) -> io::Result<()> {
        while !self.at_end && self.rest().len() < count {
            if self.start > 0 {
                self.held.drain(..self.start);
                self.start = 0;
            }
            let before = self.held.len();
            self.held.resize(before + CHUNK, 0);
            let read = self.input.read(self.held.get_mut(before..).unwrap_or_default());
            self.held.truncate(before + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(count) => self.at_end = count == 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One line of plain text with its newline taken off. `None` at the end.
    pub(super) fn line(&mut self, longest: usize) -> io::Result<Option<TextLine>> {
        let (mut searched, mut too_long) = (0, false);
        loop {
            let rest = self.rest();
            let found = rest.get(searched..).and_then(|new| memchr::memchr(b'\n', new));
            if let Some(at) = found.map(|at| at + searched) {
                let line = rest.get(..at).unwrap_or_default().to_vec();
                self.start += at + 1;
                return Ok(Some(if too_long { TextLine::TooLong } else { TextLine::Whole(line) }));
            }
            searched = rest.len();
            if searched > longest {
                (too_long, searched) = (true, 0);
                self.start = self.held.len();
            }
            let before = self.rest().len();
            self.fill(before + 1)?;
            if self.rest().len() == before {
                let cut = before > 0 || too_long;
                let line = self.rest().to_vec();
                self.start = self.held.len();
                return Ok(cut.then_some(if too_long {
                    TextLine::TooLong
                } else {
                    TextLine::Cut(line)
                }));
            }
        }
    }
}

/// A line of plain text.
#[derive(Debug)]
pub(super) enum TextLine {
    /// With a newline.
    Whole(Vec<u8>),
    /// The last one, without.
    Cut(Vec<u8>),
    /// Longer than allowed; passed over.
    TooLong,
}
