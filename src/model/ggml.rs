//! GGML's tensor types and the cache types of llama.cpp, as tables.

/// One tensor type: so many values in a block of so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GgmlType {
    /// Its number in a file.
    pub id: u32,
    /// Its name.
    pub name: &'static str,
    /// Values a block.
    pub block: u64,
    /// Bytes a block.
    pub bytes: u64,
}

const fn ty(id: u32, name: &'static str, block: u64, bytes: u64) -> GgmlType {
    GgmlType { id, name, block, bytes }
}

/// Every type of ggml (`ggml.h`, `ggml-common.h` of llama.cpp, October 2026). Numbers that are
/// missing were removed, or belong to forks.
pub const TYPES: [GgmlType; 35] = [
    ty(0, "F32", 1, 4),
    ty(1, "F16", 1, 2),
    ty(2, "Q4_0", 32, 18),
    ty(3, "Q4_1", 32, 20),
    ty(6, "Q5_0", 32, 22),
    ty(7, "Q5_1", 32, 24),
    ty(8, "Q8_0", 32, 34),
    ty(9, "Q8_1", 32, 36),
    ty(10, "Q2_K", 256, 84),
    ty(11, "Q3_K", 256, 110),
    ty(12, "Q4_K", 256, 144),
    ty(13, "Q5_K", 256, 176),
    ty(14, "Q6_K", 256, 210),
    ty(15, "Q8_K", 256, 292),
    ty(16, "IQ2_XXS", 256, 66),
    ty(17, "IQ2_XS", 256, 74),
    ty(18, "IQ3_XXS", 256, 98),
    ty(19, "IQ1_S", 256, 50),
    ty(20, "IQ4_NL", 32, 18),
    ty(21, "IQ3_S", 256, 110),
    ty(22, "IQ2_S", 256, 82),
    ty(23, "IQ4_XS", 256, 136),
    ty(24, "I8", 1, 1),
    ty(25, "I16", 1, 2),
    ty(26, "I32", 1, 4),
    ty(27, "I64", 1, 8),
    ty(28, "F64", 1, 8),
    ty(29, "IQ1_M", 256, 56),
    ty(30, "BF16", 1, 2),
    ty(34, "TQ1_0", 256, 54),
    ty(35, "TQ2_0", 256, 66),
    ty(39, "MXFP4", 32, 17),
    ty(40, "NVFP4", 64, 36),
    ty(41, "Q1_0", 128, 18),
    ty(42, "Q2_0", 64, 18),
];

impl GgmlType {
    /// The type of this number; `None` for one that is not known here.
    pub fn of(id: u32) -> Option<Self> {
        TYPES.iter().copied().find(|t| t.id == id)
    }

    /// The type of this name, as in a file or on a command line.
    pub fn named(name: &str) -> Option<Self> {
        TYPES.iter().copied().find(|t| t.name.eq_ignore_ascii_case(name))
    }

    /// Bytes of a row of `n` values; `None` where that is no whole number of blocks, or too many.
    pub fn row_bytes(self, n: u64) -> Option<u64> {
        n.is_multiple_of(self.block).then_some(())?;
        (n / self.block).checked_mul(self.bytes)
    }
}

/// How a cache stores its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheType {
    /// 32-bit.
    F32,
    /// 16-bit, the default.
    F16,
    /// 16-bit with a wider range.
    Bf16,
    /// 8-bit float (vLLM, SGLang, TGI).
    Fp8,
    /// 8.5 bits.
    Q8_0,
    /// 6 bits.
    Q5_1,
    /// 5.5 bits.
    Q5_0,
    /// 5 bits.
    Q4_1,
    /// 4.5 bits.
    Q4_0,
    /// 4.5 bits, not linear.
    Iq4Nl,
}

