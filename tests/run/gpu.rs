//! Over a driver: what is said after a command that held memory.

use std::path::{Path, PathBuf};
use std::process::{Child, Output};

use vramlens::record::Recording;
use vramlens::sample::Tick;

use super::{status, text, until, with_driver};
use crate::fake::Fake;

const LISTS: &str = "nvmlDeviceGetComputeRunningProcesses_v3";

/// A command that holds memory as long as a test wants.
struct Held {
    fake: Fake,
    child: Child,
    folder: tempfile::TempDir,
}

fn empty() -> String {
    "count_calls = true\n[[gpu]]\n".to_owned()
}

fn scenario(rows: &[(u32, u64)]) -> String {
    let mut text = empty();
    for (pid, gib) in rows {
        text += &format!("[[gpu.process]]\npid = {pid}\nbytes = {}\n", gib << 30);
    }
    text
}

impl Held {
    /// Starts one; it does `then` when it is told to.
    fn start(options: &[&str], then: &str) -> Self {
        let fake = Fake::new(&empty());
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "exec 7< \"$0/uvm\" 8< \"$0/control\" 9< \"$0/gpu\"; sleep 1000 & echo $! > \"$0/child\"; echo $$ > \"$0/new\"; mv \"$0/new\" \"$0/pid\"; \
             until [ -e \"$0/go\" ]; do sleep 0.02; done; kill %1; {then}"
        );
        let folder_text = folder.path().to_str().unwrap();
        let mut args = vec!["--interval", "100ms"];
        args.extend(options);
        args.extend(["--", "bash", "-c", &script, folder_text]);
        // Files that stand for the driver's devices: a holder has those open.
        let stand_ins =
            [("uvm", "uvm"), ("control", "control"), ("gpu", "0")].map(|(name, role)| {
                let path = folder.path().join(name);
                std::fs::write(&path, "").unwrap();
                format!("{}={role}", path.display())
            });
        let mut command = with_driver(&fake.library(), &args);
        command.env("VRAMLENS_TEST_DEVICES", stand_ins.join(","));
        let child = command.spawn().unwrap();
        until("it runs", || folder.path().join("pid").exists());
        Self { fake, child, folder }
    }

    fn pid(&self, file: &str) -> u32 {
        let text = std::fs::read_to_string(self.folder.path().join(file)).unwrap();
        text.trim().parse().unwrap()
    }

    /// The driver says this from now on, and it was seen.
    fn says(&self, rows: &[(u32, u64)]) {
        self.fake.change(&scenario(rows));
        let before = self.fake.calls(LISTS);
        until("some looks", || self.fake.calls(LISTS) >= before + 4);
    }

    fn go(mut self) -> Output {
        std::fs::write(self.folder.path().join("go"), "").unwrap();
        status(&mut self.child);
        self.child.wait_with_output().unwrap()
    }
}

#[test]
fn a_command_that_ends_well_is_summed_up_in_three_lines() {
    let held = Held::start(&[], "exit 0");
    let (own, child) = (held.pid("pid"), held.pid("child"));
    held.says(&[(own, 10), (child, 4), (1, 30)]);
    held.says(&[(own, 2)]);
    let out = held.go();
    let said = text(&out.stderr);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert_eq!(
        lines[0], "vramlens: peak VRAM       14.0 GiB of 140.0 GiB on GPU 0, 2 processes",
        "{said}"
    );
    assert!(lines[1].starts_with("vramlens: peak allocator  "), "{said}");
    assert!(lines[2].starts_with("vramlens: growth          "), "{said}");
}

#[test]
fn quiet_says_nothing_of_a_good_end() {
    let held = Held::start(&["--quiet"], "exit 0");
    held.says(&[(held.pid("pid"), 10)]);
    assert_eq!(text(&held.go().stderr), "");
}

const ERROR: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a \
                     total capacity of 139.81 GiB of which 1.06 GiB is free.";

#[test]
fn after_an_error_the_post_mortem_shows_who_held_what() {
    let held = Held::start(&["-q"], &format!("echo '{ERROR}' >&2; exit 1"));
    let own = held.pid("pid");
    held.says(&[(own, 100), (held.pid("child"), 10)]);
    let out = held.go();
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.starts_with(ERROR), "{said}");
    assert!(said.contains("Out of memory on GPU 0: the command ended with exit code 1"), "{said}");
    assert!(said.contains("GPU memory ran out: PyTorch"), "{said}");
    assert!(said.contains("110.0 of 140.0 GiB used"), "{said}");
    let row = |pid: u32| {
        let of = |line: &&str| line.contains(&format!(" {pid} ")) && line.contains('█');
        said.lines().find(of).unwrap_or_else(|| panic!("{pid}: {said}"))
    };
    assert!(row(own).starts_with('▸') && row(own).contains("100.0G"), "{said}");
    assert!(said.contains("HOLDERS, THE LAST "), "{said}");
    assert!(!said.contains("which is dead"), "{said}");
    assert!(said.lines().skip(1).all(|line| line.chars().count() <= 80), "{said}");
}

fn json(out: &Output) -> serde_json::Value {
    let said = text(&out.stderr);
    serde_json::from_str(said.lines().last().unwrap()).unwrap_or_else(|e| panic!("{e}: {said}"))
}

