//! Rights of a program that runs for long (capabilities): what it gives up once it has begun.
//!
//! Rights belong to a thread, and one that is begun later has those of the one that began it. So
//! this is for the first thread, before others, and for whatever runs by then.

use std::fmt;
use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// What it takes to look at processes of other users: at their open files, variables and memory, and
/// into folders that are only theirs.
pub const LOOK: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH);

/// What it may take besides to put a file into somebody else's folder, the least first: nothing, to
/// pass over the folder's mode, and to replace a file of others where the folder is sticky.
const WRITE: [CapabilitySet; 3] = [
    CapabilitySet::empty(),
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::FOWNER),
];

const NAMES: [(CapabilitySet, &str); 4] = [
    (CapabilitySet::SYS_PTRACE, "CAP_SYS_PTRACE"),
    (CapabilitySet::DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"),
    (CapabilitySet::DAC_OVERRIDE, "CAP_DAC_OVERRIDE"),
    (CapabilitySet::FOWNER, "CAP_FOWNER"),
];

/// What became of the rights of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shed {
    /// What it has now.
    pub kept: CapabilitySet,
    /// Whether it had more.
    pub had_more: bool,
}

impl fmt::Display for Shed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = NAMES.iter().filter(|(right, _)| self.kept.contains(*right));
        let kept: Vec<_> = kept.map(|(_, name)| *name).collect();
        match kept.as_slice() {
            [] => out.write_str("none of its rights (capabilities) is kept"),
            kept => write!(out, "of its rights (capabilities) only {} kept", are(kept)),
        }
    }
}

fn are(names: &[&str]) -> String {
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(", "))
}

/// Gives up, for this thread and what it begins, every right but [`LOOK`] and what `write` takes;
/// for good: no program that it runs has more. `write` tries to write what will be written later; it
/// is called with few rights first. Where it fails for another reason than these, nothing is kept
/// for it.
///
/// # Errors
/// Where the system refuses. Some may be given up by then.
pub fn shed(mut write: impl FnMut() -> io::Result<()>) -> io::Result<Shed> {
    let before = capabilities(None)?;
    let mut kept = LOOK & before.effective;
    for more in WRITE {
        let tried = (LOOK | more) & before.effective;
        set_capabilities(None, CapabilitySets { effective: tried, ..before })?;
        match write() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Ok(()) => {
                kept = tried;
                break;
            }
            Err(_) => break,
        }
    }
    // The bound is lowered while that is still allowed. Without it nothing is gained either: the
    // last call below forbids programs that give rights.
    set_capabilities(None, before)?;
    if before.effective.contains(CapabilitySet::SETPCAP) {
        lower_bound(kept)?;
    }
    // With the inheritable ones the ambient ones go.
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: none })?;
    set_no_new_privs(true)?;
    Ok(Shed { kept, had_more: before.permitted != kept })
}

fn lower_bound(kept: CapabilitySet) -> io::Result<()> {
    for bit in 0..u64::BITS {
        let right = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(right) {
            // The kernel knows no more than these.
            Err(_) => break,
            Ok(true) if !kept.contains(right) => remove_capability_from_bounding_set(right)?,
            Ok(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;
    use crate::runtime::serve::textfile;

    /// On a thread of its own, whose rights are then gone: the line of its status.
    fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> (T, String) {
        let read = || fs::read_to_string("/proc/thread-self/status").unwrap();
        std::thread::spawn(move || (work(), read())).join().unwrap()
    }

    fn line(status: &str, name: &str) -> u64 {
        let found = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(found.trim_start_matches(':').trim(), 16).unwrap()
    }

    fn is_root() -> bool {
        capabilities(None).unwrap().effective.contains(LOOK | WRITE[2] | CapabilitySet::SETPCAP)
    }

    #[test]
    fn only_what_looking_takes_is_left() {
        let had = capabilities(None).unwrap().effective;
        let (shed, status) = on_a_thread(|| shed(|| Ok(())).unwrap());
        assert_eq!(shed.kept, LOOK & had);
        for name in ["CapEff", "CapPrm"] {
            assert_eq!(line(&status, name), shed.kept.bits(), "{name}");
        }
        assert_eq!((line(&status, "CapInh"), line(&status, "CapAmb")), (0, 0));
        assert_eq!(line(&status, "NoNewPrivs"), 1);
        if had.contains(CapabilitySet::SETPCAP) {
            assert_eq!(line(&status, "CapBnd"), shed.kept.bits());
        }
        // Others keep theirs.
        assert_eq!(capabilities(None).unwrap().effective, had);
    }

    #[test]
    fn a_folder_of_somebody_else_takes_one_right_more() {
        if !is_root() {
            eprintln!("skipped: not root, nothing can be given up");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().to_owned();
        chown(&folder, Some(65534), Some(65534)).unwrap();
        let file = folder.join("x.prom");
        let path = file.clone();
        let kept = |path: std::path::PathBuf| on_a_thread(move || shed(|| fs::write(&path, "x")));
        let (outcome, status) = kept(path);
        assert_eq!(outcome.unwrap().kept, LOOK | CapabilitySet::DAC_OVERRIDE);
        assert_eq!(line(&status, "CapBnd"), (LOOK | CapabilitySet::DAC_OVERRIDE).bits());
        // Sticky, and the file is another's.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
        chown(&file, Some(65533), None).unwrap();
        let (new, path) = (folder.join("new"), file.clone());
        let asked = path.clone();
        let (outcome, _) = on_a_thread(move || shed(|| textfile::try_out(&asked)));
        assert_eq!(outcome.unwrap().kept, LOOK | WRITE[2]);
        assert_eq!(fs::read(&file).unwrap(), b"x", "a trial replaces nothing");
        let replaced = on_a_thread(move || {
            shed(|| fs::write(&new, "y").and_then(|()| fs::rename(&new, &path)))
        });
        assert_eq!(replaced.0.unwrap().kept, LOOK | WRITE[2]);
        // What no right mends keeps none.
        let (outcome, _) = kept("/nowhere/x.prom".into());
        assert_eq!(outcome.unwrap().kept, LOOK);
    }

    #[test]
    fn what_is_kept_is_said_by_name() {
        let said = |kept| Shed { kept, had_more: true }.to_string();
        assert!(said(LOOK).contains("only CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH are kept"));
        assert!(said(CapabilitySet::SYS_PTRACE).contains("only CAP_SYS_PTRACE is kept"));
        assert!(said(CapabilitySet::empty()).contains("none"));
    }
}
