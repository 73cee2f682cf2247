//! Writes a world where another process finds it.

use super::shape::Wrong;
use super::world::{STATS, State, World};

impl World {
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
                // Not given back before the streams are done, unlike the allocated bytes.
                add(8, active * block.requested);
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
}
