//! One device's caching allocator in a process: found once, read again and again.

use std::time::{Duration, Instant};

use crate::allocator::blocks::Picture;
use crate::allocator::free::free_blocks;
use crate::allocator::gpu::gpu_uuid;
use crate::allocator::known::Places;
use crate::allocator::layout::{Layout, Look, OBJECT_BYTES, look};
use crate::allocator::memory::{Fault, Piece, Window};
use crate::allocator::stats::{ARRAY_BYTES, Counter, Statistics};
use crate::allocator::view::View;
use crate::allocator::walk::walk;
use crate::ids::{CudaOrdinal, GpuUuid, Stamp};
use crate::sample::{AllocatorDevice, Reading, Why};
use crate::units::Bytes;

/// Looks until one shows a busy allocator at rest.
const LOOKS: u32 = 40;
/// Equal looks that show that nothing moves.
const AT_REST: u32 = 8;
/// Reads until one is taken that only might be in the middle of an operation.
const STRICT_READS: u32 = 64;
/// Walks until the last picture is kept.
const WALKS: u32 = 200;
/// How long a busy allocator is watched for a moment of rest.
const WATCHED: Duration = Duration::from_millis(5);

/// The allocator of one device.
#[derive(Debug, Clone)]
pub struct Device {
    ordinal: CudaOrdinal,
    base: u64,
    layout: Layout,
    picture: Option<(Stamp, Picture)>,
    /// What the last walk met.
    places: Places,
    /// These two counters are bounded by others on one side only: they are shown once the blocks
    /// have confirmed that they are what they are taken for.
    requested_holds: Reading<()>,
    split_holds: Reading<()>,
    /// Which GPU it is, once looked for.
    gpu: Reading<GpuUuid>,
}

/// How much a reading of the counters can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// Nothing moved while it was read.
    Strict,
    /// It fits together; at the most one operation is half counted.
    Weak,
}

impl Device {
    fn new(ordinal: CudaOrdinal, base: u64, layout: Layout) -> Self {
        let unproved = if layout.pools.is_some() { Why::NotYet } else { Why::UnknownLayout };
        let (requested_holds, split_holds) = (Reading::Absent(unproved), Reading::Absent(unproved));
        let gpu = Reading::Absent(Why::NotYet);
        Self {
            ordinal,
            base,
            layout,
            picture: None,
            places: Places::default(),
            requested_holds,
            split_holds,
            gpu,
        }
    }

    /// Looks for device number `ordinal` of the process at `base`; `None` where something else is
    /// there.
    ///
    /// # Errors
    /// [`Fault::Unknown`] where such an object is laid out in no known way, [`Fault::Changed`]
    /// where it was too busy to tell, and what ends the reading.
    pub fn find(
        window: &Window<'_>,
        ordinal: CudaOrdinal,
        base: u64,
    ) -> Result<Option<Self>, Fault> {
        let mut before = Vec::new();
        let mut at_rest = 0;
        for n in 0..LOOKS {
            match look(window, base)? {
                Look::Found(layout) => return Ok(Some(Self::new(ordinal, base, layout))),
                Look::Other => return Ok(None),
                Look::Refused(copy) => {
                    at_rest = if copy == before { at_rest + 1 } else { 0 };
                    before = copy;
                }
            }
            if at_rest > AT_REST {
                window.note(|| format!("{ordinal:?}: at rest, and no layout fits"));
                return Err(Fault::Unknown);
            }
            if n > 3 {
                window.pause(Duration::from_micros(50))?;
            }
        }
        window.note(|| format!("{ordinal:?}: never at rest while its layout was looked for"));
        Err(Fault::Changed)
    }

    /// Where things lie in it.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Takes the layout of another device of the process, where its own counters are zero and
    /// prove nothing.
    pub(super) fn adopt(&mut self, other: &Self) {
        if !self.layout.verified && other.layout.verified {
            self.layout = Layout { verified: false, ..other.layout };
        }
    }

