//! Calls that a sandbox, or an old kernel, refuses.

use std::process::Command;

use crate::real::{Holder, lives, program};

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

#[test]
fn memory_that_may_not_be_read_is_no_reason_to_fail() {
    let fake = crate::fake::Fake::new(&format!(
        "[[gpu]]\nprocess = [{{ pid = {}, bytes = 1073741824 }}]\n",
        std::process::id()
    ));
    for errno in [ENOSYS, EPERM] {
        let output = Command::new(program())
            .args(["deny", "process_vm_readv", errno, "exec"])
            .args([env!("CARGO_BIN_EXE_vramlens"), "--json"])
            .env("VRAMLENS_NVML_LIB", fake.library())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let json: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|error| {
            panic!("{error}: {said} {}", String::from_utf8_lossy(&output.stderr))
        });
        assert_eq!(json["holders"][0]["bytes"], 1_073_741_824_u64);
    }
}
