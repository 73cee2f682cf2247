//! Recordings on a disk that is full, and recordings that were torn.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

use vramlens::record::{Form, Reader, Recording, Redaction, Writer};
use vramlens::sample::{Gap, GapCause, Tick, redact};

use crate::fake::Fake;

#[allow(dead_code)]
#[path = "../record/ticks.rs"]
mod ticks;

fn recording(count: u64) -> (Vec<Tick>, Vec<u8>) {
    let mut writer =
        Writer::new(Vec::new(), Form::Frames, ticks::header(), Redaction::secrets(redact)).unwrap();
    let mut all = Vec::new();
    for n in 0..count {
        let tick = ticks::gpu_tick(n, n << 30);
        writer.push(&tick).unwrap();
        // A frame of its own each, so that there are as many tears between as within.
        writer.flush().unwrap();
        all.push(tick);
    }
    (all, writer.finish().unwrap())
}

fn read(bytes: &[u8]) -> Vec<Tick> {
    Reader::new(bytes).map_or_else(|_| Vec::new(), |reader| reader.filter_map(Result::ok).collect())
}

const fn is_damage(tick: &Tick) -> bool {
    matches!(tick, Tick::Gap(Gap { cause: GapCause::Damaged, .. }))
}

#[test]
fn a_recording_torn_at_any_byte_is_read_up_to_the_tear() {
    let (all, whole) = recording(6);
    assert_eq!(read(&whole), all);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("torn.vrt");
    let mut most = 0;
    for length in 0..whole.len() {
        let torn = &whole[..length];
        let kept: Vec<Tick> = read(torn).into_iter().filter(|tick| !is_damage(tick)).collect();
        assert!(all.starts_with(&kept), "cut at {length}");
        assert!(kept.len() >= most, "a longer part gives less: cut at {length}");
        most = kept.len();
        // As the program opens it, with an index of its own.
        std::fs::write(&path, torn).unwrap();
        if let Ok(recording) = Recording::open(&path) {
            let ticks = recording.ticks(Some(8_000)).map(|ticks| ticks.filter_map(Result::ok));
            assert!(ticks.map_or(0, Iterator::count) <= all.len() + 1, "cut at {length}");
        }
    }
    assert!(most >= 5, "what is whole was not read");
}

#[test]
fn a_recording_with_any_byte_broken_is_read_around_it() {
    let (all, whole) = recording(6);
    for place in 0..whole.len() {
        let mut broken = whole.clone();
        broken[place] ^= 0x55;
        let kept: Vec<Tick> = read(&broken).into_iter().filter(|tick| !is_damage(tick)).collect();
        // Another content with the right checksum does not come about by one byte.
        assert!(kept.iter().all(|tick| all.contains(tick)), "byte {place}");
        assert!(kept.len() + 2 >= all.len(), "byte {place} costs more than its frame");
    }
}

fn vramlens(fake: &Fake, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
    command.args(args).env("VRAMLENS_NVML_LIB", fake.library()).stdin(Stdio::null());
    command
}

/// It ends by itself, and says what is the matter.
fn says_why(output: &Output, what: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(code.is_some_and(|code| code != 0 && code != 101), "{what}: {code:?} {said}");
    assert!(said.contains("No space left on device"), "{what}: {said}");
    assert!(!said.contains("panicked"), "{what}: {said}");
}

#[test]
fn a_full_output_is_an_error_of_every_command() {
    let fake = Fake::new("[[gpu]]\n");
    for args in [
        &["--once"][..],
        &["--json"],
        &["triage"],
        &["triage", "--json"],
        &["doctor"],
        &["record", "-", "--for", "2s"],
        &["config", "--example"],
        &["explain", "--json", "/proc/self/status"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = vramlens(&fake, args).stdout(full).output().unwrap();
        says_why(&output, &args.join(" "));
    }
}

#[test]
fn a_disk_that_is_full_ends_the_recording_and_leaves_what_fits() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can make a small disk");
        return;
    }
    let fake = Fake::new("[generate]\ngpus = 8\nprocs = 60\n");
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("r.vrt");
    // The disk is the child's alone and is gone with it; what it holds is read before.
    let script = "mount -t tmpfs -o size=16k none \"$1\" || exit 77; shift; \"$@\"; code=$?; \
                  cp \"$0\"/* \"$0.kept/\" 2>/dev/null; exit $code";
    let kept = dir.path().with_extension("kept");
    std::fs::create_dir_all(&kept).unwrap();
    let disk = dir.path().to_str().unwrap();
    let base = dir.path().with_extension("");
    assert_eq!(base.to_str(), Some(disk));
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, disk, disk, env!("CARGO_BIN_EXE_vramlens")])
        .args(["record", to.to_str().unwrap(), "--for", "60s", "--interval", "100ms"])
        .env("VRAMLENS_NVML_LIB", fake.library())
        .output()
        .unwrap();
    if output.status.code() == Some(77)
        || output.status.code() == Some(1) && output.stderr.starts_with(b"unshare")
    {
        eprintln!("skipped: no disk can be mounted here");
        return;
    }
    says_why(&output, "record");
    let files: Vec<_> = std::fs::read_dir(&kept).unwrap().flatten().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let bytes = std::fs::read(files[0].path()).unwrap();
    assert!(!read(&bytes).is_empty(), "{} bytes and no tick", bytes.len());
    std::fs::remove_dir_all(kept).unwrap();
}
