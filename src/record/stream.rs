//! A live stream from a machine that is not trusted: ticks and notes as they come.

use std::io::{self, Read};

use crate::ids::Stamp;
use crate::record::frames::{Frames, TextLine};
use crate::record::lines::{self, Header, Line};
use crate::record::note::Note;
use crate::record::{MAX_LINE_BYTES, ReadError};
use crate::sample::{Gap, GapCause, Tick};

/// What a shell may say before the stream begins, in lines: a greeting in its start-up files.
const PREAMBLE_LINES: u32 = 256;
/// Damaged lines after which a stream is given up.
const MAX_DAMAGE: u32 = 256;
/// Bytes without a line that can be read, after which a stream is given up.
const MAX_IDLE_BYTES: usize = 32 << 20;
/// No machine has been up for longer, and no calendar is needed beyond: two thousand years.
/// Milliseconds.
const LATEST_MS: u64 = 1 << 46;

/// Something that came.
#[derive(Debug)]
pub enum Arrival {
    /// What the stream says of itself.
    Header(Box<Header>),
    /// A tick, or the gap that damage has left.
    Tick(Box<Tick>),
    /// What stands beside ticks.
    Note(Box<Note>),
}

/// Reads a stream in its plain form. Lines have a fixed bound, damage costs the lines that it hit,
/// and a far end that sends nothing but nonsense is given up.
pub struct Stream<R> {
    frames: Frames<Metered<R>>,
    begun: bool,
    last: Option<Stamp>,
    ready: Option<Tick>,
    damaged: bool,
    bad_lines: u32,
    done: bool,
}

impl<R: Read> Stream<R> {
    /// Reads nothing yet.
    pub const fn new(input: R) -> Self {
        Self {
            frames: Frames::new(Metered { input, left: MAX_IDLE_BYTES }),
            begun: false,
            last: None,
            ready: None,
            damaged: false,
            bad_lines: 0,
            done: false,
        }
    }

    fn step(&mut self) -> Result<Option<Arrival>, ReadError> {
        loop {
            if let Some(tick) = self.ready.take() {
                return Ok(Some(Arrival::Tick(Box::new(tick))));
            }
            let line = match self.frames.line(MAX_LINE_BYTES)? {
                None => {
                    return if self.begun { Ok(None) } else { Err(ReadError::NotARecording) };
                }
                Some(TextLine::TooLong) => {
                    self.bad()?;
                    continue;
                }
                Some(TextLine::Whole(line) | TextLine::Cut(line)) => line,
            };
            if let Some(arrival) = self.take(&line)? {
                self.frames.input_mut().left = MAX_IDLE_BYTES;
                return Ok(Some(arrival));
            }
        }
    }

    fn take(&mut self, line: &[u8]) -> Result<Option<Arrival>, ReadError> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        match lines::parse(line) {
            Line::Foreign(schema) => return Err(ReadError::Schema(schema)),
            Line::Header(header) => {
                (self.begun, self.bad_lines, self.damaged) = (true, 0, false);
                return Ok(Some(Arrival::Header(header)));
            }
            // Nothing counts before the header.
            _ if !self.begun => self.bad()?,
            Line::Unknown | Line::End => {}
            Line::Damaged => self.bad()?,
            Line::Note(note) => {
                let at = match &*note {
                    Note::Pulse(pulse) => Some(pulse.at),
                    Note::Answer(_) => None,
                };
                if at.is_none_or(is_plausible) {
                    return Ok(Some(Arrival::Note(note)));
                }
                self.bad()?;
            }
            Line::Tick(tick) if !is_plausible(tick.at()) => self.bad()?,
            Line::Tick(tick) => {
                let at = tick.at();
                if std::mem::take(&mut self.damaged) {
                    let from = self.last.unwrap_or(at);
                    self.ready = Some(*tick);
                    self.last = Some(at);
                    let gap = Tick::Gap(Gap { from, to: at, cause: GapCause::Damaged });
                    return Ok(Some(Arrival::Tick(Box::new(gap))));
                }
                self.last = Some(at);
                return Ok(Some(Arrival::Tick(tick)));
            }
        }
        Ok(None)
    }

    fn bad(&mut self) -> Result<(), ReadError> {
        self.bad_lines += 1;
        self.damaged = self.begun;
        match self.begun {
            false if self.bad_lines > PREAMBLE_LINES => Err(ReadError::NotARecording),
            true if self.bad_lines > MAX_DAMAGE => Err(nonsense()),
            _ => Ok(()),
        }
    }
}

