//! A reader that trusts no length: every request is held against what the file can hold, and all
//! of a header against a budget.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::error::ModelError;

/// Most bytes of one header that are walked through. The largest real ones are below 20 MiB.
const HEADER_BUDGET: u64 = 256 << 20;

/// Longest text that is kept; longer ones (chat templates) are passed over.
const KEPT_TEXT: u64 = 64 << 10;

/// Reads a header from the start of a file.
pub(crate) struct Bounded<R> {
    inner: BufReader<R>,
    len: u64,
    at: u64,
    budget: u64,
    /// Whether numbers are big-endian.
    pub big_endian: bool,
}

impl<R: Read + Seek> Bounded<R> {
    /// Starts at the first byte.
    pub fn new(mut inner: R) -> Result<Self, ModelError> {
        let len = inner.seek(SeekFrom::End(0))?;
        inner.seek(SeekFrom::Start(0))?;
        let inner = BufReader::with_capacity(64 << 10, inner);
        Ok(Self { inner, len, at: 0, budget: HEADER_BUDGET, big_endian: false })
    }

    /// Length of the file in bytes.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Bytes from the start.
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// Bytes that are left.
    pub const fn left(&self) -> u64 {
        self.len.saturating_sub(self.at)
    }

    fn claim(&mut self, n: u64, what: &'static str) -> Result<(), ModelError> {
        if n > self.left() {
            return Err(ModelError::Truncated { what, at: self.at });
        }
        if n > self.budget {
            let limit = HEADER_BUDGET;
            return Err(ModelError::TooLarge {
                what: "the header",
                value: self.at,
                limit,
                at: self.at,
            });
        }
        self.budget -= n;
        Ok(())
    }

    /// Fills an array.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ModelError> {
        self.claim(N as u64, what)?;
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// `n` bytes; the caller has a limit of its own besides the file's end.
    pub fn bytes(&mut self, n: u64, what: &'static str) -> Result<Vec<u8>, ModelError> {
        self.claim(n, what)?;
        let mut bytes = Vec::new();
        let got = self.inner.by_ref().take(n).read_to_end(&mut bytes)? as u64;
        self.at += got;
        if got < n { Err(ModelError::Truncated { what, at: self.at }) } else { Ok(bytes) }
    }

    /// Passes over `n` bytes without reading them.
    pub fn skip(&mut self, n: u64, what: &'static str) -> Result<(), ModelError> {
        if n > self.left() {
            return Err(ModelError::Truncated { what, at: self.at });
        }
        let step = i64::try_from(n).map_err(|_too_long| self.too_large(what, n, self.left()))?;
        self.inner.seek_relative(step)?;
        self.at += n;
        Ok(())
    }

    /// A count of things that take at least `each` bytes, held against the rest of the file and
    /// against `limit`.
    pub fn check_count(
        &self,
        value: u64,
        each: u64,
        limit: u64,
        what: &'static str,
    ) -> Result<usize, ModelError> {
        let limit = limit.min(self.left() / each.max(1));
        if value > limit {
            return Err(self.too_large(what, value, limit));
        }
        usize::try_from(value).map_err(|_too_long| self.too_large(what, value, limit))
    }

    fn too_large(&self, what: &'static str, value: u64, limit: u64) -> ModelError {
        ModelError::TooLarge { what, value, limit, at: self.at }
    }

    /// A 32-bit number.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, ModelError> {
        let bytes = self.array(what)?;
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// A 64-bit number.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, ModelError> {
        let bytes = self.array(what)?;
        Ok(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// A text of `n` bytes, or `None` where it is too long to be kept.
    pub fn text(&mut self, n: u64, what: &'static str) -> Result<Option<String>, ModelError> {
        if n > self.left() {
            return Err(self.too_large(what, n, self.left()));
        }
        if n > KEPT_TEXT {
            self.skip(n, what)?;
            return Ok(None);
        }
        let bytes = self.bytes(n, what)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}
