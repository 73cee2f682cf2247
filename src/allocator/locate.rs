//! From a loaded library to the allocators of the devices.

use crate::allocator::device::Device;
use crate::allocator::elf;
use crate::allocator::maps::Maps;
use crate::allocator::memory::{Fault, Piece, Window};
use crate::allocator::view::View;
use crate::ids::CudaOrdinal;
use crate::sample::AllocatorBackend;

/// `c10::cuda::CUDACachingAllocator::allocator`, a pointer; and its twin in `ROCm` builds.
const SYMBOLS: [&str; 2] = [
    "_ZN3c104cuda20CUDACachingAllocator9allocatorE",
    "_ZN3c103hip19HIPCachingAllocator9allocatorE",
];
/// Dynamic types of what it points to, by a part of their names.
const BACKENDS: [(&str, AllocatorBackend); 3] = [
    ("NativeCachingAllocator", AllocatorBackend::Native),
    ("CudaMallocAsyncAllocator", AllocatorBackend::CudaMallocAsync),
    ("PluggableAllocator", AllocatorBackend::Pluggable),
];
/// The native allocator has 176 bytes to 23 KB.
const OBJECT_BYTES: usize = 24 << 10;
/// Where the vector of devices was in torch 2.5 to 2.15, 2.3, 2.2 and 2.0: tried first, not
/// trusted.
const KNOWN_PLACES: [usize; 4] = [0x5838, 0x57f0, 0x3ee0, 0x50];
const MOST_DEVICES: u64 = 256;

/// What was found in a process.
#[derive(Debug, Clone)]
pub enum Found {
    /// No library of PyTorch for GPUs.
    NoTorch,
    /// An allocator without figures.
    Other(AllocatorBackend),
    /// The library is there; nothing has used CUDA yet.
    NotStarted,
    /// The native allocator and its devices.
    Native(Anchor, Vec<Device>),
}

/// What led to the devices. As long as it is unchanged they are where they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    pieces: [Piece; 3],
    words: Vec<u8>,
}

impl Anchor {
    fn read(window: &Window<'_>, variable: u64, object: u64, vector: usize) -> Result<Self, Fault> {
        let pieces = [
            Piece { at: variable, len: 8 },
            Piece { at: object, len: 8 },
            Piece { at: object.wrapping_add(vector as u64), len: 16 },
        ];
        Ok(Self { pieces, words: window.pieces(&pieces)? })
    }

    /// Whether it is unchanged.
    ///
    /// # Errors
    /// Only those that end the reading.
    pub fn holds(&self, window: &Window<'_>) -> Result<bool, Fault> {
        match window.pieces(&self.pieces) {
            Err(fault) if fault.is_final() => Err(fault),
            words => Ok(words.is_ok_and(|words| words == self.words)),
        }
    }
}

/// Looks through the process's libraries.
///
/// # Errors
/// [`Fault::Unknown`] where there is an allocator, laid out in no known way, and what ends the
/// reading.
pub fn locate(window: &Window<'_>, maps: &Maps) -> Result<Found, Fault> {
    let mut best = Ok(Found::NoTorch);
    for &base in &maps.libraries {
        match in_library(window, base, maps) {
            Ok(found @ (Found::Native(..) | Found::Other(_))) => return Ok(found),
            Err(fault) if fault.is_final() => return Err(fault),
            other => best = other,
        }
    }
    best
}

fn in_library(window: &Window<'_>, base: u64, maps: &Maps) -> Result<Found, Fault> {
    for symbol in SYMBOLS {
        let Some(variable) = elf::resolve(window, base, symbol)? else { continue };
        let object = window.word(variable)?;
        if object == 0 {
            return Ok(Found::NotStarted);
        }
        return match backend(window, object)? {
            AllocatorBackend::Native => devices(window, variable, object, maps),
            other => Ok(Found::Other(other)),
        };
    }
    // torch 1.x: a library without the symbol.
    window.note(|| format!("library at {base:#x}: no symbol of the allocator"));
    Err(Fault::Unknown)
}

/// By the name of the object's dynamic type: object, table of virtual functions, type, name.
fn backend(window: &Window<'_>, object: u64) -> Result<AllocatorBackend, Fault> {
    let table = window.word(object)?;
    let kind = window.word(table.wrapping_sub(8))?;
    let name = window.text(window.word(kind.wrapping_add(8))?, 256)?;
    let name = String::from_utf8_lossy(&name);
    let known = BACKENDS.iter().find(|row| name.contains(row.0));
    known.map(|row| row.1).ok_or_else(|| {
        window.note(|| format!("an allocator of another type: {name:?}"));
        Fault::Unknown
    })
}

/// The vector of pointers to `DeviceCachingAllocator` inside the native allocator, by content.
fn devices(window: &Window<'_>, variable: u64, object: u64, maps: &Maps) -> Result<Found, Fault> {
    let copy = window.some(object, OBJECT_BYTES)?;
    let mut outcome = Ok(Found::NotStarted);
    for at in KNOWN_PLACES.into_iter().chain((8..copy.len()).step_by(8)) {
        let Some(pointers) = vector(window, View(&copy), at, maps)? else { continue };
        match all_devices(window, &pointers) {
            Ok(Some(devices)) => {
                let anchor = Anchor::read(window, variable, object, at)?;
                return Ok(Found::Native(anchor, devices));
            }
            Ok(None) => {}
            Err(fault) if fault.is_final() => return Err(fault),
            Err(fault) => outcome = Err(fault),
        }
    }
    outcome
}

/// A `std::vector` of different pointers to writable memory, at offset `at` of the copy.
fn vector(
    window: &Window<'_>,
    copy: View<'_>,
    at: usize,
    maps: &Maps,
) -> Result<Option<Vec<u64>>, Fault> {
    let (Some(begin), Some(end), Some(room)) =
        (copy.word(at), copy.word(at + 8), copy.word(at + 16))
    else {
        return Ok(None);
    };
    let bytes = end.wrapping_sub(begin);
    let sane = begin < end
        && end <= room
        && [begin, bytes, room].iter().all(|word| word % 8 == 0)
        && bytes <= 8 * MOST_DEVICES
        && maps.is_writable(begin);
    if !sane {
        return Ok(None);
    }
    let raw = match window.exact(begin, bytes as usize) {
        Err(fault) if fault.is_final() => return Err(fault),
        Err(_) => return Ok(None),
        Ok(raw) => raw,
    };
    let pointers: Vec<u64> = raw.chunks_exact(8).filter_map(|chunk| View(chunk).word(0)).collect();
    let mut sorted = pointers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let fine = sorted.len() == pointers.len()
        && pointers.iter().all(|&pointer| pointer % 8 == 0 && maps.is_writable(pointer));
    Ok(fine.then_some(pointers))
}

fn all_devices(window: &Window<'_>, pointers: &[u64]) -> Result<Option<Vec<Device>>, Fault> {
    let mut devices = Vec::with_capacity(pointers.len());
    for (ordinal, &base) in (0..).map(CudaOrdinal).zip(pointers) {
        let Some(device) = Device::find(window, ordinal, base)? else { return Ok(None) };
        devices.push(device);
    }
    // A device that was never used has only zeros, which prove less.
    if let Some(proved) = devices.iter().find(|device| device.layout().verified).cloned() {
        for device in &mut devices {
            device.adopt(&proved);
        }
    }
    Ok(Some(devices))
}