impl<R: Read> Iterator for Stream<R> {
    type Item = Result<Arrival, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = self.step().transpose();
        self.done = !matches!(step, Some(Ok(_)));
        step
    }
}

const fn is_plausible(at: Stamp) -> bool {
    at.boot_ms < LATEST_MS && at.wall_ms < LATEST_MS
}

fn nonsense() -> ReadError {
    let text = "too much of it is no line of a recording";
    ReadError::Io(io::Error::new(io::ErrorKind::InvalidData, text))
}

/// Lets through so many bytes and no more.
struct Metered<R> {
    input: R,
    left: usize,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let text = "it sends without end, and no line of a recording";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let read = self.input.read(buffer)?;
        self.left = self.left.saturating_sub(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Form, Pulse, Redaction, Writer};

    fn stamp(boot_ms: u64) -> Stamp {
        Stamp { boot_ms, wall_ms: 0 }
    }

    fn gap(boot_ms: u64) -> Tick {
        Tick::Gap(Gap { from: stamp(boot_ms), to: stamp(boot_ms), cause: GapCause::Away })
    }

    fn written() -> Vec<u8> {
        let header = Header::new(stamp(1), 1000);
        let redaction = Redaction::secrets(crate::sample::redact);
        let mut writer = Writer::new(Vec::new(), Form::Plain, header, redaction).unwrap();
        writer.push(&gap(5)).unwrap();
        let pulse = Pulse { at: stamp(6), call: None, dropped: 0, failure: None };
        writer.note(&Note::Pulse(pulse)).unwrap();
        writer.push(&gap(7)).unwrap();
        writer.finish().unwrap()
    }

    fn kinds(bytes: &[u8]) -> Vec<&'static str> {
        let kind = |arrival| match arrival {
            Ok(Arrival::Header(_)) => "header",
            Ok(Arrival::Tick(tick)) => match *tick {
                Tick::Gap(Gap { cause: GapCause::Damaged, .. }) => "damage",
                _ => "tick",
            },
            Ok(Arrival::Note(_)) => "note",
            Err(ReadError::NotARecording) => "no recording",
            Err(ReadError::Schema(_)) => "foreign",
            Err(ReadError::Io(_)) => "given up",
        };
        Stream::new(bytes).map(kind).collect()
    }

    #[test]
    fn notes_come_in_their_place_and_older_readers_pass_over_them() {
        assert_eq!(kinds(&written()), ["header", "tick", "note", "tick"]);
        let bytes = written();
        let ticks = crate::record::Reader::new(&bytes[..]).unwrap();
        assert_eq!(ticks.filter_map(Result::ok).count(), 2);
    }

    #[test]
    fn a_greeting_of_the_shell_is_passed_over() {
        let greeted = [b"Welcome to gpubox!\n\x1b[31m{}\n\n".to_vec(), written()].concat();
        assert_eq!(kinds(&greeted), ["header", "tick", "note", "tick"]);
        assert_eq!(kinds(b"Welcome\n"), ["no recording"]);
        assert_eq!(kinds(&b"Welcome\n".repeat(1000)), ["no recording"]);
    }

    #[test]
    fn damage_is_a_gap_and_nonsense_has_an_end() {
        let text = String::from_utf8(written()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(3, "{\"gpus\":{\"at\":");
        let broken = lines.join("\n");
        assert_eq!(kinds(broken.as_bytes()), ["header", "tick", "note", "damage", "tick"]);
        let header = lines[0].to_owned() + "\n";
        let nonsense = header.clone() + &"nonsense\n".repeat(100_000);
        assert_eq!(kinds(nonsense.as_bytes()), ["header", "given up"]);
        let endless = Read::chain(header.as_bytes(), io::repeat(b'x'));
        let last = Stream::new(endless).last().unwrap();
        assert!(matches!(last, Err(ReadError::Io(_))), "{last:?}");
        assert!(matches!(Stream::new(io::repeat(b'{')).next(), Some(Err(_))));
        let foreign = header.replace("\"1.", "\"7.");
        assert_eq!(kinds(foreign.as_bytes()), ["foreign"]);
    }
}
