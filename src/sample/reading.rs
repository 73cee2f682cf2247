//! A value, or the reason why there is none.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a value is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// This device or system cannot say.
    NotSupported,
    /// It may be read by root, or by the owner.
    NoPermission,
    /// The driver has no such function.
    OldDriver,
    /// The GPU fell off the bus.
    GpuLost,
    /// No answer within the deadline.
    TimedOut,
    /// The GPU sleeps and is not woken for this.
    Asleep,
    /// Nobody uses the GPU: it is let alone so that it can sleep.
    LetSleep,
    /// To read it the library would have to open every GPU, and one of them sleeps.
    Spared,
    /// The process ended meanwhile.
    Gone,
    /// Nobody asked for it: it is slow to read and nothing shows it.
    NotAsked,
    /// It needs a second look, which is yet to come.
    NotYet,
    /// It was known then; of an earlier moment it is not kept.
    NotKept,
    /// An answer came and it cannot be true; it was dropped and counted.
    Nonsense,
    /// The layout of what was read is not known to this version.
    UnknownLayout,
    /// An error of the driver or the system, by its number.
    Failed(i32),
}

impl Why {
    /// A failure without a number.
    pub(super) const UNTOLD: Self = Self::Failed(-1);

    const NAMED: [(Self, &'static str, &'static str); 14] = [
        (Self::NotSupported, "not_supported", "not supported here"),
        (Self::NoPermission, "no_permission", "no permission"),
        (Self::OldDriver, "old_driver", "the driver is too old"),
        (Self::GpuLost, "gpu_lost", "the GPU is lost"),
        (Self::TimedOut, "timed_out", "no answer in time"),
        (Self::Asleep, "asleep", "the GPU sleeps"),
        (Self::LetSleep, "let_sleep", "nobody uses it: it is let sleep"),
        (Self::Spared, "spared", "not read: that would wake a GPU that sleeps"),
        (Self::Gone, "gone", "the process has ended"),
        (Self::NotAsked, "not_asked", "not asked for"),
        (Self::NotYet, "not_yet", "not yet known"),
        (Self::NotKept, "not_kept", "not kept for earlier moments"),
        (Self::Nonsense, "nonsense", "the answer made no sense"),
        (Self::UnknownLayout, "unknown_layout", "unknown layout"),
    ];

    /// In words, for a person.
    pub fn words(self) -> String {
        match self {
            Self::UNTOLD => "failed".to_owned(),
            Self::Failed(code) => format!("failed with code {code}"),
            _ => self.named(2).to_owned(),
        }
    }

    fn named(self, column: usize) -> &'static str {
        Self::NAMED
            .iter()
            .find(|row| row.0 == self)
            .map_or("failed", |row| if column == 1 { row.1 } else { row.2 })
    }
}

/// The stable key, as in JSON: `not_supported`, `failed:17`.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(code) => write!(f, "failed:{code}"),
            _ => f.pad(self.named(1)),
        }
    }
}

impl FromStr for Why {
    type Err = std::convert::Infallible;

    /// A key that a later version added reads as a failure without a number.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::NAMED.iter().find(|row| row.1 == text).map(|row| row.0);
        let code = || text.strip_prefix("failed:").and_then(|n| n.parse().ok()).unwrap_or(-1);
        Ok(named.unwrap_or_else(|| Self::Failed(code())))
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Why {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let Ok(why) = text.parse();
        Ok(why)
    }
}

/// A value that was read, or why it was not. It has no default and no `unwrap_or`, so that an
/// absent value cannot become a number by habit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reading<T> {
    /// It was read.
    Value(T),
    /// It was not.
    Absent(Why),
}

impl<T> Reading<T> {
    /// The value, where there is one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent(_) => None,
        }
    }

    /// The reason, where there is no value.
    pub const fn why(&self) -> Option<Why> {
        match self {
            Self::Value(_) => None,
            Self::Absent(why) => Some(*why),
        }
    }

    /// The value as another.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Value(value) => Reading::Value(change(value)),
            Self::Absent(why) => Reading::Absent(why),
        }
    }

    /// What follows from the value, itself perhaps absent.
    pub fn and_then<U>(self, next: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Self::Value(value) => next(value),
            Self::Absent(why) => Reading::Absent(why),
        }
    }

    /// Borrowed.
    pub const fn as_ref(&self) -> Reading<&T> {
        match self {
            Self::Value(value) => Reading::Value(value),
            Self::Absent(why) => Reading::Absent(*why),
        }
    }
}

impl<T: Copy> Reading<T> {
    /// The value itself, where there is one.
    pub const fn get(&self) -> Option<T> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Absent(_) => None,
        }
    }
}

impl<T> From<Result<T, Why>> for Reading<T> {
    fn from(result: Result<T, Why>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(why) => Self::Absent(why),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Wire<T> {
    Absent { absent: Why },
    Value(T),
}

impl<T: Serialize> Serialize for Reading<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(to),
            Self::Absent(why) => Wire::<()>::Absent { absent: *why }.serialize(to),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Reading<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match Wire::deserialize(from)? {
            Wire::Absent { absent } => Self::Absent(absent),
            Wire::Value(value) => Self::Value(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_travels_with_its_reason() {
        for why in Why::NAMED.iter().map(|row| row.0).chain([Why::Failed(17)]) {
            let absent = Reading::<u64>::Absent(why);
            let text = serde_json::to_string(&absent).unwrap();
            assert_eq!(text, format!(r#"{{"absent":"{why}"}}"#));
            assert_eq!(serde_json::from_str::<Reading<u64>>(&text).unwrap(), absent);
        }
        assert_eq!(serde_json::to_string(&Reading::Value(3)).unwrap(), "3");
        assert_eq!(serde_json::from_str::<Reading<u64>>("3").unwrap(), Reading::Value(3));
        let later: Reading<u64> = serde_json::from_str(r#"{"absent":"on_fire"}"#).unwrap();
        assert_eq!(later, Reading::Absent(Why::Failed(-1)));
    }
}
