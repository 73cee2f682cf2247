//! Which GPU a device of the process is.

use crate::allocator::layout::{Layout, OBJECT_BYTES};
use crate::allocator::memory::{Fault, Window};
use crate::allocator::view::View;
use crate::ids::GpuUuid;

/// Since torch 2.10 `cudaDeviceProp` lies in the object, a name of 256 bytes
/// padded with zeros, the UUID, and the size of the memory 32 bytes further.
pub fn gpu_uuid(window: &Window<'_>, base: u64, layout: &Layout) -> Result<Option<GpuUuid>, Fault> {
    let Some(pools) = layout.pools.filter(|pools| pools.sets >= 2) else { return Ok(None) };
    let copy = window.some(base, OBJECT_BYTES)?;
    // Nearer than this to the active blocks it is inside the object in every version that has it.
    for at in (pools.active + 200..=pools.active + 320).step_by(8) {
        let Some(name) = copy.get(at..at + 256) else { break };
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(256);
        let (text, rest) = name.split_at(length);
        let is_name = (4..200).contains(&length)
            && text.iter().all(|byte| (32..127).contains(byte))
            && rest.iter().all(|&byte| byte == 0);
        let memory = View(&copy).word(at + 288).unwrap_or(0);
        if let Some(uuid) = copy.get(at + 256..at + 272)
            && is_name
            && (1 << 28..1 << 44).contains(&memory)
            && uuid.iter().any(|&byte| byte != 0)
        {
            return Ok(Some(format_uuid(uuid)));
        }
    }
    Ok(None)
}

fn format_uuid(bytes: &[u8]) -> GpuUuid {
    use std::fmt::Write as _;
    let mut text = "GPU".to_owned();
    for (index, byte) in bytes.iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        let _always_fits = write!(text, "{byte:02x}");
    }
    GpuUuid::new(&text)
}