    /// Reads the counters. The beginning of the object is copied twice in one call, before and
    /// after the rest: it holds the mutex and counters that only grow, which makes them a sequence
    /// lock that the process keeps without knowing.
    ///
    /// # Errors
    /// [`Fault::Changed`] where no read fitted together, [`Fault::Unknown`] where none did although
    /// nothing moved, and what ends the reading.
    pub fn counters(&self, window: &Window<'_>) -> Result<(Statistics, Grade), Fault> {
        let whole = self.layout.tail() + 16;
        let head = self.head();
        let pieces = [Piece { at: self.base, len: whole }, Piece { at: self.base, len: head }];
        let (mut before, mut weak, mut at_rest) = (Vec::new(), None, 0);
        for n in 0..STRICT_READS {
            let copy = window.pieces(&pieces)?;
            let free = View(&copy).half(8) == Some(0);
            let statistics = self.layout.statistics(View(&copy)).ok_or(Fault::Changed)?;
            let complaint = statistics.complaint();
            if let Some(complaint) = &complaint {
                window.note(|| format!("counters: {complaint}"));
            }
            if complaint.is_none() {
                // A thread that waits in the driver keeps the mutex and leaves the numbers alone.
                if copy.get(..head) == copy.get(whole..) && (free || copy == before) {
                    return Ok((statistics, Grade::Strict));
                }
                weak = if free { Some(statistics) } else { weak };
            } else if free && copy == before {
                at_rest += 1;
                // Nothing moves and still it makes no sense: not what it is taken for.
                if at_rest > AT_REST {
                    return Err(Fault::Unknown);
                }
            }
            before = copy;
            if n > 8 {
                window.pause(Duration::from_micros(10))?;
            }
        }
        window.note(|| format!("counters: not at rest in {STRICT_READS} reads"));
        weak.map(|statistics| (statistics, Grade::Weak)).ok_or(Fault::Changed)
    }

    /// Walks the blocks until they add up to the counters. One that never rests is watched for a
    /// while for a moment in which it does.
    ///
    /// # Errors
    /// [`Fault::Unknown`] where they never do although nothing moves, or where the pools were not
    /// found, [`Fault::Changed`] where they move too fast, and what ends the reading.
    pub fn blocks(&mut self, window: &Window<'_>) -> Result<(Statistics, Picture), Fault> {
        let Some(pools) = self.layout.pools else {
            window.note(|| "blocks: their pools were not found".to_owned());
            return Err(Fault::Unknown);
        };
        let (mut still, mut walks, until) = (0, 0, Instant::now() + WATCHED);
        while walks < WALKS
            && let Some(copy) = self.moment_of_rest(window, walks > 0, until)?
        {
            walks += 1;
            let statistics = self.layout.statistics(View(&copy)).ok_or(Fault::Changed)?;
            if let Some(complaint) = statistics.complaint() {
                window.note(|| format!("blocks: counters: {complaint}"));
                continue;
            }
            let complaint = match walk(window, self.base, &copy, pools, &mut self.places) {
                Ok(picture) => match picture.complaint(&statistics) {
                    None => return Ok((statistics, picture)),
                    Some(complaint) => complaint,
                },
                Err(fault) if fault.is_final() => return Err(fault),
                Err(fault) => fault.to_string(),
            };
            window.note(|| format!("blocks: {complaint}"));
            let after = window.exact(self.base, self.head())?;
            let free = View(&copy).half(8) == Some(0);
            still += u32::from(free && copy.get(..self.head()) == Some(after.as_slice()));
            if still == walks && still < AT_REST {
                window.pause(Duration::from_micros(200))?;
            } else if still == walks {
                return Err(Fault::Unknown);
            }
        }
        // A change can hide from the head once: a free between two walks of the same length.
        Err(Fault::Changed)
    }

