//! Findings, dialogs, what is found without a GPU.

use vramlens::ids::*;
use vramlens::rules::*;
use vramlens::sample::*;
use vramlens::ui::NoGpu;
use vramlens::ui::kill::{Dialog, DialogRow, Phase};

use super::build::g;

fn saving(tenths: u64, low: u64, high: u64, provenance: Provenance) -> Saving {
    Saving { bytes: g(tenths), low: g(low), high: g(high), provenance }
}

fn fix(title: &str, line: Option<&str>, saves: Saving, cost: &str) -> Fix {
    Fix {
        title: title.to_owned(),
        saves: Some(saves),
        line: line.map(ToOwned::to_owned),
        cost: cost.to_owned(),
        ends: Vec::new(),
    }
}

fn finding(
    rule: (&'static str, u8),
    severity: Severity,
    pid: u32,
    headline: &str,
    fix: Fix,
) -> Finding {
    Finding {
        rule: rule.0,
        fix_number: rule.1,
        severity,
        gpu: Some(GpuIndex(0)),
        pid: Some(Pid(pid)),
        headline: headline.to_owned(),
        evidence: vec!["read from the allocator of the process".into()],
        fixes: vec![fix],
    }
}

/// What the rules say of the first scene.
pub fn findings() -> Vec<Finding> {
    vec![
        finding(
            ("leftovers", 3),
            Severity::Warning,
            40011,
            "1 zombie holds 22.1 GiB: its server is gone since 2d",
            fix(
                "end it",
                Some("sudo vramlens kill 40011"),
                saving(221, 221, 221, Provenance::Measured),
                "nothing: nobody waits for it",
            ),
        ),
        finding(
            ("fragmentation", 6),
            Severity::Warning,
            41233,
            "21.9 GiB cached, largest free block 0.4 GiB",
            fix(
                "use expandable segments",
                Some("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
                saving(210, 210, 210, Provenance::Read),
                "a restart",
            ),
        ),
        finding(
            ("checkpointing", 7),
            Severity::Notice,
            41233,
            "training, activations about 31 GiB",
            fix(
                "recompute activations in the backward pass",
                None,
                saving(200, 150, 230, Provenance::Estimated),
                "about a third more time a step",
            ),
        ),
    ]
}

pub fn target(pid: u32) -> KillTarget {
    KillTarget {
        id: ProcId { pid: Pid(pid), start_ticks: u64::from(pid) * 10 },
        uid: Reading::Value(1001),
        comm: "VLLM".into(),
        must_hold_device: true,
    }
}

/// Two leftovers of one job are to be ended.
pub fn dialog() -> Dialog {
    let row = |pid: u32, command: &str, note: &str| DialogRow {
        id: Some(target(pid).id),
        pid,
        user: "bo".into(),
        command: command.into(),
        bytes: "22.1 GiB".into(),
        note: note.into(),
    };
    Dialog {
        title: "End 2 processes, 44.2 GiB on GPU 0,1".into(),
        rows: vec![
            row(40011, "VLLM::EngineCore", "zombie: launcher 39980 gone"),
            row(40012, "VLLM::Worker_TP1", "same process group"),
        ],
        refused: vec!["40099 nvidia-persistenced: never ended".into()],
        note: "TERM, then KILL after 5 s.".into(),
        order: KillOrder {
            targets: vec![target(40011), target(40012)],
            preset: KillPreset::Zombie,
        },
        typed: None,
        phase: Phase::Asking,
    }
}

pub fn no_gpu() -> NoGpu {
    let fact = |what: &str, found: &str| (what.to_owned(), found.to_owned());
    NoGpu {
        facts: vec![
            fact("driver library", "libnvidia-ml.so.1 not found"),
            fact("device files", "/dev/nvidiactl missing"),
            fact("kernel module", "nvidia not loaded (nouveau is: blacklist it, then reboot)"),
        ],
        advice: "install the driver package of your distribution, then reboot.".into(),
    }
}
