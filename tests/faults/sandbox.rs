//! Calls that a sandbox, or an old kernel, refuses.

use std::process::Command;

use serde_json::{Value, json};

use crate::fake::Fake;
use crate::real::{Holder, lives, program};
use crate::torch::Torch;

const ENOSYS: &str = "38";
const EPERM: &str = "1";

fn helper(words: &[&str]) -> (String, bool) {
    let output = Command::new(program()).args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let trouble = String::from_utf8_lossy(&output.stderr).into_owned();
    (said + &trouble, output.status.success())
}

#[test]
fn without_pidfds_nothing_is_signalled_and_it_is_said() {
    let holder = Holder::start(&[], 1);
    let (pid, start) = (holder.pid().to_string(), holder.id().start_ticks.to_string());
    for call in ["pidfd_open", "pidfd_send_signal"] {
        for errno in [ENOSYS, EPERM] {
            let (said, well) = helper(&["deny", call, errno, "kill", &pid, &start, "15"]);
            assert!(well, "{said}");
            assert!(said.contains("Refused(") && said.contains(call), "{call} {errno}: {said}");
            assert!(said.contains(&format!("kill {pid}")), "{call} {errno}: {said}");
            assert!(!said.contains("Sent("), "{call} {errno}: {said}");
            assert!(lives(holder.pid()));
        }
    }
    // Nothing else stands in the way.
    let (said, _) = helper(&["kill", &pid, &start, "15"]);
    assert!(said.contains("Sent(15)"), "{said}");
}

/// One look at it, where the call that reads memory answers this, or works.
fn looked(fake: &Fake, torch: &Torch, errno: Option<&str>) -> Value {
    asked(fake, torch, errno, &["--json"])
}

fn asked(fake: &Fake, torch: &Torch, errno: Option<&str>, words: &[&str]) -> Value {
    let program_of_tests = program();
    let monitor = env!("CARGO_BIN_EXE_vramlens");
    let mut command = match errno {
        None => Command::new(monitor),
        Some(errno) => {
            let mut command = Command::new(program_of_tests);
            command.args(["deny", "process_vm_readv", errno, "exec", monitor]);
            command
        }
    };
    command.env("VRAMLENS_NVML_LIB", fake.library()).env("VRAMLENS_TEST_DEVICES", torch.devices());
    let output = command.args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said).unwrap_or_else(|error| {
        panic!("{error}: {said} {:?}", String::from_utf8_lossy(&output.stderr))
    })
}

/// What else it says of the process and its GPU and does not change from look to look.
fn others(look: &Value) -> (Value, Value) {
    let without = |of: &Value, names: &[&str]| {
        let fields = of.as_object().unwrap().clone().into_iter();
        fields.filter(|(name, _)| !names.contains(&name.as_str())).collect::<Value>()
    };
    let (holder, memory) = (&look["holders"][0], &look["gpus"][0]["memory"]);
    assert!(memory["used_bytes"].is_u64(), "{memory}");
    let moving = ["age_ms", "facts_age_ms", "rss_bytes", "cpu_percent", "verdict"];
    let from_allocator = ["allocator", "fragmentation"];
    let holder = without(holder, &[&moving[..], &from_allocator].concat());
    (holder, memory.clone())
}

/// By seccomp or Yama (EPERM), or since there is no such call (ENOSYS).
#[test]
fn memory_that_may_not_be_read_costs_the_allocators_figures_only() {
    let mut torch = Torch::start("2.11", None);
    let (allocated, reserved) = torch.step(60);
    let fake = Fake::new(&format!(
        "[[gpu]]\nprocess = [{{ pid = {}, bytes = 9663676416 }}]\n",
        torch.pid()
    ));
    let well = looked(&fake, &torch, None);
    let of = |look: &Value| look["holders"][0]["allocator"].clone();
    assert_eq!(of(&well)["allocated_bytes"], allocated);
    assert_eq!(of(&well)["reserved_bytes"], reserved);
    for (errno, why) in [(EPERM, "no_permission"), (ENOSYS, "not_supported")] {
        let refused = looked(&fake, &torch, Some(errno));
        assert_eq!(others(&refused), others(&well), "{why}");
        let absent = json!({ "absent": why });
        assert_eq!(refused["gpus"][0]["ledger"]["cached_bytes"], absent);
        let report = asked(&fake, &torch, Some(errno), &["doctor", "--json"]);
        let lines = report["lines"].as_array().unwrap();
        let line = lines.iter().find(|line| line["key"] == "ptrace").unwrap();
        assert_eq!(line["state"], "limited", "{line}");
        assert!(line["found"].as_str().unwrap().contains("process_vm_readv"), "{line}");
        for figure in ["basis", "allocated_bytes", "reserved_bytes"] {
            assert_eq!(of(&refused)[figure], absent, "{figure}");
        }
        for figure in ["cached_bytes", "reusable_bytes", "fragmented_bytes"] {
            let gauge = &refused["holders"][0]["fragmentation"];
            assert_eq!((&gauge["basis"], &gauge[figure]), (&json!("none"), &absent), "{figure}");
        }
    }
}
