//! The figures of a case under the names of the ladder: what is asked, what is there, who holds it.

use super::clues::Mark;
use super::figures::Slot;
use super::judge::Case;
use super::tables;

/// What the driver, a container or a second library may add to a sum without being named.
pub(super) const TOLERANCE: u64 = 614 << 20;

/// A process that is not the failing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Other {
    pub pid: u32,
    pub bytes: Option<u64>,
    pub name: Option<String>,
    /// Most likely the failing process itself under its number outside a container.
    pub self_likely: bool,
    /// It shows the desktop.
    pub screen: bool,
    /// It belongs to the desktop and can be closed.
    pub closable: bool,
}

impl Other {
    /// Whether it belongs to the desktop.
    pub(super) const fn desktop(&self) -> bool {
        self.screen || self.closable
    }
}

/// T, F, R, A, U, P, O and L.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    pub total: Option<u64>,
    pub free: Option<u64>,
    pub requested: Option<u64>,
    pub allocated: Option<u64>,
    pub reserved: Option<u64>,
    pub unallocated: Option<u64>,
    pub allowed: Option<u64>,
    pub private_pools: Option<u64>,
    pub this_process: Option<u64>,
    pub others: Vec<Other>,
    /// Held by others, summed or implied.
    pub held_by_others: u64,
    /// What others must hold where the message does not name them.
    pub implied_others: Option<u64>,
    /// In other allocators than the message's own.
    pub other_allocations: Option<u64>,
    /// Memory is shared with the host, or spills into it: gaps say nothing.
    pub unified: bool,
    /// Memory is the host's own: all that is in use of it is in use here.
    pub shared: bool,
}

impl Numbers {
    pub(super) fn of(case: &Case) -> Self {
        let get = |slot| case.figures.get(slot);
        let (allocated, mut reserved, mut unallocated) =
            (get(Slot::Allocated), get(Slot::Reserved), get(Slot::Unallocated));
        if let (Some(allocated), Some(all), None) = (allocated, reserved, unallocated) {
            unallocated = all.checked_sub(allocated);
        }
        if let (Some(allocated), Some(rest), None) = (allocated, unallocated, reserved) {
            reserved = Some(allocated + rest);
        }
        let mut numbers = Self {
            total: get(Slot::Total),
            free: get(Slot::Free),
            requested: get(Slot::Requested),
            allocated,
            reserved,
            unallocated,
            allowed: get(Slot::Allowed),
            private_pools: get(Slot::PrivatePools),
            this_process: get(Slot::ThisProcess),
            other_allocations: get(Slot::OtherAllocations),
            shared: case.has(Mark::Jetson),
            unified: case.has(Mark::Jetson) || case.has(Mark::Wsl) || case.has(Mark::Windows),
            ..Self::default()
        };
        if let (Some(total), Some(used), None) = (numbers.total, get(Slot::Used), numbers.free) {
            numbers.free = total.checked_sub(used);
        }
        numbers.others = others(case);
        numbers.find_self();
        numbers.sum_others(case);
        numbers
    }

    /// In a container the own number never matches: the process that holds what this one allocated
    /// is this one.
    fn find_self(&mut self) {
        let (Some(reserved), None) = (self.reserved, self.this_process) else { return };
        if reserved < 64 << 20 {
            return;
        }
        let rest: u64 = self.others.iter().filter_map(|other| other.bytes).sum();
        let used = self.total.zip(self.free).map(|(total, free)| total.saturating_sub(free));
        let fits = |bytes: u64| {
            let alone = used.is_none_or(|used| rest <= used + TOLERANCE);
            bytes + (16 << 20) >= reserved && alone
        };
        let closest = self
            .others
            .iter_mut()
            .filter(|other| other.bytes.is_some_and(fits))
            .min_by_key(|other| other.bytes.unwrap_or_default().abs_diff(reserved));
        if let Some(other) = closest {
            other.self_likely = true;
        }
    }

