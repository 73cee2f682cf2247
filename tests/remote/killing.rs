//! Ending processes on another machine: the word is given here, all else happens there.

// A test that cannot go on fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::fake::Fake;
use crate::farm::{Farm, lives, until};
use crate::holders::{Devices, Holder, start_ticks, with_ghost, with_process};
use crate::{GIB, line, show, used};

#[test]
fn a_zombie_there_is_ended_from_here_and_the_proof_is_shown() {
    let devices = Devices::new();
    let (_parent, dead, survivor) = Holder::ghost(&devices);
    let boxes = [("box1", &*used(35)), ("box2", &*with_ghost(dead, survivor))];
    let Some(farm) = Farm::new(&boxes) else { return };
    farm.records("box2", &format!("export VRAMLENS_TEST_DEVICES={}", devices.variable()));
    let mut term = show(&farm, &["box1", "box2"], &["--interval", "200ms"], (24, 100));
    let text = term.wait("a zombie there", |text| line(text, "box2").contains("1 zombie"));
    assert!(line(&text, "box1").starts_with('▸'), "{text}");
    term.wait_for("1 zombie on 1 other host");
    // It is not this machine's: its key finds nothing here.
    term.send("z");
    term.wait_for("there is no zombie");
    term.send("h");
    term.wait_for("press z");
    term.send("z");
    let text = term.wait_for("box2: End 1 process, 5.0 GiB on GPU 0");
    assert!(text.contains(&survivor.to_string()), "{text}");
    assert!(lives(survivor), "nothing is sent before the word is given");
    term.send("y");
    term.wait_for("freed 5.0 of 5.0 GiB");
    assert!(!lives(survivor));
    term.send("\x1b");
    term.wait("it is gone from the overview", |text| {
        text.contains("COMMAND") && !line(text, "box2").contains("zombie")
    });
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn a_link_that_is_lost_takes_the_plan_along() {
    let devices = Devices::new();
    let (_parent, dead, survivor) = Holder::ghost(&devices);
    let boxes = [("box1", &*with_ghost(dead, survivor))];
    let Some(mut farm) = Farm::new(&boxes) else { return };
    farm.records("box1", &format!("export VRAMLENS_TEST_DEVICES={}", devices.variable()));
    let mut term = show(&farm, &["box1"], &["--interval", "200ms"], (24, 100));
    term.wait_for("press z");
    term.send("z");
    term.wait_for("box1: End 1 process");
    farm.stop("box1");
    term.wait_for("the connection to box1 is lost: nothing was sent");
    farm.start("box1");
    term.send("R");
    term.wait("it is back", |text| text.lines().next().unwrap().contains("live"));
    term.send("y");
    assert!(lives(survivor), "a plan of the last connection is nobody's");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

/// A far end without `ssh`, asked by hand.
struct FarEnd {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    last_id: u64,
    /// What the stream says of what was done, for whoever keeps it.
    marks: Vec<Value>,
}

impl FarEnd {
    fn start(fake: &Fake, devices: &Devices) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_vramlens"))
            .args(["record", "-", "--answer", "--interval", "100ms"])
            .env("VRAMLENS_NVML_LIB", fake.library())
            .env("VRAMLENS_TEST_DEVICES", devices.variable())
            .env("HOME", "/nonexistent")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut far = Self { child, to, from, last_id: 0, marks: Vec::new() };
        for kind in ["gpus", "procs", "gpus", "procs"] {
            while far.line()[kind].is_null() {}
        }
        far
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "the stream has ended");
        let line: Value = serde_json::from_str(&line).unwrap();
        self.marks.extend(line.get("kill").cloned());
        line
    }

    fn ask(&mut self, ask: &Value) -> Value {
        self.last_id += 1;
        let mut request = json!({ "id": self.last_id });
        request.as_object_mut().unwrap().extend(ask.as_object().unwrap().clone());
        writeln!(self.to.as_mut().unwrap(), "{request}").unwrap();
        self.answer()
    }

    fn answer(&mut self) -> Value {
        loop {
            let line = self.line();
            if !line["answer"].is_null() {
                return line["answer"].clone();
            }
        }
    }

    fn plan(&mut self, pid: u32, start_ticks: u64) -> Value {
        let target = json!({ "pid": pid, "start_ticks": start_ticks });
        self.ask(&json!({ "plan": { "targets": [target], "preset": "now" } }))
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_far_end_checks_whom_it_is_asked_for_and_carries_out_the_newest_plan_once() {
    let devices = Devices::new();
    let mut holder = Holder::start(&devices, &["setsid"]);
    let pid = holder.pid_after("ready ");
    let fake = Fake::new(&with_process(pid));
    let mut far = FarEnd::start(&fake, &devices);
    let start = start_ticks(pid);
    let kill = |plan: u64| json!({ "kill": { "plan": plan } });

    // The pid is right, and somebody else had it when it was shown.
    let answer = far.plan(pid, start_ticks(pid) - 1);
    let offer = &answer["what"]["plan"];
    assert_eq!(offer["order"]["targets"], json!([]), "{answer:#}");
    assert_eq!(offer["refused"].as_array().unwrap().len(), 1, "{answer:#}");
    let refused = far.ask(&kill(1));
    assert!(refused["what"]["refused"].as_str().unwrap().contains("nobody"), "{refused}");

    let first = far.plan(pid, start_ticks(pid));
    assert_eq!(first["what"]["plan"]["rows"][0]["id"]["pid"], pid, "{first:#}");
    let second = far.plan(pid, start_ticks(pid));
    let refused = far.ask(&kill(first["id"].as_u64().unwrap()));
    assert!(refused["what"]["refused"].as_str().unwrap().contains("newest"), "{refused}");
    for bad in [json!({ "plan": { "targets": [] } }), json!({ "reboot": {} })] {
        let refused = far.ask(&bad);
        assert!(refused["what"]["refused"].is_string(), "{refused}");
    }
    assert!(lives(pid), "so far nothing was sent");

    let mut answer = far.ask(&kill(second["id"].as_u64().unwrap()));
    let mut said = Vec::new();
    while answer["what"]["proof"].is_null() {
        assert_eq!(answer["id"], far.last_id);
        said.push(answer["what"]["kill"]["what"].to_string());
        answer = far.answer();
    }
    assert!(said.contains(&json!({ "sent": 9 }).to_string()), "{said:?}");
    assert_eq!(answer["what"]["proof"]["complete"], true, "{answer:#}");
    assert_eq!(answer["what"]["proof"]["freed"], 2 * GIB, "{answer:#}");
    assert!(!lives(pid));
    let [signal, outcome] = far.marks.as_slice() else { panic!("{:?}", far.marks) };
    let signal = &signal["what"]["signal"];
    assert_eq!((&signal["id"]["pid"], &signal["signal"]), (&json!(pid), &json!(9)), "{signal}");
    assert_eq!(signal["id"]["start_ticks"], start, "{signal}");
    assert!(!signal["name"].as_str().unwrap().is_empty(), "{signal}");
    assert_eq!(outcome["what"]["outcome"], "freed 2.0 of 2.0 GiB on GPU 0", "{outcome}");
    let again = far.ask(&kill(second["id"].as_u64().unwrap()));
    assert!(again["what"]["refused"].is_string(), "a plan is carried out once: {again}");
}

#[test]
fn the_far_end_says_that_it_is_not_known_where_its_driver_hangs() {
    let devices = Devices::new();
    let mut holder = Holder::start(&devices, &["setsid"]);
    let pid = holder.pid_after("ready ");
    let fake = Fake::new(&with_process(pid));
    let mut far = FarEnd::start(&fake, &devices);
    let plan = far.plan(pid, start_ticks(pid));
    let hangs = "[[stall]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\n";
    fake.change(&(with_process(pid) + hangs));
    let mut answer = far.ask(&json!({ "kill": { "plan": plan["id"] } }));
    let mut said = Vec::new();
    while answer["what"]["proof"].is_null() {
        said.push(answer["what"]["kill"]["what"].to_string());
        answer = far.answer();
    }
    assert!(said.contains(&json!("gone").to_string()), "{said:?}");
    let proof = &answer["what"]["proof"];
    let words = "the driver does not answer: what came back is not known";
    assert_eq!(proof["sentence"], words, "{answer:#}");
    assert_eq!((&proof["complete"], &proof["unknown"]), (&json!(false), &json!(true)));
    assert_eq!(proof["freed"], json!({ "absent": "timed_out" }), "{answer:#}");
    assert!(!lives(pid));
    // As the near end shows it.
    let outcome = serde_json::from_value(proof.clone()).unwrap();
    let shown = vramlens::runtime::remote::fleet::proof(outcome);
    assert!(shown.unknown && shown.sentence == words, "{shown:?}");
}

#[test]
fn the_far_end_ends_with_its_input() {
    let devices = Devices::new();
    for scenario in
        ["[[gpu]]\n", "[[gpu]]\n[[stall]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\ngpu = 0\n"]
    {
        let fake = Fake::new("[[gpu]]\n");
        let mut far = FarEnd::start(&fake, &devices);
        fake.change(scenario);
        far.to = None;
        until(scenario, || far.child.try_wait().unwrap().is_some());
        // And with its output, which an older near end would take away.
        let fake = Fake::new("[[gpu]]\n");
        let mut far = FarEnd::start(&fake, &devices);
        far.from = {
            let mut other = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
            other.wait().unwrap();
            BufReader::new(other.stdout.take().unwrap())
        };
        until("its output", || far.child.try_wait().unwrap().is_some());
    }
}

#[test]
fn requests_without_end_do_no_harm() {
    let devices = Devices::new();
    let fake = Fake::new("[[gpu]]\n");
    let mut far = FarEnd::start(&fake, &devices);
    let long = vec![b'{'; 4 << 20];
    let mut to = far.to.take().unwrap();
    to.write_all(&long).unwrap();
    to.write_all(b"\n").unwrap();
    far.to = Some(to);
    assert!(far.answer()["what"]["refused"].as_str().unwrap().contains("at most"));
    let answer = far.ask(&json!({ "zombies": {} }));
    assert_eq!(answer["what"]["plan"]["rows"], json!([]), "{answer}");
}

#[test]
fn a_script_ends_processes_on_one_machine() {
    let devices = Devices::new();
    let (_parent, dead, survivor) = Holder::ghost(&devices);
    let boxes = [("box1", &*with_ghost(dead, survivor)), ("box2", &*used(1))];
    let Some(farm) = Farm::new(&boxes) else { return };
    farm.records("box1", &format!("export VRAMLENS_TEST_DEVICES={}", devices.variable()));
    let run = |args: &[&str]| {
        let output = farm.vramlens(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code().unwrap(), text + &String::from_utf8_lossy(&output.stderr))
    };
    let dead = dead.to_string();
    let (code, text) = run(&["kill", "--host", "box1", "--zombies", "--dry-run"]);
    assert!(code == 0 && text.contains("box1: End 1 process, 5.0 GiB on GPU 0"), "{text}");
    let (code, text) = run(&["kill", "--host", "box1", &dead]);
    assert!(code == 2 && text.contains("add --yes"), "{text}");
    let (code, text) = run(&["kill", "--host", "box2", &dead, "--yes"]);
    assert!(code == 2 && text.contains("holds no GPU memory on box2"), "{text}");
    let (code, text) = run(&["kill", "--host", "box1", "--host", "box2", "--zombies", "--yes"]);
    assert!(code == 2 && text.contains("one machine at a time"), "{text}");
    assert!(lives(survivor), "so far nothing was sent");
    let (code, text) = run(&["kill", "--host", "box1", &dead, "--now", "--yes", "--json"]);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 0, "{answer:#}");
    assert_eq!(answer["targets"][0]["pid"], survivor);
    assert_eq!(answer["proof"]["complete"], true, "{answer:#}");
    assert!(answer["proof"]["sentence"].as_str().unwrap().contains("freed 5.0 of 5.0 GiB"));
    assert!(!lives(survivor));
    farm.runs("box2", "exit 255");
    let (code, text) = run(&["kill", "--host", "box2", "--zombies", "--yes"]);
    assert!(code == 4 && text.contains("away"), "{text}");
}

#[test]
fn a_zombie_on_a_machine_that_is_not_shown_is_told_of_by_name() {
    let devices = Devices::new();
    let (_parent, dead, survivor) = Holder::ghost(&devices);
    let boxes = [("box1", &*used(35)), ("box2", &*with_ghost(dead, survivor))];
    let Some(farm) = Farm::new(&boxes) else { return };
    farm.records("box2", &format!("export VRAMLENS_TEST_DEVICES={}", devices.variable()));
    let (log, config) = (farm.path("alerts"), farm.path("config.toml"));
    let text = format!("[alert]\nzombie = true\nbell = false\nlog = \"{}\"\n", log.display());
    std::fs::write(&config, text).unwrap();
    let args = ["--interval", "200ms", "--config", config.to_str().unwrap()];
    let mut term = show(&farm, &["box1", "box2"], &args, (24, 100));
    until("an alert", || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("box2: ")));
    // It is told once, also when that machine is the one that is shown.
    term.send("h");
    term.wait_for("press z");
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}