impl CacheType {
    /// Every type with its name on a command line and its bytes for 32 values.
    pub const TABLE: [(Self, &'static str, u64); 10] = [
        (Self::F32, "f32", 128),
        (Self::F16, "f16", 64),
        (Self::Bf16, "bf16", 64),
        (Self::Fp8, "fp8", 32),
        (Self::Q8_0, "q8_0", 34),
        (Self::Q5_1, "q5_1", 24),
        (Self::Q5_0, "q5_0", 22),
        (Self::Q4_1, "q4_1", 20),
        (Self::Q4_0, "q4_0", 18),
        (Self::Iq4Nl, "iq4_nl", 18),
    ];

    fn row(self) -> (&'static str, u64) {
        Self::TABLE.iter().find(|r| r.0 == self).map_or(("f16", 64), |r| (r.1, r.2))
    }

    /// Its name on llama.cpp's command line.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Whether it stores blocks with a scale: needs flash attention for V.
    pub const fn is_quantised(self) -> bool {
        !matches!(self, Self::F32 | Self::F16 | Self::Bf16 | Self::Fp8)
    }

    /// Bytes of `values` values of one token in one layer.
    pub fn bytes(self, values: u64) -> u64 {
        let per_32 = self.row().1;
        if self.is_quantised() {
            values.div_ceil(32).saturating_mul(per_32)
        } else {
            values.saturating_mul(per_32 / 32)
        }
    }
}

impl std::str::FromStr for CacheType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = || Self::TABLE.map(|row| row.1).join(", ");
        Self::TABLE
            .iter()
            .find(|row| row.1.eq_ignore_ascii_case(text))
            .map(|row| row.0)
            .ok_or_else(|| format!("no such cache type; there are {}", known()))
    }
}

/// Names of `general.file_type`, the mixture that a file was made with.
const FILE_TYPES: [(u64, &str); 38] = [
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (7, "Q8_0"),
    (8, "Q5_0"),
    (9, "Q5_1"),
    (10, "Q2_K"),
    (11, "Q3_K_S"),
    (12, "Q3_K_M"),
    (13, "Q3_K_L"),
    (14, "Q4_K_S"),
    (15, "Q4_K_M"),
    (16, "Q5_K_S"),
    (17, "Q5_K_M"),
    (18, "Q6_K"),
    (19, "IQ2_XXS"),
    (20, "IQ2_XS"),
    (21, "Q2_K_S"),
    (22, "IQ3_XS"),
    (23, "IQ3_XXS"),
    (24, "IQ1_S"),
    (25, "IQ4_NL"),
    (26, "IQ3_S"),
    (27, "IQ3_M"),
    (28, "IQ2_S"),
    (29, "IQ2_M"),
    (30, "IQ4_XS"),
    (31, "IQ1_M"),
    (32, "BF16"),
    (33, "Q4_0_4_4"),
    (34, "Q4_0_4_8"),
    (35, "Q4_0_8_8"),
    (36, "TQ1_0"),
    (37, "TQ2_0"),
    (38, "MXFP4"),
    (39, "NVFP4"),
    (40, "Q1_0"),
];

/// The mixture's name; bit 1024 says that it was guessed.
pub fn file_type_name(id: u64) -> Option<&'static str> {
    FILE_TYPES.iter().find(|row| row.0 == id & !1024).map(|row| row.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole_blocks() {
        let q4 = GgmlType::named("q4_k").unwrap();
        assert_eq!(q4.row_bytes(4096), Some(16 * 144));
        assert_eq!(q4.row_bytes(100), None);
        assert_eq!(GgmlType::of(4), None);
        assert_eq!(GgmlType::of(31), None);
    }

    #[test]
    fn cache_types_have_their_sizes() {
        assert_eq!(CacheType::F16.bytes(1024), 2048);
        assert_eq!(CacheType::Q8_0.bytes(1024), 1088);
        assert_eq!(CacheType::Fp8.bytes(1024), 1024);
        assert_eq!("q5_1".parse(), Ok(CacheType::Q5_1));
        assert!("q9".parse::<CacheType>().is_err());
    }
}
