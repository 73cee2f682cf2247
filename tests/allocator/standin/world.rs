//! A caching allocator without a GPU: segments, blocks, pools and counters as torch keeps them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::memory::{Nodes, Object, Table};
use super::shape::{Shape, Wrong};

/// Numbers that look random and are the same every time.
#[derive(Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Used,
    /// Freed, and a stream still waits.
    Pending,
    /// Address space only.
    Unmapped,
}

struct Block {
    object: Object,
    size: u64,
    requested: u64,
    state: State,
}

struct Segment {
    pool: usize,
    expandable: bool,
    blocks: Vec<Block>,
}

struct Pool {
    at: u64,
    object: Object,
    offset: usize,
    small: bool,
    private: bool,
    nodes: [Nodes; 3],
}

/// What the allocator would say of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Truth {
    pub arrays: [[[i64; 4]; 3]; 9],
    pub retries: i64,
    pub ooms: i64,
    pub free_blocks: u64,
    pub free_bytes: u64,
    pub largest: u64,
    pub private_bytes: u64,
    pub segments: u64,
    pub expandable: bool,
    pub sizes: BTreeMap<u64, u64>,
}

pub struct World {
    shape: Shape,
    device: Object,
    native: Object,
    segments: Vec<Segment>,
    pools: Vec<Pool>,
    active: Table,
    graphs: Table,
    spare: Vec<Object>,
    arrays: [[[i64; 4]; 3]; 9],
    retries: i64,
    ooms: i64,
}

