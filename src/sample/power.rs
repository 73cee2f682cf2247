//! Whether GPUs sleep, as the kernel says it without the driver.

use crate::ids::GpuUuid;
use crate::sample::Reading;

/// A GPU on the bus and its power.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciPower {
    /// `0000:1b:00.0`.
    pub address: String,
    /// Whether it is powered now.
    pub state: RuntimeState,
    /// Whether it may be powered down while nobody uses it (`power/control` is `auto`, and the
    /// driver does not say that it does not support that).
    pub may_sleep: bool,
    /// `NVIDIA GeForce RTX 4070 Laptop GPU`. Hostile text.
    pub name: Reading<String>,
    /// Where it was ever told while the GPU was awake.
    pub uuid: Option<GpuUuid>,
    /// The N of `/dev/nvidiaN`, likewise.
    pub minor: Reading<u32>,
}

/// The kernel's `runtime_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeState {
    /// Powered; also where the kernel does not manage it.
    Active,
    /// Powered down: the next use wakes it.
    Suspended,
    /// On the way to one of these; a use now would keep it from sleep.
    Between,
}

/// An address on the bus in the kernel's form, whatever its case and the width of its domain:
/// `00000000:1B:00.0` is `0000:1b:00.0`.
pub fn pci_address(text: &str) -> Option<String> {
    let mut parts = text.trim().splitn(3, ':');
    let domain = u32::from_str_radix(parts.next()?, 16).ok()?;
    let bus = u8::from_str_radix(parts.next()?, 16).ok()?;
    let (device, function) = parts.next()?.split_once('.')?;
    let device = u8::from_str_radix(device, 16).ok()?;
    let function = u8::from_str_radix(function, 16).ok()?;
    Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_and_the_kernels_addresses_are_the_same() {
        assert_eq!(pci_address("00000000:1B:00.0").as_deref(), Some("0000:1b:00.0"));
        assert_eq!(pci_address("0000:1b:00.0").as_deref(), Some("0000:1b:00.0"));
        assert_eq!(pci_address("0000000F:01:00.0").as_deref(), Some("000f:01:00.0"));
        for bad in ["", "0000:1b", "x:y:z.0", "0000:1b:00"] {
            assert_eq!(pci_address(bad), None, "{bad}");
        }
    }
}