    /// A copy of the object, where `watch` is set one that was the same a moment before; `None`
    /// where there was no such moment in time.
    fn moment_of_rest(
        &self,
        window: &Window<'_>,
        watch: bool,
        until: Instant,
    ) -> Result<Option<Vec<u8>>, Fault> {
        loop {
            let before = watch.then(|| window.exact(self.base, self.head())).transpose()?;
            let copy = window.some(self.base, OBJECT_BYTES)?;
            if before.is_none_or(|head| copy.get(..head.len()) == Some(head.as_slice())) {
                return Ok(Some(copy));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// Bytes of the mutex and of the counters that only grow.
    const fn head(&self) -> usize {
        self.layout.stats + 2 * ARRAY_BYTES
    }

    /// The device's part of a sample; `None` where it was never used.
    ///
    /// # Errors
    /// As [`Device::counters`]. Where only the blocks cannot be read, they are absent.
    pub fn sample(
        &mut self,
        window: &Window<'_>,
        now: Stamp,
        with_blocks: bool,
    ) -> Result<Option<AllocatorDevice>, Fault> {
        let (mut counters, _grade) = self.counters(window)?;
        if !counters.used() {
            return Ok(None);
        }
        if !self.layout.verified {
            // What was found among zeros is looked at again, now that there are numbers.
            let found = Self::find(window, self.ordinal, self.base)?.ok_or(Fault::Unknown)?;
            self.layout = found.layout;
        }
        let walked = if with_blocks || self.requested_holds.why() == Some(Why::NotYet) {
            self.look_at_blocks(window, now, &mut counters)?
        } else {
            (self.picture, self.places) = (None, Places::default());
            Err(Why::NotAsked)
        };
        if self.gpu.why() == Some(Why::NotYet) {
            match gpu_uuid(window, self.base, &self.layout) {
                Ok(gpu) => self.gpu = gpu.ok_or(Why::NotSupported).into(),
                // There will be another reading.
                Err(Fault::Spent) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(Some(self.device(&counters, walked)))
    }

    /// Walks the blocks; without success it says why, and the last picture is kept.
    fn look_at_blocks(
        &mut self,
        window: &Window<'_>,
        now: Stamp,
        counters: &mut Statistics,
    ) -> Result<Result<(), Why>, Fault> {
        let proof = |holds: bool| Reading::from(holds.then_some(()).ok_or(Why::Nonsense));
        match self.blocks(window) {
            Ok((statistics, picture)) => {
                *counters = statistics;
                self.requested_holds = proof(picture.confirms_requested(counters));
                self.split_holds = proof(picture.confirms_split(counters));
                self.picture = Some((now, picture));
                Ok(Ok(()))
            }
            Err(Fault::Unknown) => {
                self.picture = None;
                let refuted = Reading::Absent(Why::UnknownLayout);
                (self.requested_holds, self.split_holds) = (refuted, refuted);
                Ok(Err(Why::UnknownLayout))
            }
            Err(Fault::Changed | Fault::Unmapped(_)) => Ok(Err(Why::NotYet)),
            Err(Fault::Spent) => Ok(Err(Why::TimedOut)),
            Err(fault) => Err(fault),
        }
    }

    /// `walked` says whether the picture is of the same moment as the counters.
    fn device(&self, counters: &Statistics, walked: Result<(), Why>) -> AllocatorDevice {
        let bytes = |number: i64| Bytes(number.unsigned_abs());
        let value = |counter| Reading::Value(bytes(counters.now(counter)));
        let proved = |proof: Reading<()>, counter| proof.and_then(|()| value(counter));
        let tail = |number: i64| {
            let known = self.layout.known_tail.then_some(number.unsigned_abs());
            Reading::from(known.ok_or(Why::UnknownLayout))
        };
        let missing = Reading::Absent(walked.err().unwrap_or(Why::NotYet));
        let seen = self.picture.as_ref().map_or(missing, Reading::Value);
        AllocatorDevice {
            ordinal: self.ordinal,
            allocated: bytes(counters.now(Counter::AllocatedBytes)),
            reserved: bytes(counters.now(Counter::ReservedBytes)),
            active: value(Counter::ActiveBytes),
            inactive_split: proved(self.split_holds, Counter::InactiveSplitBytes),
            requested: proved(self.requested_holds, Counter::RequestedBytes),
            retries: tail(counters.retries),
            ooms: tail(counters.ooms),
            segments: seen.map(|row| row.1.segments),
            free: seen.map(|(at, picture)| free_blocks(picture, walked.is_err().then_some(*at))),
            private_pools: seen.map(|row| Bytes(row.1.private_bytes)),
            expandable_segments: seen.map(|row| row.1.unmapped > 0),
            peak_allocated: Reading::Value(bytes(counters.peak(Counter::AllocatedBytes))),
            peak_reserved: Reading::Value(bytes(counters.peak(Counter::ReservedBytes))),
            gpu: self.gpu.value().cloned(),
        }
    }
}
