//! Why a call of the driver's library gave no value.

use nvml_wrapper::error::NvmlError;

use crate::sample::Why;

/// One failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// `nvmlReturn_t`, other than success.
    Code(i32),
    /// The library has no such function.
    NoSymbol,
    /// It answered with something that cannot be.
    Nonsense,
    /// It was not asked: its answer would cost another GPU its sleep.
    Spared,
}

impl Fault {
    pub(super) const NOT_SUPPORTED: Self = Self::Code(3);
    pub(super) const NOT_FOUND: Self = Self::Code(6);
    pub(super) const INSUFFICIENT_SIZE: Self = Self::Code(7);
    pub(super) const TIMEOUT: Self = Self::Code(10);
    pub(super) const GPU_IS_LOST: Self = Self::Code(15);

    /// From what a function returned.
    pub(super) const fn check(code: u32) -> Result<(), Self> {
        if code == 0 { Ok(()) } else { Err(Self::Code(code.cast_signed())) }
    }

    /// For the reader of the value that is missing.
    pub(super) const fn why(self) -> Why {
        match self {
            // FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH
            Self::NoSymbol | Self::Code(13 | 25) => Why::OldDriver,
            Self::Nonsense => Why::Nonsense,
            Self::Spared => Why::Spared,
            // NOT_SUPPORTED, DEPRECATED
            Self::Code(3 | 26) => Why::NotSupported,
            // NO_PERMISSION; OPERATING_SYSTEM is a cgroup that keeps the device away
            Self::Code(4 | 17) => Why::NoPermission,
            Self::Code(10) => Why::TimedOut,
            // GPU_IS_LOST, GPU_NOT_FOUND
            Self::Code(15 | 28) => Why::GpuLost,
            // NO_DATA, NOT_READY
            Self::Code(21 | 27) => Why::NotYet,
            Self::Code(code) => Why::Failed(code),
        }
    }

    /// Whether the library must be opened again before it can answer anything: UNINITIALIZED,
    /// `DRIVER_NOT_LOADED`, `LIB_RM_VERSION_MISMATCH`.
    pub(super) const fn ends_session(self) -> bool {
        matches!(self, Self::Code(1 | 9 | 18))
    }

    /// Whether the GPU is off the bus.
    pub(super) const fn is_lost(self) -> bool {
        matches!(self.why(), Why::GpuLost)
    }

    /// Whether an older form of the same function may know the answer.
    pub(super) const fn wants_older(self) -> bool {
        matches!(self.why(), Why::OldDriver)
    }
}

impl From<NvmlError> for Fault {
    fn from(error: NvmlError) -> Self {
        match error {
            NvmlError::FailedToLoadSymbol(_) => Self::NoSymbol,
            // The wrapper names no codes from 23 to 30, and uses the same variant for values of
            // enumerations that it does not know.
            NvmlError::UnexpectedVariant(code @ 23..=30) => Self::Code(code.cast_signed()),
            NvmlError::UnexpectedVariant(_)
            | NvmlError::Utf8Error(_)
            | NvmlError::NulError(_)
            | NvmlError::StringTooLong { .. }
            | NvmlError::IncorrectBits(_) => Self::Nonsense,
            other => Self::Code(u32::from(other).cast_signed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_reason() {
        let expected = |code: i32| match code {
            3 | 26 => Why::NotSupported,
            4 | 17 => Why::NoPermission,
            10 => Why::TimedOut,
            13 | 25 => Why::OldDriver,
            15 | 28 => Why::GpuLost,
            21 | 27 => Why::NotYet,
            other => Why::Failed(other),
        };
        for code in (1..=30).chain([999]) {
            // Both ways by which a code arrives: raw, and through the wrapper's error.
            assert_eq!(Fault::check(code), Err(Fault::Code(code.cast_signed())));
            let wrapped = Fault::from(NvmlError::from(code));
            assert_eq!(wrapped, Fault::Code(code.cast_signed()), "code {code}");
            assert_eq!(wrapped.why(), expected(code.cast_signed()), "code {code}");
        }
        assert_eq!(Fault::check(0), Ok(()));
        assert_eq!(Fault::from(NvmlError::UnexpectedVariant(77)).why(), Why::Nonsense);
        assert_eq!(Fault::from(NvmlError::FailedToLoadSymbol(String::new())).why(), Why::OldDriver);
    }

    #[test]
    fn only_three_codes_end_the_session() {
        let ending: Vec<_> = (1..=999).filter(|code| Fault::Code(*code).ends_session()).collect();
        assert_eq!(ending, [1, 9, 18]);
    }
}
