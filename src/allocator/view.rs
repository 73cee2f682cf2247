//! Numbers in copied bytes, without a length that is trusted.

/// Little-endian numbers at byte offsets of a copy; `None` behind its end.
#[derive(Debug, Clone, Copy)]
pub struct View<'a>(pub &'a [u8]);

impl View<'_> {
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    /// An unsigned 64-bit word.
    pub fn word(self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    /// A signed 64-bit word.
    pub fn signed(self, at: usize) -> Option<i64> {
        self.array(at).map(i64::from_le_bytes)
    }

    /// An unsigned 32-bit word.
    pub fn half(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// An unsigned 16-bit word.
    pub fn quarter(self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    /// A byte.
    pub fn byte(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }
}
