//! Who belongs to a holder: ancestors, leaders, members of its job, its notebook server.

use std::collections::{BTreeMap, BTreeSet};

use crate::host::detail::Part;
use crate::host::probe::Probe;
use crate::host::scan::Scan;
use crate::ids::{Pid, Stamp};
use crate::sample::ProcSample;

/// Members of one group that are taken.
const MOST_OF_A_GROUP: usize = 256;
/// After this, in milliseconds, they are looked for again, though nothing says that they are others.
const AGAIN_MS: u64 = 30_000;

/// Who was found to belong to the holders, and on what grounds.
#[derive(Debug, Default)]
pub(super) struct Kin {
    holders: Vec<Pid>,
    relatives: Vec<Pid>,
    /// What the scan and the details had counted, and when; `None` where they are to be looked for.
    grounds: Option<(u64, u64)>,
    found_ms: u64,
}

impl Probe {
    /// These are the holders of this look.
    pub(super) fn want(&mut self, holders: Vec<Pid>) {
        if self.kin.holders != holders {
            self.kin.holders = holders;
            self.kin.grounds = None;
        }
    }

    pub(super) fn look_at_relatives(&mut self, now: Stamp) {
        if !self.look_at_known_relatives(now) {
            self.find_relatives(now);
        }
    }

    /// Looks at the same ones as before, for as long as nothing has changed that they were found by.
    fn look_at_known_relatives(&mut self, now: Stamp) -> bool {
        let old = now.boot_ms.saturating_sub(self.kin.found_ms) >= AGAIN_MS;
        if old || self.kin.grounds != Some(self.grounds()) {
            return false;
        }
        let relatives = std::mem::take(&mut self.kin.relatives);
        let live = relatives.iter().all(|pid| self.refresh(*pid, Part::Relative, now));
        let same = live && self.kin.grounds == Some(self.grounds());
        if !same {
            // Those that have been read are not read again, but whether they are wanted is open.
            for pid in &relatives {
                if let Some(detail) = self.details.get_mut(pid) {
                    detail.wanted_in = 0;
                }
            }
        }
        self.kin.relatives = relatives;
        same
    }

    const fn grounds(&self) -> (u64, u64) {
        (self.scan.changes(), self.machine.ties)
    }

    /// Remembers who was found in this look.
    pub(super) fn keep_kin(&mut self, now: Stamp) {
        if self.kin.grounds == Some(self.grounds()) {
            return;
        }
        let relatives = self.details.iter().filter(|(_, detail)| detail.part == Part::Relative);
        self.kin.relatives = relatives.map(|(pid, _)| *pid).collect();
        self.kin.grounds = (!self.full()).then(|| self.grounds());
        self.kin.found_ms = now.boot_ms;
    }

    fn find_relatives(&mut self, now: Stamp) {
        self.kin.grounds = None;
        let holders: Vec<Pid> = self.wanted_now().collect();
        // Parents become known only as they are read, so the chain is climbed step by step.
        let mut climbing: Vec<Pid> = Vec::new();
        let mut leaders = BTreeSet::new();
        for pid in &holders {
            let Some(detail) = self.details.get(pid) else { continue };
            climbing.push(detail.sample.parent);
            leaders.extend([detail.sample.group, detail.sample.session]);
        }
        let mut climbed = BTreeSet::new();
        while let Some(pid) = climbing.pop() {
            if pid.0 == 0 || !climbed.insert(pid) || self.full() {
                continue;
            }
            if self.read(pid, Part::Relative, now)
                && let Some(detail) = self.details.get(&pid)
            {
                climbing.push(detail.sample.parent);
            }
        }
        leaders.remove(&Pid(0));
        for pid in leaders {
            self.read(pid, Part::Relative, now);
        }
        self.look_at_groups(&holders, now);
        self.look_at_notebook_servers(now);
    }

    /// Whether there was one that was not known.
    pub(super) fn look_at_notebook_servers(&mut self, now: Stamp) -> bool {
        if self.kin.grounds == Some(self.grounds()) {
            return false;
        }
        let servers: BTreeSet<Pid> =
            self.details.values().filter_map(|detail| detail.sample.notebook_server()).collect();
        let mut found = false;
        for pid in servers {
            let known = self.details.get(&pid).is_some_and(|d| d.wanted_in == self.looks);
            found |= !known && !self.full() && self.read(pid, Part::Relative, now);
        }
        found
    }

    /// Members of the same process group that belong to the same user: the job of a holder.
    fn look_at_groups(&mut self, holders: &[Pid], now: Stamp) {
        let owners: BTreeMap<Pid, BTreeSet<u32>> = owners_of_groups(
            holders.iter().filter_map(|pid| self.details.get(pid)).map(|detail| &*detail.sample),
        );
        self.scan.watch(owners.keys().copied());
        for pid in members(&self.scan, &owners) {
            if self.full() {
                return;
            }
            let known = self.details.contains_key(&pid);
            if !self.read(pid, Part::Relative, now) {
                continue;
            }
            let same = self.details.get(&pid).is_some_and(|detail| {
                let owner = owners.get(&detail.sample.group);
                owner.is_some_and(|uids| {
                    detail.sample.uid.value().is_some_and(|uid| uids.contains(uid))
                })
            });
            if !same && !known {
                self.remove(pid);
            }
        }
    }

    fn wanted_now(&self) -> impl Iterator<Item = Pid> {
        let looks = self.looks;
        self.details
            .iter()
            .filter(move |(_, detail)| detail.wanted_in == looks)
            .map(|(pid, _)| *pid)
    }
}

/// Process groups of holders, each with the users who hold in it.
fn owners_of_groups<'a>(
    holders: impl Iterator<Item = &'a ProcSample>,
) -> BTreeMap<Pid, BTreeSet<u32>> {
    let mut owners: BTreeMap<Pid, BTreeSet<u32>> = BTreeMap::new();
    for holder in holders.filter(|holder| holder.group.0 != 0) {
        owners.entry(holder.group).or_default().extend(holder.uid.get());
    }
    owners
}

/// Processes of those groups, as far as the scan knows them.
fn members(scan: &Scan, groups: &BTreeMap<Pid, BTreeSet<u32>>) -> Vec<Pid> {
    let mut taken: BTreeMap<Pid, usize> = BTreeMap::new();
    let mut members: Vec<Pid> = scan
        .entries()
        .filter(|(_, entry)| !entry.kernel && groups.contains_key(&entry.group))
        .filter(|(_, entry)| {
            let count = taken.entry(entry.group).or_default();
            *count += 1;
            *count <= MOST_OF_A_GROUP
        })
        .map(|(pid, _)| pid)
        .collect();
    members.sort_unstable();
    members
}