pub const UUID: [u8; 16] = [0xd3, 0xad, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
const STATS: usize = 40;

impl World {
    /// An allocator with one device in use and one that never was.
    pub fn new(shape: Shape) -> Self {
        let (device, native) = (Object::new(4096), Object::new(24 << 10));
        let name = Object::text("N3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE");
        let (kind, virtuals, unused) = (Object::new(16), Object::new(64), Object::new(4096));
        kind.put(8, name.at());
        virtuals.put(8, kind.at());
        native.put(0, virtuals.at() + 16);
        let vector = Object::new(16);
        vector.put(0, device.at());
        vector.put(8, unused.at());
        for (n, end) in [0, 16, 16].into_iter().enumerate() {
            native.put(shape.vector + n * 8, vector.at() + end);
        }
        let mut unused = Self::bare(shape, unused, native);
        unused.publish();
        let mut world = Self::bare(shape, device, native);
        world.publish();
        world
    }

    fn bare(shape: Shape, device: Object, native: Object) -> Self {
        let mut world = Self {
            shape,
            device,
            native,
            segments: Vec::new(),
            pools: Vec::new(),
            active: Table::default(),
            graphs: Table::default(),
            spare: Vec::new(),
            arrays: Default::default(),
            retries: 0,
            ooms: 0,
        };
        let kind = u64::from(shape.wrong != Wrong::OtherMutex);
        device.put(16, kind);
        let first = world.first_pool();
        for small in [false, true] {
            let offset = first + if small { shape.pool_bytes() } else { 0 };
            world.add_pool(device, offset, small, 0);
        }
        for table in 1..4 {
            Table::empty(device, world.active_at() + table * 40);
        }
        if shape.gap > 0 {
            Table::empty(device, STATS + 6 * 96);
        }
        if shape.has_prop {
            let at = world.active_at() + 256;
            device.put_bytes(at, b"NVIDIA H200");
            device.put_bytes(at + 256, &UUID);
            device.put(at + 288, 150 << 30);
        }
        world
    }

    fn tail_at(&self) -> usize {
        let more = if self.shape.wrong == Wrong::MoreArrays { 96 } else { 0 };
        STATS + 9 * 96 + self.shape.gap + more
    }

    fn first_pool(&self) -> usize {
        let more = match self.shape.wrong {
            Wrong::LongTail => 160,
            Wrong::MoreStats => 32,
            _ => 0,
        };
        self.tail_at() + self.shape.tail + more
    }

    fn active_at(&self) -> usize {
        self.first_pool() + 2 * self.shape.pool_bytes()
    }

    fn add_pool(&mut self, object: Object, offset: usize, small: bool, owner: u64) {
        let end = offset + self.shape.sets * 48;
        object.put(end, u64::from(small));
        object.put(end + 8, owner);
        let at = object.at() + offset as u64;
        let nodes = Default::default();
        self.pools.push(Pool { at, object, offset, small, private: owner != 0, nodes });
    }

    /// What the exported pointer has to hold.
    pub fn allocator(&self) -> u64 {
        self.native.at()
    }

    /// Where the device's allocator is.
    pub fn device(&self) -> u64 {
        self.device.at()
    }

    /// Moves the vector of devices to where nothing is, as `exec` would.
    pub fn vanish(&mut self) {
        self.native.put(self.shape.vector, 0);
    }

    fn graph(&mut self) {
        let private = Object::new(32 + 2 * self.shape.pool_bytes());
        for small in [false, true] {
            let offset = 32 + if small { self.shape.pool_bytes() } else { 0 };
            self.add_pool(private, offset, small, private.at());
        }
    }

    /// One thing that a program may do.
    pub fn step(&mut self, dice: &mut Dice) {
        match dice.roll(24) {
            0..10 => self.allocate(dice),
            10..16 => self.change(dice, State::Used, State::Free),
            16 => self.change(dice, State::Used, State::Pending),
            17 => self.change(dice, State::Pending, State::Free),
            18 if self.pools.len() < 8 => self.graph(),
            19 => self.ooms += 1,
            20 => self.retries += 1,
            21 => self
                .segments
                .retain(|segment| segment.blocks.iter().any(|b| b.state != State::Free)),
            22 => self.reset(),
            _ => self.grow(dice),
        }
        self.publish();
    }

    /// At least this many blocks at once, every second one free.
    pub fn fill(&mut self, blocks: usize, dice: &mut Dice) {
        while self.segments.iter().map(|segment| segment.blocks.len()).sum::<usize>() < blocks {
            let pool = dice.roll(2) as usize;
            let mut object = |world: &mut Self| {
                // As in a heap that other things live in too.
                Object::new(64 * (1 + dice.roll(8)) as usize);
                world.object()
            };
            let blocks = (0..20)
                .map(|n| Block {
                    object: object(self),
                    size: (64 << 10) + 512 * n,
                    requested: if n % 2 == 0 { 100 } else { 0 },
                    state: if n % 2 == 0 { State::Used } else { State::Free },
                })
                .collect();
            self.segments.push(Segment { pool, expandable: false, blocks });
        }
        self.publish();
    }

    fn object(&mut self) -> Object {
        self.spare.pop().unwrap_or_else(|| Object::new(160))
    }

    fn grow(&mut self, dice: &mut Dice) {
        let pool = dice.roll(self.pools.len() as u64) as usize;
        let expandable = self.shape.sets >= 2 && dice.roll(3) == 0;
        let size = if self.pools[pool].small { 2 << 20 } else { (1 + dice.roll(30)) << 21 };
        let new = |object, size, state| Block { object, size, requested: 0, state };
        let mut blocks = vec![new(self.object(), size, State::Free)];
        if expandable {
            let hole = new(self.object(), 2 << 20, State::Unmapped);
            let more = new(self.object(), 2 << 20, State::Free);
            let tail = new(self.object(), 1 << 40, State::Unmapped);
            blocks.extend([hole, more, tail]);
        }
        self.segments.push(Segment { pool, expandable, blocks });
    }

    fn pick(&self, dice: &mut Dice, state: State) -> Option<(usize, usize)> {
        let all: Vec<_> = (0..self.segments.len())
            .flat_map(|s| (0..self.segments[s].blocks.len()).map(move |b| (s, b)))
            .filter(|&(s, b)| self.segments[s].blocks[b].state == state)
            .collect();
        (!all.is_empty()).then(|| all[dice.roll(all.len() as u64) as usize])
    }

    /// Takes a part of a free block.
    fn allocate(&mut self, dice: &mut Dice) {
        let Some((s, b)) = self.pick(dice, State::Free) else { return self.grow(dice) };
        let size = self.segments[s].blocks[b].size;
        let want = (512 * (1 + dice.roll(size / 512))).min(size);
        if want < size {
            let object = self.object();
            let rest = Block { object, size: size - want, requested: 0, state: State::Free };
            self.segments[s].blocks.insert(b + 1, rest);
        }
        let block = &mut self.segments[s].blocks[b];
        (block.size, block.state) = (want, State::Used);
        block.requested = want - dice.roll(512).min(want - 1);
    }

    /// Gives a block another state; free neighbours become one.
    fn change(&mut self, dice: &mut Dice, from: State, to: State) {
        let Some((s, b)) = self.pick(dice, from) else { return };
        let blocks = &mut self.segments[s].blocks;
        blocks[b].state = to;
        for right in [b + 1, b] {
            if right > 0
                && right < blocks.len()
                && [right - 1, right].iter().all(|&n| blocks[n].state == State::Free)
            {
                let gone = blocks.remove(right);
                blocks[right - 1].size += gone.size;
                self.spare.push(gone.object);
            }
        }
    }

    fn reset(&mut self) {
        for stat in self.arrays.iter_mut().flatten() {
            *stat = [stat[0], stat[0], 0, 0];
        }
    }

    fn count(&mut self) {
        let mut now = [[0_i64; 2]; 9];
        for segment in &self.segments {
            let pool = usize::from(!self.pools[segment.pool].small);
            let mut add = |counter: usize, n: u64| now[counter][pool] += n.cast_signed();
            // Expandable segments were not counted before 2.13.
            add(1, u64::from(!segment.expandable));
            for block in segment.blocks.iter().filter(|block| block.state != State::Unmapped) {
                let is = |state| u64::from(block.state == state);
                let active = is(State::Used) + is(State::Pending);
                let split =
                    u64::from(segment.blocks.len() > 1 && !segment.expandable) * is(State::Free);
                add(0, is(State::Used));
                add(2, active);
                add(3, split);
                add(4, is(State::Used) * block.size);
                add(5, block.size);
                add(6, active * block.size);
                add(7, split * block.size);
                add(8, is(State::Used) * block.requested);
            }
        }
        for (array, now) in self.arrays.iter_mut().zip(now) {
            for (stat, now) in array.iter_mut().zip([now[0] + now[1], now[0], now[1]]) {
                let change = now - stat[0];
                *stat =
                    [now, stat[1].max(now), stat[2] + change.max(0), stat[3] + (-change).max(0)];
            }
            // The sum changes by as much as its parts do.
            array[0][2] = array[1][2] + array[2][2];
            array[0][3] = array[1][3] + array[2][3];
        }
    }

    /// Writes everything, with the mutex held as torch holds it.
    pub fn publish(&mut self) {
        self.count();
        self.device.put(0, 1 | 1 << 32);
        self.device.put(8, u64::from(std::process::id()) | 1 << 32);
        self.publish_counters();
        self.publish_blocks();
        self.device.put(8, 0);
        self.device.put(0, 0);
    }

    fn publish_counters(&self) {
        let mut order: Vec<usize> = (0..9).collect();
        match self.shape.wrong {
            Wrong::SplitAndRequested => order.swap(7, 8),
            Wrong::AllocatedAndReserved => order.swap(4, 5),
            Wrong::MoreArrays => order.insert(6, 6),
            _ => {}
        }
        for (n, &counter) in order.iter().enumerate() {
            let at = STATS + n * 96 + if n >= 6 { self.shape.gap } else { 0 };
            for (index, stat) in self.arrays[counter].iter().enumerate() {
                let mut words = *stat;
                match self.shape.wrong {
                    Wrong::PeakFirst => words.swap(0, 1),
                    Wrong::NarrowCounters => {
                        words = [words[0] | words[1] << 32, words[2] | words[3] << 32, 0, 0];
                    }
                    _ => {}
                }
                for (w, word) in words.iter().enumerate() {
                    self.device.put(at + index * 32 + w * 8, word.cast_unsigned());
                }
            }
        }
        let retries = self.first_pool() - self.shape.tail;
        self.device.put(retries, self.retries.cast_unsigned());
        self.device.put(retries + 8, self.ooms.cast_unsigned());
        // The limit on splitting; the rest are counters.
        self.device.put(self.first_pool() - 8, u64::MAX);
    }

    fn publish_blocks(&mut self) {
        let (at, wrong) = (self.shape.block_pool, self.shape.wrong);
        for segment in &self.segments {
            let link = |n: usize| segment.blocks.get(n).map_or(0, |block| block.object.at());
            for (n, block) in segment.blocks.iter().enumerate() {
                let pool =
                    if wrong == Wrong::NoPoolInBlock { 0 } else { self.pools[segment.pool].at };
                let mapped = u64::from(block.state != State::Unmapped) << 8;
                let flags = u64::from(block.state == State::Used) | mapped;
                let size = if wrong == Wrong::SizeElsewhere { at - 24 } else { at - 16 };
                block.object.put(at - 24, 0);
                block.object.put(at - 16, 7);
                block.object.put(size, block.size);
                block.object.put(at - 8, block.requested);
                block.object.put(at, pool);
                block.object.put(at + 16, flags);
                block.object.put(at + 24, if n == 0 { 0 } else { link(n - 1) });
                block.object.put(at + 32, link(n + 1));
            }
        }
        for index in 0..self.pools.len() {
            let free = self.blocks_of(index, State::Free);
            let unmapped = self.blocks_of(index, State::Unmapped);
            let by_address = if wrong == Wrong::OtherSets { Vec::new() } else { free.clone() };
            let sets = [free, by_address, unmapped];
            let pool = &mut self.pools[index];
            for set in 0..self.shape.sets {
                // The set of free blocks is the first one, the one of holes the last.
                let which = if set > 0 && set == self.shape.sets - 1 { 2 } else { set };
                let offset = pool.offset + set * 48;
                pool.nodes[set].write(pool.object, offset, &sets[which]);
                if wrong == Wrong::OtherSets {
                    pool.object.put(offset + 40, u64::MAX);
                }
            }
        }
        self.publish_tables();
    }

    fn publish_tables(&mut self) {
        let active: Vec<Vec<u64>> = (0..self.pools.len())
            .flat_map(|n| [self.blocks_of(n, State::Used), self.blocks_of(n, State::Pending)])
            .flatten()
            .map(|block| vec![block])
            .collect();
        let at = self.active_at();
        self.active.write(self.device, at, 1, &active);
        if self.shape.wrong == Wrong::OtherTable {
            self.device.put(at + 24, active.len() as u64 + 1);
        }
        let private = self.pools.iter().filter(|pool| pool.private && !pool.small);
        let rows: Vec<_> =
            private.enumerate().map(|(n, p)| vec![0, n as u64 + 1, p.object.at()]).collect();
        self.graphs.write(self.device, at + 40, 3, &rows);
    }

    fn blocks_of(&self, pool: usize, state: State) -> Vec<u64> {
        let segments = self.segments.iter().filter(|segment| segment.pool == pool);
        segments
            .flat_map(|segment| &segment.blocks)
            .filter(|block| block.state == state)
            .map(|block| block.object.at())
            .collect()
    }

    /// What is in memory now.
    pub fn truth(&self) -> Truth {
        let mut truth = Truth {
            arrays: self.arrays,
            retries: self.retries,
            ooms: self.ooms,
            expandable: self.segments.iter().any(|segment| segment.expandable),
            ..Truth::default()
        };
        for segment in &self.segments {
            let mut before = State::Unmapped;
            for block in &segment.blocks {
                truth.segments +=
                    u64::from(before == State::Unmapped && block.state != State::Unmapped);
                before = block.state;
                if block.state != State::Unmapped && self.pools[segment.pool].private {
                    truth.private_bytes += block.size;
                }
                if block.state == State::Free {
                    truth.free_blocks += 1;
                    truth.free_bytes += block.size;
                    truth.largest = truth.largest.max(block.size);
                    *truth.sizes.entry(block.size).or_default() += 1;
                }
            }
        }
        truth
    }
}
