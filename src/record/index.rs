//! Where in a file which moment is.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::record::span::{SPAN_BYTES, Span};
use crate::record::{Header, ReadError, Reader};
use crate::sample::Tick;

/// Entries that an index keeps. Every 64 ticks make one, so that this is two years at one second.
const MAX_ENTRIES: usize = 1 << 20;
/// How far into a file the first signpost is looked for: behind the header.
const SEARCH: u64 = 256 << 10;

/// A frame with ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Where its signpost begins, in bytes from the start of the file.
    pub offset: u64,
    /// What it holds.
    pub span: Span,
}

/// The frames of a file, found by hopping from signpost to signpost. Empty for a plain file and
/// for one that another tool has compressed anew: such a file is only read from its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    entries: Vec<Entry>,
}

impl Index {
    /// Reads 32 bytes a frame. Stops at damage: what lies behind is still read in order.
    pub fn scan(file: &mut (impl Read + Seek)) -> std::io::Result<Self> {
        let mut entries = Vec::new();
        let mut at = first_signpost(file)?;
        while let Some(offset) = at.take() {
            file.seek(SeekFrom::Start(offset))?;
            let mut post = [0; SPAN_BYTES];
            if read_up_to(file, &mut post)? < SPAN_BYTES || entries.len() >= MAX_ENTRIES {
                break;
            }
            if let Some(span) = Span::decode(&post) {
                entries.push(Entry { offset, span });
                at = offset.checked_add(SPAN_BYTES as u64 + u64::from(span.frame_bytes));
            }
        }
        Ok(Self { entries })
    }

    /// Its frames, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The first and the last moment, in milliseconds since boot.
    pub fn covers(&self) -> Option<(u64, u64)> {
        let first = self.entries.first()?.span.from_boot_ms;
        Some((first, self.entries.last()?.span.to_boot_ms))
    }

    /// Where to read from, so that the state at `boot_ms` is known: one frame before the one that
    /// holds it, since GPU facts and host facts come at different moments.
    pub fn offset_before(&self, boot_ms: u64) -> Option<u64> {
        let behind = self.entries.partition_point(|entry| entry.span.from_boot_ms <= boot_ms);
        Some(self.entries.get(behind.saturating_sub(2))?.offset)
    }
}

fn first_signpost(file: &mut (impl Read + Seek)) -> std::io::Result<Option<u64>> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(SEARCH).read_to_end(&mut head)?;
    let found = head.windows(SPAN_BYTES).position(|bytes| Span::decode(bytes).is_some());
    Ok(found.map(|at| at as u64))
}

fn read_up_to(file: &mut impl Read, into: &mut [u8]) -> std::io::Result<usize> {
    let mut read = Vec::with_capacity(into.len());
    file.take(into.len() as u64).read_to_end(&mut read)?;
    for (to, from) in into.iter_mut().zip(&read) {
        *to = *from;
    }
    Ok(read.len())
}

/// A recording in a file, or one that is built in.
#[derive(Debug)]
pub struct Recording {
    bytes: Stored,
    header: Option<Header>,
    index: Index,
}

impl Recording {
    /// Opens a file, reads its header and its index.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = Arc::new(File::open(path)?);
        let index = Index::scan(&mut &*file)?;
        Self::over(Stored::File(file), index)
    }

    /// The same of one that lies in memory.
    pub fn built_in(bytes: &'static [u8]) -> Result<Self, ReadError> {
        let index = Index::scan(&mut std::io::Cursor::new(bytes))?;
        Self::over(Stored::BuiltIn(bytes), index)
    }

    fn over(bytes: Stored, index: Index) -> Result<Self, ReadError> {
        let first = BufReader::new(ReadAt { bytes: bytes.clone(), offset: 0 });
        let header = Reader::new(first)?.header().cloned();
        Ok(Self { bytes, header, index })
    }

    /// What it says of itself; `None` where that is damaged.
    pub const fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Where its moments are.
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// Its ticks from shortly before `boot_ms` on (milliseconds since boot), or all of them.
    /// Readers of one recording do not disturb each other.
    pub fn ticks(&self, boot_ms: Option<u64>) -> Result<Reader<impl Read + use<>>, ReadError> {
        self.read_from(boot_ms.and_then(|at| self.index.offset_before(at)))
    }

    /// Its ticks without the first `passed` of them. A file that is damaged before those has fewer
    /// in a frame than its signpost says: there the count is another.
    pub fn ticks_after(
        &self,
        passed: u64,
    ) -> Result<impl Iterator<Item = Tick> + use<>, ReadError> {
        let (mut ticks, mut before, mut offset) = (0_u64, 0, None);
        for entry in self.index.entries() {
            (before, offset) = (ticks, Some(entry.offset));
            ticks = ticks.saturating_add(u64::from(entry.span.ticks));
            if ticks > passed {
                break;
            }
        }
        let rest = usize::try_from(passed.saturating_sub(before)).unwrap_or(usize::MAX);
        Ok(self.read_from(offset.filter(|_| passed > 0))?.map_while(Result::ok).skip(rest))
    }

    fn read_from(&self, offset: Option<u64>) -> Result<Reader<impl Read + use<>>, ReadError> {
        let (bytes, from) = (self.bytes.clone(), offset.unwrap_or(0));
        let input = BufReader::new(ReadAt { bytes, offset: from });
        match offset {
            Some(_) => Ok(Reader::resumed(input, self.header.clone())),
            None => Reader::new(input),
        }
    }
}

/// Where its bytes are.
#[derive(Debug, Clone)]
enum Stored {
    File(Arc<File>),
    BuiltIn(&'static [u8]),
}

/// Reads what is shared from a place of its own.
#[derive(Debug)]
struct ReadAt {
    bytes: Stored,
    offset: u64,
}

impl Read for ReadAt {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = match &self.bytes {
            Stored::File(file) => file.read_at(into, self.offset)?,
            Stored::BuiltIn(bytes) => {
                let start = usize::try_from(self.offset).unwrap_or(usize::MAX);
                bytes.get(start..).unwrap_or_default().read(into)?
            }
        };
        self.offset += read as u64;
        Ok(read)
    }
}
