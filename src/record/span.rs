//! The signpost in front of a frame.

/// Which stretch of time the next frame holds, and how long it is. Kept in a skippable zstd frame
/// (RFC 8878, section 3.1.2), which every zstd tool passes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Stamp of the first tick, in milliseconds since boot.
    pub from_boot_ms: u64,
    /// Stamp of the last tick, in milliseconds since boot.
    pub to_boot_ms: u64,
    /// Bytes of the compressed frame that follows.
    pub frame_bytes: u32,
    /// Ticks in it.
    pub ticks: u32,
}

/// First bytes of a frame with data.
pub(super) const DATA_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// First bytes of the skippable frames that are ours: sixteen magic numbers are free to choose from.
const SPAN_MAGIC: [u8; 4] = [0x5a, 0x2a, 0x4d, 0x18];
const PAYLOAD: u32 = 24;
/// Length of a signpost.
pub(super) const SPAN_BYTES: usize = 8 + PAYLOAD as usize;

impl Span {
    pub(super) fn encode(self) -> [u8; SPAN_BYTES] {
        let mut out = [0; SPAN_BYTES];
        let fields: [&[u8]; 6] = [
            &SPAN_MAGIC,
            &PAYLOAD.to_le_bytes(),
            &self.from_boot_ms.to_le_bytes(),
            &self.to_boot_ms.to_le_bytes(),
            &self.frame_bytes.to_le_bytes(),
            &self.ticks.to_le_bytes(),
        ];
        for (to, from) in out.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        out
    }

    /// The signpost at the start of `bytes`, where there is one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&SPAN_MAGIC)?.strip_prefix(&PAYLOAD.to_le_bytes())?;
        let (from, rest) = rest.split_first_chunk::<8>()?;
        let (to, rest) = rest.split_first_chunk::<8>()?;
        let (frame_bytes, rest) = rest.split_first_chunk::<4>()?;
        let (ticks, _) = rest.split_first_chunk::<4>()?;
        Some(Self {
            from_boot_ms: u64::from_le_bytes(*from),
            to_boot_ms: u64::from_le_bytes(*to),
            frame_bytes: u32::from_le_bytes(*frame_bytes),
            ticks: u32::from_le_bytes(*ticks),
        })
    }
}

/// Whether `magic` opens a skippable frame of anybody.
pub(super) fn is_skippable(magic: [u8; 4]) -> bool {
    matches!(u32::from_le_bytes(magic), 0x184d_2a50..=0x184d_2a5f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signpost_is_read_back_and_passed_over_by_zstd() {
        let span = Span { from_boot_ms: 7, to_boot_ms: u64::MAX, frame_bytes: 9, ticks: 64 };
        assert_eq!(Span::decode(&span.encode()), Some(span));
        assert_eq!(Span::decode(&span.encode()[..31]), None);
        assert!(is_skippable(SPAN_MAGIC) && !is_skippable(DATA_MAGIC));
        let mut file = span.encode().to_vec();
        file.extend(zstd::encode_all(&b"text"[..], 3).unwrap());
        assert_eq!(zstd::decode_all(&file[..]).unwrap(), b"text");
    }
}
