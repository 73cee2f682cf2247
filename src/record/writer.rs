//! Lines to bytes.

use std::io::{self, Write};

use crate::ids::Stamp;
use crate::record::lines::{End, Written};
use crate::record::{FRAME_BYTES, FRAME_MS, FRAME_TICKS, Header, Note, Redaction, Span};
use crate::sample::Tick;
use crate::sample::text::write_json;

const LEVEL: i32 = 6;

/// How lines become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// zstd frames: for files. A tick reaches the output when its frame is full.
    Frames,
    /// Text, flushed after every line: for pipes.
    Plain,
}

/// Writes a recording to anything that takes bytes.
pub struct Writer<W: Write> {
    out: W,
    form: Form,
    header: Header,
    redaction: Redaction,
    frame: Vec<u8>,
    frame_ticks: u32,
    first: Option<Stamp>,
    last: Option<Stamp>,
    ticks: u64,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a recording: writes the header.
    pub fn new(out: W, form: Form, header: Header, redaction: Redaction) -> io::Result<Self> {
        let header = redaction.header(header);
        let (frame, frame_ticks, first, last) = (Vec::new(), 0, None, None);
        let (ticks, written) = (0, 0);
        let mut writer =
            Self { out, form, header, redaction, frame, frame_ticks, first, last, ticks, written };
        write_json(&mut writer.frame, &Written::Header(&writer.header))?;
        writer.line_done()?;
        writer.flush()?;
        Ok(writer)
    }

    /// Adds one tick.
    pub fn push(&mut self, tick: &Tick) -> io::Result<()> {
        let at = tick.at();
        if self.first.is_some_and(|first| at.since(first) >= FRAME_MS) {
            self.flush()?;
        }
        write_json(&mut self.frame, &*self.redaction.tick(tick))?;
        // Ticks of two threads may come a little out of order.
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(Some(at));
        self.frame_ticks += 1;
        self.ticks += 1;
        self.line_done()?;
        if self.frame_ticks >= FRAME_TICKS || self.frame.len() >= FRAME_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds a note; only a live stream has any.
    pub fn note(&mut self, note: &Note) -> io::Result<()> {
        if self.form == Form::Frames {
            return Ok(());
        }
        write_json(&mut self.frame, note)?;
        self.line_done()
    }

    /// Closes the frame under way, so that everything pushed so far can be read.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.form == Form::Frames && !self.frame.is_empty() {
            let packed = compress(&self.frame)?;
            if let (Some(first), Some(last)) = (self.first, self.last)
                && let Ok(frame_bytes) = u32::try_from(packed.len())
            {
                let (from_boot_ms, to_boot_ms) = (first.boot_ms, last.boot_ms);
                let ticks = self.frame_ticks;
                let span = Span { from_boot_ms, to_boot_ms, frame_bytes, ticks };
                self.put(&span.encode())?;
            }
            self.put(&packed)?;
            self.frame.clear();
        }
        (self.frame_ticks, self.first, self.last) = (0, None, None);
        self.out.flush()
    }

    /// Ends the recording and gives the output back. Without this it reads as cut off.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        if self.form == Form::Frames {
            write_json(&mut self.frame, &Written::End(End { ticks: self.ticks }))?;
            self.line_done()?;
            self.flush()?;
        }
        Ok(self.out)
    }

    /// Whether a frame is under way whose first tick is older than a frame may last at `boot_ms`.
    pub fn overdue(&self, boot_ms: u64) -> bool {
        self.first.is_some_and(|first| boot_ms.saturating_sub(first.boot_ms) >= FRAME_MS)
    }

    /// Ticks so far.
    pub const fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Bytes that reached the output so far.
    pub const fn written(&self) -> u64 {
        self.written
    }

    pub(super) const fn header(&self) -> &Header {
        &self.header
    }

    fn line_done(&mut self) -> io::Result<()> {
        self.frame.push(b'\n');
        if self.form == Form::Plain {
            let line = std::mem::take(&mut self.frame);
            self.put(&line)?;
            self.out.flush()?;
            self.frame = line;
            self.frame.clear();
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

fn compress(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.include_checksum(true)?;
    compressor.compress(text)
}
