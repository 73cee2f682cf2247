//! What commands answer where the question, the driver or a file is not as it should be: by the whole
//! program over a stand-in driver.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
#[path = "answers/options.rs"]
mod options;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;
#[path = "support/real.rs"]
mod real;
#[path = "answers/recordings.rs"]
mod recordings;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use fake::Fake;
use pty::Term;
use real::{Device, Holder};
use serde_json::Value;

const TWO: &str = "[[gpu]]\n[[gpu]]\n";
const STALLED: &str = include_str!("scenarios/stalled.toml");
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo.vrt");

/// Exit code, standard output and standard error.
type Said = (i32, String, String);

fn vramlens(fake: &Fake) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
    command.env("HOME", "/nonexistent").env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
    command.env_remove("COLUMNS").env("VRAMLENS_NVML_LIB", fake.library());
    command.stdin(Stdio::null());
    command
}

fn out(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn said(fake: &Fake, args: &[&str]) -> Said {
    out(vramlens(fake).args(args))
}

#[test]
fn a_gpu_that_is_not_there_is_no_healthy_machine() {
    let fake = Fake::new(TWO);
    for args in [
        &["triage", "--gpu", "9"][..],
        &["triage", "--json", "--gpu", "0,9"],
        &["--once", "--gpu", "9"],
        &["--json", "--gpu", "9"],
        &["doctor", "--gpu", "9"],
        &["kill", "--zombies", "--dry-run", "--gpu", "9"],
        &["fit", "8B", "--gpu", "9"],
    ] {
        let (code, text, error) = said(&fake, args);
        assert_eq!((code, text.as_str()), (2, ""), "{args:?}: {error}");
        assert!(error.contains("there is no GPU 9; there are 0 and 1"), "{args:?}: {error}");
    }
    for name in ["x", "GPU-ffff"] {
        let (code, _, error) = said(&fake, &["triage", "--gpu", name]);
        let words = format!("there is no GPU {name}; there are 0 and 1");
        assert!(code == 2 && error.contains(&words), "{error}");
    }
    let (code, _, error) = said(&fake, &["triage", "--gpu", "7,x"]);
    assert!(code == 2 && error.contains("there are no GPUs 7 and x"), "{error}");
    assert_eq!(said(&fake, &["triage", "--gpu", "1"]).0, 0);
    for args in
        [&["replay", DEMO, "--once", "--gpu", "9"][..], &["replay", DEMO, "--json", "--gpu", "9"]]
    {
        let (code, text, error) = said(&fake, args);
        assert_eq!((code, text.as_str()), (2, ""), "{args:?}");
        assert!(error.contains("there is no GPU 9; there is only GPU 0"), "{error}");
    }
}

#[test]
fn one_that_is_lost_is_there_and_a_number_may_mean_a_size() {
    let lost = include_str!("scenarios/lost.toml");
    let (code, text, error) = said(&Fake::new(lost), &["--json", "--gpu", "1"]);
    assert_eq!(code, 0, "{error}");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["gpus"][0]["index"], 1, "{text}");
    let fake = Fake::new(TWO);
    let (code, _, error) = said(&fake, &["fit", "8B", "--gpu", "24"]);
    assert!(code == 2 && error.contains("did you mean 24GiB?"), "{error}");
    let (code, _, error) = said(&fake, &["fit", "8B", "--gpu", "0,24GiB"]);
    assert!(code == 2 && error.contains("one kind at a time"), "{error}");
}