#[test]
fn a_good_end_in_json_is_one_object_on_the_last_line() {
    let held = Held::start(&["--json"], "printf open >&2; exit 0");
    held.says(&[(held.pid("pid"), 10), (held.pid("child"), 4)]);
    let out = held.go();
    let said = json(&out);
    assert_eq!((&said["exit_code"], &said["outcome"]), (&0.into(), &"ended".into()), "{said}");
    assert_eq!(said["peak"]["bytes"], 14_u64 << 30, "{said}");
    assert_eq!(said["peak"]["gpus"][0]["gpu"], 0, "{said}");
    assert_eq!(said["not_measured"], serde_json::Value::Null, "{said}");
    assert!(text(&out.stderr).starts_with("open\n{"));
}

#[test]
fn an_error_in_json_says_what_would_have_been_enough() {
    let held = Held::start(&["--json", "-q"], &format!("echo '{ERROR}' >&2; exit 1"));
    held.says(&[(held.pid("pid"), 129), (held.pid("child"), 10)]);
    let said = json(&held.go());
    assert_eq!((&said["exit_code"], &said["outcome"]), (&1.into(), &"gpu_oom".into()), "{said}");
    assert_eq!(said["explanation"]["requested_bytes"], 2_u64 << 30, "{said}");
    assert_eq!((&said["fit"]["need"], &said["fit"]["gpu"]), (&(2_u64 << 30).into(), &0.into()));
    assert!(said["fit"]["missing"].as_u64().unwrap() > 1 << 30, "{}", said["fit"]);
    assert_eq!(said["before"]["gpus"][0]["index"], 0, "{said}");
}

#[test]
fn a_fault_that_the_driver_reports_is_told_after_the_end() {
    let held = Held::start(&[], "exit 1");
    let rows = [(held.pid("pid"), 10)];
    held.says(&rows);
    held.fake.change(&format!("{}[[event]]\nxid = 31\n", scenario(&rows)));
    let waits = || held.fake.calls("nvmlEventSetWait_v2");
    let before = waits();
    until("the event is delivered", || waits() >= before + 2);
    let looks = held.fake.calls(LISTS);
    until("the event is looked at", || held.fake.calls(LISTS) >= looks + 3);
    let out = held.go();
    let said = text(&out.stderr);
    assert!(said.contains("vramlens: the driver reported XID 31: a program touched"), "{said}");
}

#[test]
fn an_error_that_is_survived_gets_one_line() {
    let held = Held::start(&[], &format!("echo '{ERROR}'; exit 0"));
    held.says(&[(held.pid("pid"), 10)]);
    let out = held.go();
    let said = text(&out.stderr);
    assert_eq!(said.lines().count(), 4, "{said}");
    assert!(said.ends_with("which it survived\n"), "{said}");
}

#[test]
fn a_death_on_a_full_gpu_is_suspected() {
    let held = Held::start(&["-q"], "exit 1");
    held.says(&[(held.pid("pid"), 139)]);
    let said = held.go();
    let said = text(&said.stderr);
    assert!(said.contains("memory may have been short. Nothing proves it."), "{said}");
}

#[test]
fn the_session_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.vlr");
    let held = Held::start(&["--record", file.to_str().unwrap()], "exit 3");
    held.says(&[(held.pid("pid"), 10)]);
    let out = held.go();
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("vramlens replay"), "{}", text(&out.stderr));
    let recording = Recording::open(&file).unwrap();
    let ticks = recording.ticks(None).unwrap();
    let gpus = ticks.filter(|tick| matches!(tick, Ok(Tick::Gpus(_))));
    assert!(gpus.count() > 0);
}

#[test]
fn a_recording_that_cannot_be_written_costs_nothing() {
    let fake = Fake::new(&empty());
    let folder = tempfile::tempdir().unwrap();
    let mark: PathBuf = folder.path().join("ran");
    let args = ["--record", "/nonexistent/x", "--", "touch", mark.to_str().unwrap()];
    let out = with_driver(&fake.library(), &args).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(!mark.exists());
    // And a command that cannot be started leaves no recording.
    let file = folder.path().join("none.vlr");
    let args = ["--record", file.to_str().unwrap(), "--", "/nonexistent/program"];
    assert_eq!(with_driver(&fake.library(), &args).output().unwrap().status.code(), Some(127));
    assert!(!file.exists());
}

#[test]
fn a_driver_that_hangs_holds_nothing_up() {
    let fake = Fake::new("[[gpu]]\n[[stall]]\ncall = \"nvmlInit_v2\"\n");
    let out =
        with_driver(&fake.library(), &["--", "sh", "-c", "sleep 0.5; echo x"]).output().unwrap();
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), "x\n"));
    let said = text(&out.stderr);
    assert!(
        said.contains("nothing was measured: the driver does not answer nvmlInit_v2"),
        "{said}"
    );
    fake.change("[[gpu]]\n");
}

#[test]
fn the_library_can_be_anything() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path: &Path = file.path();
    let out = with_driver(path, &["--", "echo", "x"]).output().unwrap();
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), "x\n"));
}
