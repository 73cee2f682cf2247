//! The recording: format, writer, damage-tolerant reader.
//!
//! A `*.vrt` file is a series of zstd frames that do not depend on each other, each with a
//! checksum. Decompressed, it is text: one JSON object a line, and each object has one key that
//! says what the line is, so that `zstd -dc FILE | jq` works and a reader can pass over what it
//! does not know.
//!
//! | key | line |
//! |---|---|
//! | `header` | the first one, see [`Header`] |
//! | `gpus`, `procs`, `gap`, `kill` | a [`Tick`](crate::sample::Tick); `kill` since schema 1.2 |
//! | `end` | the last one: the recorder closed the file itself |
//! | `pulse`, `answer` | only in a live stream that answers requests, see [`Note`] |
//!
//! The header and the end have frames of their own; ticks share one, up to [`FRAME_TICKS`] of them,
//! [`FRAME_MS`] of time or [`FRAME_BYTES`] of text. In front of each frame with ticks stands a
//! skippable frame of 32 bytes (see [`Span`]) that says which stretch of time follows and how many
//! bytes to hop over, which makes a large file seekable and costs other tools nothing.
//!
//! The plain form, for pipes, is the same text without compression and without an end.
//!
//! Within a major number of the schema fields are only ever added. A reader ignores fields and kinds
//! of lines that it does not know, and refuses another major number.

mod file;
mod frames;
mod index;
mod kept;
mod lines;
mod note;
mod pseudonyms;
mod reader;
mod recorder;
mod redact;
mod span;
mod stream;
mod writer;

pub use file::{FileWriter, Full, OnFull, OutputError, part_path};
pub use index::{Entry, Index, Recording};
pub use lines::{Header, SCHEMA, SchemaVersion};
pub use note::{
    Answer, Answered, Ask, Call, Expected, MAX_REQUEST_BYTES, MAX_TARGETS, Note, Offer, OfferRow,
    Outcome, Pulse, Request,
};
pub use reader::{ReadError, Reader};
pub use recorder::{Output, RecordError, Recorder, Totals};
pub use redact::{RedactCommand, Redaction};
pub use span::Span;
pub use stream::{Arrival, Stream};
pub use writer::{Form, Writer};

/// Ticks that share a frame, at the most. What a crash can lose.
pub const FRAME_TICKS: u32 = 64;
/// Time that a frame covers, at the most, in milliseconds.
pub const FRAME_MS: u64 = 30_000;
/// Text in a frame after which it is closed, in bytes.
pub const FRAME_BYTES: usize = 4 << 20;
/// Text that a reader accepts in one line, in bytes. A tick of 16 GPUs and 400 processes has about
/// one million.
pub const MAX_LINE_BYTES: usize = 8 << 20;
/// Text that a reader accepts in one frame, and bytes that it reads to find a frame's end. More is
/// damage.
pub const MAX_FRAME_BYTES: usize = FRAME_BYTES + MAX_LINE_BYTES;
