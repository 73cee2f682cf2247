//! A symbol of a loaded library, looked up in the memory of the process as the dynamic linker
//! does it. The file is not opened: it may be deleted, replaced, or on a disk that hangs.

use object::elf::{
    DT_GNU_HASH, DT_HASH, DT_NULL, DT_RELA, DT_RELASZ, DT_STRTAB, DT_SYMTAB, DynamicTag,
    PT_DYNAMIC, PT_LOAD, gnu_hash, hash,
};

use crate::allocator::memory::{Fault, Window};
use crate::allocator::view::View;

/// `\x7fELF`, 64 bits, little endian.
const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const SYMBOL_BYTES: u64 = 24;
const RELOCATION_BYTES: usize = 24;
const MOST_SEGMENTS: usize = 128;
const MOST_DYNAMIC: u64 = 64 << 10;
const MOST_RELOCATIONS: u64 = 16 << 20;
/// Symbols of one hash value.
const MOST_STEPS: u32 = 4096;
/// `R_X86_64_GLOB_DAT`, `R_AARCH64_GLOB_DAT`: a slot with the address of a symbol.
const GLOB_DAT: [u64; 2] = [6, 1025];

const fn tag(tag: DynamicTag) -> u64 {
    tag.0.cast_unsigned()
}

/// A loaded library.
struct Library<'a> {
    window: &'a Window<'a>,
    /// What is added to the addresses in the library.
    bias: u64,
    /// Tags and values of the dynamic section.
    dynamic: Vec<(u64, u64)>,
}

/// Where the symbol `name` of the library mapped at `base` really lies; `None` where the library
/// does not define it.
///
/// # Errors
/// [`Fault::Unknown`] where no library lies there, and what ends the reading.
pub fn resolve(window: &Window<'_>, base: u64, name: &str) -> Result<Option<u64>, Fault> {
    let library = Library::open(window, base)?;
    let Some((index, address)) = library.lookup(name.as_bytes())? else { return Ok(None) };
    // The linker may have bound the name to another object: an executable with a copy of the
    // variable, or a library that comes first. The slot of the relocation says so.
    Ok(Some(library.bound(index)?.unwrap_or(address)))
}

impl<'a> Library<'a> {
    fn open(window: &'a Window<'a>, base: u64) -> Result<Self, Fault> {
        let header = window.exact(base, HEADER_BYTES)?;
        let view = View(&header);
        let (Some(offset), Some(size), Some(count)) =
            (view.word(32), view.quarter(54), view.quarter(56))
        else {
            return Err(Fault::Unknown);
        };
        let count = usize::from(count);
        if !header.starts_with(MAGIC)
            || usize::from(size) != SEGMENT_BYTES
            || !(1..=MOST_SEGMENTS).contains(&count)
        {
            return Err(Fault::Unknown);
        }
        let table = window.exact(base.wrapping_add(offset), SEGMENT_BYTES * count)?;
        let segments = || {
            table.chunks_exact(SEGMENT_BYTES).map(View).filter_map(|segment| {
                Some((segment.half(0)?, segment.word(16)?, segment.word(40)?))
            })
        };
        let lowest = segments().filter(|s| s.0 == PT_LOAD.0).map(|s| s.1).min();
        let dynamic = segments().find(|s| s.0 == PT_DYNAMIC.0);
        let (Some(lowest), Some((_, at, size))) = (lowest, dynamic) else {
            return Err(Fault::Unknown);
        };
        if size > MOST_DYNAMIC {
            return Err(Fault::Unknown);
        }
        let bias = base.wrapping_sub(lowest & !0xfff);
        let raw = window.exact(bias.wrapping_add(at), size as usize)?;
        let dynamic = raw
            .chunks_exact(16)
            .map(View)
            .filter_map(|entry| Some((entry.word(0)?, entry.word(8)?)))
            .take_while(|entry| entry.0 != tag(DT_NULL))
            .collect();
        Ok(Self { window, bias, dynamic })
    }

    fn value(&self, wanted: u64) -> Option<u64> {
        self.dynamic.iter().find(|entry| entry.0 == wanted).map(|entry| entry.1)
    }

    /// An address of the dynamic section; glibc adds the bias in place, others do not.
    fn pointer(&self, wanted: u64) -> Option<u64> {
        let value = self.value(wanted)?;
        Some(if value >= self.bias { value } else { self.bias.wrapping_add(value) })
    }

