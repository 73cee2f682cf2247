//! Recordings that are damaged, of nothing, and what is said of their size.

use std::fs;
use std::path::{Path, PathBuf};

use super::{DEMO, STALLED, TWO, out, said, vramlens};
use crate::fake::Fake;
use crate::pty::Term;

/// The demo, changed.
fn changed(fake: &Fake, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = fs::read(DEMO).unwrap();
    change(&mut bytes);
    let path = fake.dir().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn damage(bytes: &mut [u8]) {
    let middle = bytes.len() / 2;
    bytes[middle..middle + 16].fill(0xa5);
}

#[test]
fn what_is_lost_of_a_recording_is_said_wherever_it_is_read() {
    let fake = Fake::new(TWO);
    let picture = fake.dir().join("x.png");
    let picture = picture.to_str().unwrap();
    let cut = changed(&fake, "cut.vrt", |bytes| bytes.truncate(20_000));
    let broken = changed(&fake, "broken.vrt", |bytes| damage(bytes));
    for (path, words) in
        [(cut, "it breaks off after 2026-11-30 "), (broken, "it is damaged between 2026-11-30 ")]
    {
        let file = path.to_str().unwrap();
        for args in [&["--once"][..], &["--json"], &["--png", picture]] {
            let (code, _, error) = out(vramlens(&fake).args(["replay", file]).args(args));
            assert_eq!(code, 0, "{error}");
            assert_eq!(error.matches(words).count(), 1, "{args:?}: {error}");
        }
    }
    let (code, text, error) = said(&fake, &["replay", DEMO, "--once"]);
    assert!(code == 0 && error.is_empty() && !text.is_empty(), "{error}");
}

#[test]
fn one_moment_of_a_recording_can_be_printed() {
    let fake = Fake::new(TWO);
    let at = |to: &[&str]| {
        let (code, text, error) = out(vramlens(&fake).args(["replay", DEMO, "--json"]).args(to));
        assert_eq!(code, 0, "{to:?}: {error}");
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["at_ms"].as_u64().unwrap()
    };
    let last = at(&[]);
    let before = at(&["--to", "-10s"]);
    assert!((10_000..12_000).contains(&(last - before)), "{before} of {last}");
    let early = at(&["--to", "+5s"]);
    assert!(early < before, "{early} of {before}");
    let (code, text, error) = said(&fake, &["replay", DEMO, "--once", "--to", "09:00"]);
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(error.contains("09:00 is not in what is kept"), "{error}");
    let (code, _, error) = said(&fake, &["replay", "-", "--once", "--to", "+5s"]);
    assert!(code == 2 && error.contains("--to needs a file"), "{error}");
}

#[test]
fn one_of_which_nothing_is_left_is_no_machine_without_gpus() {
    let fake = Fake::new(TWO);
    let file = changed(&fake, "cut.vrt", |bytes| bytes.truncate(3_000));
    let file = file.to_str().unwrap();
    for args in [&["--once"][..], &["--json"], &["--svg", "-"]] {
        let (code, text, error) = out(vramlens(&fake).args(["replay", file]).args(args));
        assert_eq!((code, text.as_str()), (2, ""), "{args:?}");
        assert!(error.contains("nothing can be read of it"), "{error}");
    }
}

#[test]
fn the_view_says_once_that_a_recording_is_damaged() {
    let fake = Fake::new(TWO);
    let file = changed(&fake, "broken.vrt", |bytes| damage(bytes));
    let mut term =
        Term::start(&["replay", file.to_str().unwrap(), "--speed", "1000"], &[], 24, 100);
    term.wait_for("the recording is damaged");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

/// `… 2 ticks, 2435 B: …` of a file of that size; a size with a unit is rounded.
fn told_bytes(error: &str) -> u64 {
    let line = error.lines().find(|line| line.contains(" ticks, ")).unwrap();
    let (_, rest) = line.split_once(" ticks, ").unwrap();
    let (size, _) = rest.split_once(':').unwrap();
    size.parse::<vramlens::units::Bytes>().unwrap().0
}

#[test]
fn the_size_that_is_told_is_that_of_the_file() {
    let fake = Fake::new(TWO);
    let file = fake.dir().join("a.vrt");
    let name = file.to_str().unwrap();
    let near = |told: u64, path: &Path| {
        let size = fs::metadata(path).unwrap().len();
        // Rounded to its unit.
        assert!(told.abs_diff(size) <= size / 4, "{told} for {size}");
    };
    let (code, _, error) = said(&fake, &["record", name, "--for", "2s"]);
    assert_eq!(code, 0, "{error}");
    near(told_bytes(&error), &file);
    let other = fake.dir().join("b.vrt");
    let args = ["run", "--record", other.to_str().unwrap(), "--", "sleep", "2"];
    let (code, _, error) = said(&fake, &args);
    assert_eq!(code, 0, "{error}");
    near(told_bytes(&error), &other);
}

#[test]
fn a_recording_of_nothing_leaves_nothing_behind() {
    let fake = Fake::new(STALLED);
    let file = fake.dir().join("a.vrt");
    let name = file.to_str().unwrap();
    let left = || {
        let entries = fs::read_dir(fake.dir()).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_string_lossy().starts_with("a.vrt")).count()
    };
    let none = Path::new("/nonexistent/libnvidia-ml.so.1");
    for _ in 0..2 {
        let (code, _, error) =
            out(vramlens(&fake).env("VRAMLENS_NVML_LIB", none).args(["record", name]));
        assert_eq!((code, left()), (3, 0), "{error}");
    }
    let (code, _, error) = said(&fake, &["record", name, "--for", "1s"]);
    assert_eq!((code, left()), (4, 0), "{error}");
    assert!(error.contains("nvmlDeviceGetMemoryInfo_v2 does not return on GPU 1"), "{error}");
    let (code, _, error) = out(vramlens(&fake)
        .env("VRAMLENS_NVML_LIB", none)
        .args(["run", "--record", name, "--", "true"]));
    assert_eq!((code, left()), (0, 0), "{error}");
    let (code, _, _) = said(&fake, &["run", "--record", name, "--", "/nonexistent/program"]);
    assert_eq!((code, left()), (127, 0));
}
