//! What a process takes on a GPU besides the buffers that it asks for: context, kernels, handles.

use serde::Serialize;

const MIB: u64 = 1 << 20;

/// Bytes of a CUDA context with the kernels of an inference program loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Overhead {
    /// The likely figure.
    pub bytes: u64,
    /// At least.
    pub low: u64,
    /// At most.
    pub high: u64,
    /// Whether it comes from a process that runs here.
    pub measured: bool,
}

/// MiB likely and at most, by a part of the card's name. Seen with drivers 535 to 610 and CUDA 12
/// and 13; kernels are loaded lazily since CUDA 11.7, before it was more than twice that.
const CARDS: [(&str, u64, u64); 15] = [
    ("H200", 520, 640),
    ("H100", 520, 640),
    ("B200", 600, 760),
    ("B300", 600, 760),
    ("RTX PRO 6000", 700, 800),
    ("5090", 560, 700),
    ("4090", 450, 520),
    ("6000 Ada", 430, 500),
    ("L40", 430, 500),
    ("A100", 420, 500),
    ("V100", 350, 420),
    ("3090", 300, 400),
    ("A6000", 300, 400),
    ("T4", 200, 280),
    ("Tesla", 250, 380),
];

/// By the size of a card that is not known by name: MiB of memory up to which, likely, at most.
const SIZES: [(u64, u64, u64); 4] =
    [(13_000, 200, 300), (25_000, 330, 460), (60_000, 430, 560), (u64::MAX, 520, 700)];

/// What the card of this name and size is likely to take.
pub fn expected(name: &str, total_bytes: u64) -> Overhead {
    let by_name = CARDS.iter().find(|row| name.contains(row.0)).map(|row| (row.1, row.2));
    let by_size = SIZES.iter().find(|row| total_bytes / MIB <= row.0).map(|row| (row.1, row.2));
    let (likely, most) = by_name.or(by_size).unwrap_or((400, 700));
    let low = likely / 2;
    Overhead { bytes: likely * MIB, low: low * MIB, high: most * MIB, measured: false }
}

/// What a running process shows: its bytes as the driver lists them without its known buffers.
/// `None` where that makes no sense, so that the buffers cannot be what was thought.
pub fn calibrated(listed_bytes: u64, buffers_bytes: u64) -> Option<Overhead> {
    let bytes = listed_bytes.checked_sub(buffers_bytes)?;
    let plausible = (48 * MIB..4096 * MIB).contains(&bytes);
    plausible.then_some(Overhead {
        bytes,
        low: bytes.saturating_sub(16 * MIB),
        high: bytes + 16 * MIB,
        measured: true,
    })
}

/// Of a card's nominal size, what programs can use: firmware, error correction and page tables
/// take the rest. Thousandths, by the size up to which in GiB.
const USABLE: [(u64, u64); 4] = [(8, 950), (12, 970), (48, 982), (u64::MAX, 988)];

/// Usable bytes of a card that is not here.
pub fn usable(nominal_bytes: u64) -> u64 {
    let gib = nominal_bytes >> 30;
    let share = USABLE.iter().find(|row| gib <= row.0).map_or(980, |row| row.1);
    (u128::from(nominal_bytes) * u128::from(share) / 1000).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_calibrates() {
        let live = calibrated(6970 * MIB, 6797 * MIB).unwrap();
        assert_eq!(live.bytes, 173 * MIB);
        assert!(live.measured);
        assert_eq!(calibrated(100 * MIB, 200 * MIB), None);
        assert_eq!(calibrated(9000 * MIB, 200 * MIB), None);
    }

    #[test]
    fn cards_are_known_by_name_or_size() {
        assert_eq!(expected("NVIDIA H200", 0).bytes, 520 * MIB);
        assert_eq!(expected("NVIDIA GeForce RTX 9999", 8 << 30).bytes, 200 * MIB);
        assert!(usable(24 << 30) > 24_000 * MIB);
    }
}
