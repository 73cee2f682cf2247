//! Who belongs to whose job.

use std::collections::{BTreeMap, BTreeSet};

use crate::host::scan::Scan;
use crate::ids::Pid;
use crate::sample::ProcSample;

/// Members of one group that are taken.
const MOST_OF_A_GROUP: usize = 256;

/// Process groups of holders, each with the users who hold in it.
pub(super) fn owners_of_groups<'a>(
    holders: impl Iterator<Item = &'a ProcSample>,
) -> BTreeMap<Pid, BTreeSet<u32>> {
    let mut owners: BTreeMap<Pid, BTreeSet<u32>> = BTreeMap::new();
    for holder in holders.filter(|holder| holder.group.0 != 0) {
        owners.entry(holder.group).or_default().extend(holder.uid.get());
    }
    owners
}

/// Processes of those groups, as far as the scan knows them.
pub(super) fn members(scan: &Scan, groups: &BTreeMap<Pid, BTreeSet<u32>>) -> Vec<Pid> {
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