#[test]
fn what_fits_on_a_gpu_that_was_named_needs_the_driver() {
    let fake = Fake::new(STALLED);
    let (code, text, error) = said(&fake, &["fit", "8B", "--gpu", "0"]);
    assert_eq!((code, text.as_str()), (4, ""), "{error}");
    assert!(error.contains("the driver does not answer (nvmlDeviceGetMemoryInfo_v2"), "{error}");
    let (code, text, _) = said(&fake, &["fit", "8B", "--gpu", "0", "--json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert!(code == 4 && json["error"].as_str().unwrap().contains("does not answer"), "{text}");

    let none = Path::new("/nonexistent/libnvidia-ml.so.1");
    let without =
        |args: &[&str]| out(vramlens(&fake).env("VRAMLENS_NVML_LIB", none).arg("fit").args(args));
    let (code, text, error) = without(&["8B", "--gpu", "24"]);
    assert_eq!((code, text.as_str()), (3, ""), "{error}");
    assert!(error.contains("did you mean 24GiB?"), "{error}");
    // A card that is not here, and no card at all, need none.
    assert_eq!(without(&["8B", "--gpu", "24GiB"]).0, 0);
    assert_eq!(without(&["8B"]).0, 0);
}

/// It may come back: a card that is reset, a driver that is loaded anew.
#[test]
fn what_goes_on_says_that_a_gpu_is_not_there_until_it_is() {
    let fake = Fake::new(TWO);
    let library = fake.library();
    let env = [("VRAMLENS_NVML_LIB", library.as_path())];
    let mut term = Term::start(&["--gpu", "2"], &env, 24, 100);
    term.wait_for("there is no GPU 2; there are 0 and 1");
    fake.change("[[gpu]]\n[[gpu]]\n[[gpu]]\nname = 'NVIDIA L4'\n");
    term.wait_for("NVIDIA L4");
    term.wait("no complaint", |screen| !screen.contains("there is no GPU"));
    term.send("q");
    assert_eq!(term.exit_code(), 0);

    let fake = Fake::new(TWO);
    let (code, _, error) = said(&fake, &["run", "--gpu", "9", "--", "sleep", "1"]);
    assert!(code == 0 && error.contains("there is no GPU 9; there are 0 and 1"), "{error}");
    let mut command = vramlens(&fake);
    command.args(["serve", "--listen", "127.0.0.1:0", "--gpu", "9"]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let told = lines.find(|line| line.contains("there is no GPU 9; there are 0 and 1"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told.unwrap().contains("it is exported once it is there"));
}

/// A process with three stand-in devices open, and what tells the program of them.
fn opener() -> (Holder, [Device; 3], String) {
    let devices = [Device::new(), Device::new(), Device::new()];
    let [uvm, control, gpu] = [0, 1, 2].map(|n: usize| devices[n].path());
    let holder = Holder::start(&["open", uvm, "open", control, "open", gpu], 1);
    let list = format!("{uvm}=uvm,{control}=control,{gpu}=0");
    (holder, devices, list)
}

#[test]
fn a_driver_that_never_answers_hides_nobody() {
    let (holder, _devices, list) = opener();
    let fake = Fake::new(STALLED);
    let pid = holder.pid().to_string();
    let run = |args: &[&str]| out(vramlens(&fake).env("VRAMLENS_TEST_DEVICES", &list).args(args));

    let (code, text, _) = run(&["triage"]);
    assert_eq!(code, 4);
    let row = text.lines().find(|line| line.split_whitespace().next() == Some(&pid));
    let row = row.unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains(" ? ") && row.contains("nvidia0 nvidia-uvm nvidiactl"), "{row}");
    assert!(!text.contains("none") && !text.contains("0 GPUs"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "nvmlDeviceGetMemoryInfo_v2 on GPU 1 does not return, and as one GPU is asked"
        ),
        "{words}"
    );

    let (code, text, _) = run(&["triage", "--json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    let user = &json["device_users"][0];
    assert_eq!((code, user["pid"].to_string()), (4, pid.clone()), "{text}");
    assert_eq!(user["bytes"]["absent"], "timed_out");

    let (code, text, error) = run(&["kill", &pid, "--dry-run"]);
    assert_eq!((code, text.as_str()), (4, ""), "{error}");
    let open = format!("{pid} has nvidia0, nvidia-uvm and nvidiactl open");
    assert!(error.contains(&open) && !error.contains("holds no GPU memory"), "{error}");
    assert!(error.contains(&format!("ps -o pid,user,lstart,args -p {pid}")), "{error}");
    // A line that signals a bare number is none to be copied.
    assert!(!error.contains(&format!("kill {pid}")), "{error}");
    let own = std::process::id().to_string();
    let (code, _, error) = run(&["kill", &own, "--dry-run"]);
    assert!(code == 4 && !error.contains("ps -o"), "{error}");
    let (code, _, error) = run(&["kill", "--zombies", "--dry-run"]);
    assert!(code == 4 && error.contains("cannot be told"), "{error}");
}

/// A GPU of this size with memory that is listed under a process which has ended.
fn dead(total: u64) -> Fake {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let pid = child.id();
    Fake::new(&format!(
        "[[gpu]]\ntotal = {total}\nprocess = [{{ pid = {pid}, bytes = 1073741824 }}]\n"
    ))
}

#[test]
fn need_is_answered_by_the_exit_code() {
    // A row of a process that is gone: a finding of its own.
    let fake = dead(85_899_345_920);
    let (code, text, _) = said(&fake, &["triage"]);
    assert!(code == 1 && !text.contains("FINDINGS\n  none"), "{text}");
    let (code, text, _) = said(&fake, &["triage", "--need", "12GiB"]);
    assert!(code == 0 && text.contains("12.0 GiB fit on GPU 0 now"), "{text}");
    let (code, text, _) = said(&fake, &["triage", "--need", "200GiB"]);
    assert!(code == 1 && text.contains("do not fit"), "{text}");
}

#[test]
fn a_report_does_not_advise_itself() {
    let fake = dead(150_323_855_360);
    let (_, text, _) = said(&fake, &["triage"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("who keeps them was not found"), "{text}");
    assert!(!text.lines().any(|line| line.trim() == "→ vramlens triage"), "{text}");
}

#[test]
fn a_holder_on_another_gpu_is_said_to_be_there() {
    let holder = Holder::start(&[], 1);
    let pid = holder.pid();
    let fake = Fake::new(&format!(
        "[[gpu]]\nprocess = [{{ pid = {pid}, bytes = 1073741824 }}]\n[[gpu]]\n"
    ));
    let pid = pid.to_string();
    let (code, _, error) = said(&fake, &["kill", &pid, "--gpu", "1", "--dry-run"]);
    let words = format!("{pid} is not on GPU 1; it is on GPU 0");
    assert!(code == 2 && error.contains(&words), "{error}");
}

#[test]
fn a_command_is_whole_in_a_pipe_unless_columns_says_how_wide() {
    let model = format!("/models/{}/serve.py", "a".repeat(120));
    let holder =
        Holder::start(&["exec", "/bin/sh", "-c", "read line", &model, "--port", "8001"], 0);
    let pid = holder.pid();
    let fake = Fake::new(&format!("[[gpu]]\nprocess = [{{ pid = {pid}, bytes = 1073741824 }}]\n"));
    let pid = pid.to_string();
    let row = |text: &str| {
        let row = text.lines().find(|line| line.split_whitespace().nth(1) == Some(&pid));
        row.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    for args in [&["--once"][..], &["triage"]] {
        let whole = row(&said(&fake, args).1);
        assert!(whole.ends_with("serve.py --port 8001"), "{whole}");
        let cut = row(&out(vramlens(&fake).env("COLUMNS", "100").args(args)).1);
        assert!(cut.chars().count() == 100 && cut.ends_with('…'), "{cut}");
        // No table is left in fewer columns: README and manual say where that ends.
        let least = row(&out(vramlens(&fake).env("COLUMNS", "20").args(args)).1);
        assert_eq!(least.chars().count(), 60, "{least}");
    }
}

#[test]
fn without_a_driver_the_advice_is_whole_and_on_its_own_stream() {
    let none = Path::new("/nonexistent/libnvidia-ml.so.1");
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join(".dockerenv"), "").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
    command.env("HOME", "/nonexistent").env("VRAMLENS_NVML_LIB", none).args(["--json"]);
    let (code, text, error) = out(&mut command);
    assert_eq!(code, 3);
    let json: Value = serde_json::from_str(&text).unwrap();
    for step in json["found"]["advice"].as_array().unwrap() {
        let step = step.as_str().unwrap();
        assert!(step.ends_with(['.', ':']) && !step.contains('\n'), "{step}");
    }
    assert!(
        error.contains("What to do: ") && error.lines().all(|line| line.chars().count() <= 120)
    );
}
