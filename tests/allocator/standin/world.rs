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
pub enum State {
    Free,
    Used,
    /// Freed, and a stream still waits.
    Pending,
    /// Address space only.
    Unmapped,
}

pub struct Block {
    pub object: Object,
    pub size: u64,
    pub requested: u64,
    pub state: State,
}

pub struct Segment {
    pub pool: usize,
    pub expandable: bool,
    pub blocks: Vec<Block>,
}

pub struct Pool {
    pub at: u64,
    pub object: Object,
    pub offset: usize,
    pub small: bool,
    pub private: bool,
    pub nodes: [Nodes; 3],
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
    pub shape: Shape,
    pub device: Object,
    pub native: Object,
    pub segments: Vec<Segment>,
    pub pools: Vec<Pool>,
    pub active: Table,
    pub graphs: Table,
    pub spare: Vec<Object>,
    pub arrays: [[[i64; 4]; 3]; 9],
    pub retries: i64,
    pub ooms: i64,
}

pub const UUID: [u8; 16] = [0xd3, 0xad, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
pub const STATS: usize = 40;

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

    pub fn tail_at(&self) -> usize {
        let more = if self.shape.wrong == Wrong::MoreArrays { 96 } else { 0 };
        STATS + 9 * 96 + self.shape.gap + more
    }

    pub fn first_pool(&self) -> usize {
        let more = match self.shape.wrong {
            Wrong::LongTail => 160,
            Wrong::MoreStats => 32,
            _ => 0,
        };
        self.tail_at() + self.shape.tail + more
    }

    pub fn active_at(&self) -> usize {
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

    /// Frees all blocks while streams still work on them.
    pub fn pend(&mut self, dice: &mut Dice) {
        while self.pick(dice, State::Used).is_some() {
            self.change(dice, State::Used, State::Pending);
        }
        self.publish();
    }

    /// At least this many blocks at once, every second one free.
    pub fn fill(&mut self, blocks: usize, dice: &mut Dice) {
        while self.segments.iter().map(|segment| segment.blocks.len()).sum::<usize>() < blocks {
            let pool = dice.roll(2) as usize;
            let mut blocks = Vec::new();
            for n in 0..20 {
                // As in a heap that other things live in too.
                Object::new(64 * (1 + dice.roll(14)) as usize);
                let used = n % 2 == 0;
                if !used {
                    // Neighbours in the tree are not neighbours in the heap.
                    self.pools[pool].nodes[0].prepare(|sides| dice.roll(sides));
                }
                blocks.push(Block {
                    object: self.object(),
                    size: (64 << 10) + 512 * n,
                    requested: if used { 100 } else { 0 },
                    state: if used { State::Used } else { State::Free },
                });
            }
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
