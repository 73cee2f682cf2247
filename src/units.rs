//! Quantities with their unit in the type. The bottom of the module order: imports nothing.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// A number of bytes. Shown in binary units, as `nvidia-smi` does; an integer in JSON.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n * KIB)
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n * MIB)
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n * GIB)
    }

    /// In GiB, for arithmetic that is only shown.
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / GIB as f64
    }

    /// The difference, or zero where `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The difference, or `None` where `other` is larger.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// This part of `whole` in percent; `None` where the whole is zero.
    pub fn percent_of(self, whole: Self) -> Option<Percent> {
        (whole.0 > 0).then(|| Percent((self.0 as f64 * 100.0 / whole.0 as f64) as f32))
    }

    /// Six characters at the most: `86.1G`, `512M`, `0`.
    pub fn short(self) -> String {
        let (value, unit) = self.scaled();
        match unit {
            Unit::B if self.0 == 0 => "0".to_owned(),
            Unit::B => format!("{}B", self.0),
            Unit::Ki | Unit::Mi => format!("{value:.0}{}", unit.letter()),
            // 999.95 and more would round to five digits.
            Unit::Gi | Unit::Ti if value >= 999.95 => format!("{value:.0}{}", unit.letter()),
            Unit::Gi | Unit::Ti => format!("{value:.1}{}", unit.letter()),
        }
    }

    fn scaled(self) -> (f64, Unit) {
        // A value that rounds up to 1024 of a unit is shown as one of the next.
        let n = self.0 as f64;
        let whole = |unit: u64| n / unit as f64;
        match self.0 {
            0..KIB => (n, Unit::B),
            _ if whole(KIB) < 1023.5 => (whole(KIB), Unit::Ki),
            _ if whole(MIB) < 1023.5 => (whole(MIB), Unit::Mi),
            _ if whole(GIB) < 1023.95 => (whole(GIB), Unit::Gi),
            _ => (whole(TIB), Unit::Ti),
        }
    }
}

#[derive(Clone, Copy)]
enum Unit {
    B,
    Ki,
    Mi,
    Gi,
    Ti,
}

impl Unit {
    const fn letter(self) -> &'static str {
        match self {
            Self::B => "B",
            Self::Ki => "K",
            Self::Mi => "M",
            Self::Gi => "G",
            Self::Ti => "T",
        }
    }
}

/// `21.9 GiB`, `512 MiB`, `0 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = self.scaled();
        let text = match unit {
            Unit::B => format!("{} B", self.0),
            Unit::Ki => format!("{value:.0} KiB"),
            Unit::Mi => format!("{value:.0} MiB"),
            Unit::Gi => format!("{value:.1} GiB"),
            Unit::Ti => format!("{value:.1} TiB"),
        };
        f.pad(&text)
    }
}

/// Why a text is no size in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a size: write a number and a unit, such as 24GiB, 512M or 1073741824")]
pub struct ParseBytesError(String);

/// Reads `24GiB`, `24G`, `1.5 GB` (decimal), `512m`, `1024`. A lone letter is binary.
impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || ParseBytesError(text.chars().take(64).collect());
        let trimmed = text.trim();
        let digits =
            trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let number: f64 = number.parse().map_err(|_ignored| bad())?;
        let factor: f64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kib" => KIB as f64,
            "m" | "mib" => MIB as f64,
            "g" | "gib" => GIB as f64,
            "t" | "tib" => TIB as f64,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            _ => return Err(bad()),
        };
        let bytes = number * factor;
        if bytes.is_finite() && bytes < 1.8e19 {
            Ok(Self(bytes.round() as u64))
        } else {
            Err(bad())
        }
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);
    };
}

unit!(/// A share of a hundred; CPU use of several cores goes above it.
    Percent(f32));
unit!(/// Degrees Celsius.
    Celsius(i32));
unit!(/// Thousandths of a watt, as the driver counts power.
    Milliwatts(u64));
unit!(/// Millions of cycles a second.
    Megahertz(u32));
unit!(/// Bytes a second.
    BytesPerSecond(u64));

/// A change of memory in bytes a minute; negative where it shrinks.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BytesPerMinute(pub f64);

/// `12 s`, `4m12s`, `3h`, `2d`: how long something lasted, short enough for a column.
pub fn age(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m", s / 60),
        3600..86_400 => format!("{}h", s / 3600),
        _ => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_are_shown_in_binary_units() {
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes::mib(2566).to_string(), "2.5 GiB");
        assert_eq!(Bytes(644_939_776).to_string(), "615 MiB");
        assert_eq!(Bytes::gib(141).short(), "141.0G");
        assert_eq!(Bytes(MIB - 1).short(), "1M");
        assert_eq!(Bytes(GIB - 1).short(), "1.0G");
    }

    #[test]
    fn sizes_are_read_back() {
        assert_eq!("24GiB".parse(), Ok(Bytes::gib(24)));
        assert_eq!("1.5 gb".parse(), Ok(Bytes(1_500_000_000)));
        assert_eq!("2g".parse(), Ok(Bytes::gib(2)));
        assert!("".parse::<Bytes>().is_err());
        assert!("12 parsecs".parse::<Bytes>().is_err());
        assert!("99999999999999999999T".parse::<Bytes>().is_err());
    }

    proptest! {
        #[test]
        fn short_never_needs_more_than_six_columns(n in 0..9_000 * TIB) {
            prop_assert!(Bytes(n).short().len() <= 6, "{}", Bytes(n).short());
        }
    }
}
