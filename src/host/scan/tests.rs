//! The sums of a scan, and its slices, on a tree of files.

use super::*;
use crate::host::devices::{DeviceRole, StandIn};
use std::fs;
use std::os::unix::fs::symlink;

const SLICE: Slice = Slice { processes: 7, files: 100 };

struct Tree {
    _dir: tempfile::TempDir,
    root: Root,
    table: DeviceTable,
}

fn tree() -> Tree {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::new(dir.path());
    fs::create_dir_all(root.path("proc")).unwrap();
    fs::write(root.path("uvm"), "").unwrap();
    let stand_in = StandIn { path: root.path("uvm"), role: DeviceRole::Uvm };
    let table = DeviceTable::read(&root, &[stand_in]);
    Tree { _dir: dir, root, table }
}

impl Tree {
    fn put(&self, pid: u32, group: u32, holds: bool) {
        let files = self.root.of(Pid(pid), "fd");
        let _ = fs::remove_dir_all(&files);
        fs::create_dir_all(&files).unwrap();
        let tail = "0 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 100 1000 25 1";
        let stat = format!("{pid} (x) S 1 {group} {tail}\n");
        fs::write(self.root.of(Pid(pid), "stat"), stat).unwrap();
        symlink("/dev/null", files.join("0")).unwrap();
        if holds {
            symlink(self.root.path("uvm"), files.join("1")).unwrap();
        }
    }

    fn look(&mut self, scan: &mut Scan, now: Stamp) {
        scan.refresh(&self.root, now);
        let table = &mut self.table;
        let mut asking = Asking { root: &self.root, table, ticks_per_second: 100 };
        scan.slice(&mut asking, now, SLICE, None);
    }
}

fn at(boot_ms: u64) -> Stamp {
    Stamp { boot_ms, wall_ms: 0 }
}

fn assert_sums(scan: &Scan) {
    let count = |is: &dyn Fn(&Entry) -> bool| scan.entries.values().filter(|e| is(e)).count();
    let holders: BTreeSet<Pid> =
        scan.entries().filter(|(_, entry)| entry.holds()).map(|(pid, _)| pid).collect();
    assert_eq!(*scan.holders(), holders);
    assert_eq!(scan.unreadable as usize, count(&Entry::unreadable));
    assert_eq!(scan.left, count(&|entry| entry.pass <= scan.pass));
    assert_eq!(scan.queue.len(), scan.entries.len());
    for (pid, entry) in &scan.entries {
        assert!(scan.queue.contains(&(entry.queued_ms, *pid)) && entry.queued_ms <= entry.due_ms);
    }
}

#[test]
fn what_is_kept_of_all_is_what_counting_them_gives() {
    let mut tree = tree();
    let mut scan = Scan::default();
    let mut random = 7_u32;
    let mut next = |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % below
    };
    let mut complete = 0;
    for second in 0..400_u64 {
        let now = at(1_000_000 + second * 5_000);
        for _ in 0..next(4) {
            let pid = 100 + next(60);
            match next(5) {
                0 => _ = fs::remove_dir_all(tree.root.of(Pid(pid), "")),
                // Nobody's files can be listed where there is no directory.
                1 => _ = fs::remove_dir_all(tree.root.of(Pid(pid), "fd")),
                kind => tree.put(pid, 100 + next(5), kind == 2),
            }
        }
        tree.look(&mut scan, now);
        let pid = Pid(100 + next(60));
        let devices = scan.devices(pid).clone();
        scan.learn(&ProcStat { pid, group: Pid(next(3)), devices: &devices }, now);
        assert_sums(&scan);
        complete += u32::from(scan.complete_ms == Some(now.boot_ms));
    }
    assert!(complete > 3 && scan.entries.len() > 20, "{complete}, {}", scan.entries.len());
}

#[test]
fn a_pass_ends_though_new_ones_come_in_every_look() {
    let mut tree = tree();
    let mut scan = Scan::default();
    for pid in 10..20 {
        tree.put(pid, pid, false);
    }
    let mut complete = BTreeSet::new();
    for second in 0..200 {
        let pid = 1000 + second;
        tree.put(pid, pid, false);
        let _ = fs::remove_dir_all(tree.root.of(Pid(pid - 5), ""));
        tree.look(&mut scan, at(1_000_000 + u64::from(second) * 1_000));
        complete.extend(scan.report().scanned_boot_ms);
    }
    // At first, and with every rotation.
    assert!((3..=20).contains(&complete.len()), "{complete:?}");
}

#[test]
fn what_comes_to_a_watched_group_or_goes_is_told() {
    let mut tree = tree();
    let mut scan = Scan::default();
    tree.put(10, 10, false);
    tree.look(&mut scan, at(1_000_000));
    scan.watch([Pid(10)].into_iter());
    let before = scan.changes();
    tree.put(20, 20, false);
    tree.look(&mut scan, at(1_001_000));
    assert_eq!(scan.changes(), before, "another group");
    // One that is still there in the next look is asked in it.
    tree.put(11, 10, false);
    tree.look(&mut scan, at(1_002_000));
    assert_eq!(scan.changes(), before);
    tree.look(&mut scan, at(1_003_000));
    assert_eq!(scan.changes(), before + 1);
    fs::remove_dir_all(tree.root.of(Pid(11), "")).unwrap();
    tree.look(&mut scan, at(1_004_000));
    assert_eq!(scan.changes(), before + 2);
}

#[test]
fn more_than_a_slice_is_asked_in_the_next_looks() {
    let mut tree = tree();
    let mut scan = Scan::default();
    tree.look(&mut scan, at(1_000_000));
    for pid in 100..120 {
        tree.put(pid, pid, pid == 119);
    }
    let looks = (1..9).find(|n| {
        tree.look(&mut scan, at(1_000_000 + n * 1_000));
        scan.holders().contains(&Pid(119))
    });
    assert_eq!(looks, Some(4));
    assert_eq!(scan.report().scanned_boot_ms, Some(1_004_000));
}
