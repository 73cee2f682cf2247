//! What is said at the end, over views made by hand.

use std::collections::BTreeMap;

use vramlens::history::History;
use vramlens::ids::{GpuIndex, Pid, ProcId};
use vramlens::report::Style;
use vramlens::report::postmortem::{AllocatorPeak, Death, Facts, Peak, Whose, summary, text};
use vramlens::sample::{FreeBlocks, Reading, Tick};
use vramlens::units::Bytes;

use crate::{ticks, views};

fn hide(arguments: &[String]) -> Vec<String> {
    arguments.iter().map(|argument| argument.replace("hunter2", "***")).collect()
}

fn history() -> History {
    let mut history = History::new();
    for second in 0..60 {
        let used = Bytes::gib(10 + second).0;
        let Tick::Gpus(mut tick) = ticks::gpu_tick(second * 1_000, used) else { unreachable!() };
        tick.seq = second;
        history.push(&Tick::Gpus(tick));
    }
    history
}

fn allocators() -> BTreeMap<ProcId, AllocatorPeak> {
    let view = views::busy();
    let Some(Reading::Value(mut last)) = view.holders[1].allocator.clone() else { unreachable!() };
    last.devices[0].ooms = Reading::Value(1);
    last.devices[0].free = Reading::Value(FreeBlocks {
        count: 812,
        bytes: Bytes::gib(21),
        largest: Bytes::mib(410),
        largest_request: Bytes::mib(400),
        histogram: Vec::new(),
        sizes: Vec::new(),
        sizes_complete: false,
        private_bytes: None,
        releasable: Some(Bytes::gib(3)),
        read_at: None,
    });
    let peak = AllocatorPeak { allocated: Bytes::gib(70), reserved: Bytes::gib(86), last };
    [(ProcId { pid: Pid(41_233), start_ticks: 41_233 }, peak)].into()
}

fn peak() -> Peak {
    let gpus = [(GpuIndex(0), Bytes::gib(80)), (GpuIndex(1), Bytes::gib(40))].into();
    Peak { bytes: Bytes::gib(120), gpus, processes: 2 }
}

const MESSAGE: &str = "GPU memory ran out: PyTorch\n  > CUDA out of memory\u{1b}[2J\n";

fn post_mortem(style: &Style) -> String {
    let (view, history, allocators) = (views::busy(), history(), allocators());
    let facts = Facts {
        view: Some(&view),
        history: &history,
        gpu: Some(&view.gpus[0].sample.uuid),
        members: &[Pid(41_233)],
        peak: None,
        allocators: &allocators,
    };
    let findings = views::findings();
    let death = Death {
        end: "exit code 1".to_owned(),
        ran_ms: 250_000,
        whose: Whose::Gpu,
        message: MESSAGE,
        findings: &findings,
        fit: None,
    };
    text(&death, &facts, style)
}

#[test]
fn the_post_mortem_has_every_part() {
    let said = post_mortem(&Style::new(hide));
    for part in [
        "Out of memory on GPU 0: the command ended with exit code 1 after 4m.",
        "GPU memory ran out: PyTorch",
        "BEFORE THE END",
        "HOLDERS, THE LAST ",
        "ALLOCATOR OF 41233, LAST READ BEFORE THE END",
        "device 0: 86.1 GiB reserved = 64.2 GiB allocated + 21.9 GiB cached",
        "812 free blocks, the largest request that fits in one: 400 MiB",
        "1 out-of-memory error",
        "at its peak 70.0 GiB allocated, 86.0 GiB reserved",
        "WHAT TO DO",
        "sudo vramlens kill 40011",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[test]
fn without_unicode_there_is_none() {
    let style = Style { ascii: true, width: 100, ..Style::new(hide) };
    let said = post_mortem(&style);
    assert!(said.is_ascii(), "{said}");
    assert!(said.lines().all(|line| line.len() <= 100), "{said}");
}

#[test]
fn the_summary_names_each_gpu() {
    let (view, history, allocators, peak) = (views::busy(), history(), allocators(), peak());
    let mut facts = Facts {
        view: Some(&view),
        history: &history,
        gpu: None,
        members: &[Pid(41_233)],
        peak: Some(&peak),
        allocators: &allocators,
    };
    assert_eq!(
        summary(&facts, &Style { width: 120, ..Style::new(hide) }),
        "vramlens: peak VRAM       120.0 GiB (GPU 0: 80.0 GiB, GPU 1: 40.0 GiB), 2 processes\n\
         vramlens: peak allocator  70.0 GiB allocated, 86.0 GiB reserved\n\
         vramlens: growth          +1.1 GiB a minute, steadily, up to the end\n"
    );
    facts.peak = None;
    assert_eq!(
        summary(&facts, &Style::new(hide)),
        "vramlens: no GPU memory of the command was seen\n"
    );
}