    fn sum_others(&mut self, case: &Case) {
        let named: u64 =
            self.others.iter().filter(|o| !o.self_likely).filter_map(|o| o.bytes).sum();
        self.held_by_others = named;
        let (Some(total), Some(free)) = (self.total, self.free) else { return };
        let used = total.saturating_sub(free);
        let id = case.event().map_or("", |event| event.signature.id);
        let first_generation =
            id.starts_with("torch.") && case.figures.get(Slot::Reserved).is_some();
        let nothing_yet = matches!(case.software, "vllm" | "ollama" | "llama.cpp")
            && self.allocated.is_none()
            && self.this_process.is_none();
        if self.unified || self.others.iter().any(|other| other.self_likely) {
            return;
        }
        if first_generation || (id == "torch.cuda" && self.this_process.is_none() && named == 0) {
            // The first generation names nobody; the second one leaves the list out only where the
            // driver cannot tell, and then a gap is no evidence.
            if first_generation {
                let implied = used.saturating_sub(self.reserved.unwrap_or_default());
                self.implied_others = Some(implied);
                self.held_by_others = implied.saturating_sub(512 << 20);
            }
        } else if nothing_yet && named == 0 {
            self.implied_others = Some(used);
            self.held_by_others = used;
        } else if let Some(this) = self.this_process {
            let hidden = used.saturating_sub(this + named);
            if hidden > TOLERANCE {
                self.implied_others = Some(hidden);
                self.held_by_others += hidden;
            }
        }
    }

    /// What the rest of a system holds of the memory that the GPU shares with it.
    pub(super) fn rest_of_system(&self) -> Option<u64> {
        let own = self.this_process.or(self.reserved)?;
        self.total?.checked_sub(self.free?.saturating_add(own)).filter(|bytes| *bytes > 0)
    }

    /// What must be kept free beside the request: 256 MiB or 2 % of the device.
    pub(super) fn margin(&self) -> u64 {
        (256 << 20).max(self.total.unwrap_or_default() / 50)
    }

    /// What this process could still take: of the device, or of its share of it.
    pub(super) fn room(&self) -> Option<u64> {
        let own = self.allowed.map(|limit| {
            let used = self.reserved.or(self.allocated).unwrap_or_default();
            limit.saturating_sub(used.saturating_add(self.other_allocations.unwrap_or_default()))
        });
        match (own, self.free) {
            (Some(own), Some(free)) => Some(own.min(free)),
            (own, free) => own.or(free),
        }
    }

    /// What is short, at least.
    pub(super) fn short(&self) -> Option<u64> {
        self.requested?.checked_sub(self.room()?).filter(|short| *short > 0)
    }

    /// What to aim for: what is short, and the margin.
    pub(super) fn aim(&self) -> Option<u64> {
        let (requested, room) = (self.requested?, self.room()?);
        Some(requested.saturating_add(self.margin()).saturating_sub(room))
            .filter(|missing| *missing > 0)
    }

    /// Every holder that is not this process belongs to the desktop.
    pub(super) fn all_desktop(&self) -> bool {
        let mut others = self.others.iter().filter(|other| !other.self_likely).peekable();
        others.peek().is_some() && others.all(Other::desktop)
    }

    /// A desktop is on the device, and what is known of it only shows it.
    pub(super) fn nothing_to_close(&self) -> bool {
        let others = || self.others.iter().filter(|other| !other.self_likely);
        others().any(|other| other.screen)
            && !others().any(|other| other.closable || other.name.is_none())
    }

    /// Whether closing programs of a desktop can be what helps: not much is short, and there may be
    /// such programs. Nothing is known of holders that the message does not name.
    pub(super) fn closing_may_help(&self) -> bool {
        /// A browser and what else is usually open has no more, in bytes.
        const MOST: u64 = 1536 << 20;
        let little = self.short().is_none_or(|short| short <= MOST);
        let mut named = self.others.iter().filter(|other| !other.self_likely).peekable();
        let nobody = named.peek().is_none();
        let unknown =
            |other: &Other| other.name.is_none() && other.bytes.is_none_or(|bytes| bytes <= MOST);
        little && (nobody || named.any(|other| other.closable || unknown(other)))
    }

    /// Neighbouring numbers of the same size: ranks of one job on one device.
    pub(super) fn siblings(&self) -> bool {
        let (Some(this), others) = (self.this_process, &self.others) else { return false };
        let alike =
            |other: &&Other| other.bytes.is_some_and(|bytes| bytes.abs_diff(this) <= this / 8);
        let pids: Vec<u32> = others.iter().filter(alike).map(|other| other.pid).collect();
        let near = pids.iter().max().zip(pids.iter().min());
        pids.len() >= 2 && near.is_some_and(|(max, min)| (max - min) as usize <= pids.len() + 8)
    }
}

fn others(case: &Case) -> Vec<Other> {
    let tables = &case.tables;
    case.figures
        .processes
        .iter()
        .map(|process| {
            let name = tables.names.get(&process.pid).cloned();
            Other {
                pid: process.pid,
                bytes: process.bytes,
                screen: name.as_deref().is_some_and(tables::is_screen),
                closable: name.as_deref().is_some_and(tables::is_closable),
                name,
                self_likely: false,
            }
        })
        .collect()
}