    fn half(&self, at: u64) -> Result<u32, Fault> {
        View(&self.window.exact(at, 4)?).half(0).ok_or(Fault::Unmapped(at))
    }

    /// Index and address of a symbol that is defined here.
    fn lookup(&self, name: &[u8]) -> Result<Option<(u32, u64)>, Fault> {
        if let Some(table) = self.pointer(tag(DT_GNU_HASH)) {
            return self.lookup_gnu(table, name);
        }
        self.pointer(tag(DT_HASH)).map_or(Ok(None), |table| self.lookup_sysv(table, name))
    }

    fn lookup_gnu(&self, table: u64, name: &[u8]) -> Result<Option<(u32, u64)>, Fault> {
        let (buckets, first) = (self.half(table)?, self.half(table.wrapping_add(4))?);
        let words = u64::from(self.half(table.wrapping_add(8))?);
        let wanted = gnu_hash(name);
        let Some(bucket) = wanted.checked_rem(buckets) else { return Ok(None) };
        let bucket_table = table.wrapping_add(16 + 8 * words);
        let chains = bucket_table.wrapping_add(4 * u64::from(buckets));
        let mut index = self.half(bucket_table.wrapping_add(4 * u64::from(bucket)))?;
        for _ in 0..MOST_STEPS {
            let Some(step) = index.checked_sub(first) else { return Ok(None) };
            let value = self.half(chains.wrapping_add(4 * u64::from(step)))?;
            if value | 1 == wanted | 1
                && let Some(address) = self.defined(index, name)?
            {
                return Ok(Some((index, address)));
            }
            if value & 1 == 1 {
                return Ok(None);
            }
            index = index.wrapping_add(1);
        }
        Err(Fault::Unknown)
    }

    fn lookup_sysv(&self, table: u64, name: &[u8]) -> Result<Option<(u32, u64)>, Fault> {
        let buckets = self.half(table)?;
        let Some(bucket) = hash(name).checked_rem(buckets) else { return Ok(None) };
        let slot = |n: u64| table.wrapping_add(8 + 4 * n);
        let mut index = self.half(slot(u64::from(bucket)))?;
        for _ in 0..MOST_STEPS {
            if index == 0 {
                return Ok(None);
            }
            if let Some(address) = self.defined(index, name)? {
                return Ok(Some((index, address)));
            }
            index = self.half(slot(u64::from(buckets) + u64::from(index)))?;
        }
        Err(Fault::Unknown)
    }

    /// The address of symbol `index`, if it has this name and is defined here.
    fn defined(&self, index: u32, name: &[u8]) -> Result<Option<u64>, Fault> {
        let (Some(symbols), Some(names)) =
            (self.pointer(tag(DT_SYMTAB)), self.pointer(tag(DT_STRTAB)))
        else {
            return Err(Fault::Unknown);
        };
        let at = symbols.wrapping_add(SYMBOL_BYTES * u64::from(index));
        let raw = self.window.exact(at, SYMBOL_BYTES as usize)?;
        let symbol = View(&raw);
        let (Some(text), Some(section), Some(value)) =
            (symbol.half(0), symbol.quarter(6), symbol.word(8))
        else {
            return Ok(None);
        };
        let text = self.window.text(names.wrapping_add(u64::from(text)), name.len() + 1)?;
        Ok((section != 0 && text == name).then(|| self.bias.wrapping_add(value)))
    }

    /// What the linker wrote in the slot of symbol `index`.
    fn bound(&self, index: u32) -> Result<Option<u64>, Fault> {
        let (Some(table), Some(size)) = (self.pointer(tag(DT_RELA)), self.value(tag(DT_RELASZ)))
        else {
            return Ok(None);
        };
        if size > MOST_RELOCATIONS {
            return Err(Fault::Unknown);
        }
        let raw = self.window.exact(table, size as usize)?;
        let slot = raw.chunks_exact(RELOCATION_BYTES).map(View).find_map(|entry| {
            let info = entry.word(8)?;
            let ours = info >> 32 == u64::from(index) && GLOB_DAT.contains(&(info & 0xffff_ffff));
            ours.then(|| entry.word(0))?
        });
        let Some(slot) = slot else { return Ok(None) };
        Ok(Some(self.window.word(self.bias.wrapping_add(slot))?).filter(|&address| address != 0))
    }
}
