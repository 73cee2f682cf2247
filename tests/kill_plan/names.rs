//! What processes are called, and who is of one job where names are left out.

use vramlens::analyze::{View, plan};
use vramlens::history::History;
use vramlens::record::{Form, Header, Reader, Redaction, Writer};
use vramlens::sample::{Tick, redact};

use super::verdict_support::*;
use super::{id, pids};

#[test]
fn a_process_is_called_by_its_script_and_not_by_its_interpreter() {
    for (words, name, command) in [
        (&["python", "train.py", "--lr", "1"][..], "train.py", "train.py --lr 1"),
        (&["/usr/bin/python3.12", "-u", "/home/a/finetune.py"], "finetune.py", "finetune.py"),
        (&["python", "-m", "vllm.entry", "--port", "1"], "vllm.entry", "vllm.entry --port 1"),
        (&["bash", "/x/run.sh", "/y/z"], "run.sh", "run.sh /y/z"),
        (
            &["/opt/bin/llama-server", "-m", "/m/a.gguf"],
            "llama-server",
            "llama-server -m /m/a.gguf",
        ),
        (&["VLLM::EngineCore"], "VLLM::EngineCore", "VLLM::EngineCore"),
        // A title with arguments in one word, of which a path is none of its folders.
        (&["ray::train /x/y.py"], "ray::train", "ray::train /x/y.py"),
        // What has no name of its own is called as the kernel calls it.
        (&["python", "-c", "import torch"], "pt_main", "python -c import torch"),
        (&["python", "-B", "-c", "from x import y"], "pt_main", "python -B -c from x import y"),
        (&["python", "-X", "dev", "-u", "a.py"], "a.py", "a.py"),
        (&["python", "-m"], "pt_main", "python -m"),
        (&["python"], "pt_main", "python"),
        (&[""], "pt_main", ""),
        (&[], "pt_main", "pt_main"),
    ] {
        let process = args(process(500, "pt_main"), words);
        assert_eq!(process.short_name(), name, "{words:?}");
        assert_eq!(process.short_command(), command, "{words:?}");
    }
}

/// What a recording without names shows of these ticks.
fn without_names(ticks: &[Tick]) -> View {
    let redaction = Redaction::identities(redact);
    let header = Header::new(stamp(T0), 1_000);
    let mut writer = Writer::new(Vec::new(), Form::Plain, header, redaction).unwrap();
    for tick in ticks {
        writer.push(tick).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let mut history = History::new();
    for tick in Reader::new(bytes.as_slice()).unwrap() {
        history.push(&tick.unwrap());
    }
    View::build(&history, &moment(T0 + 5_200))
}

/// Two runs of torchrun, two that name their port only, and a shell's port that makes no job.
#[test]
fn jobs_side_by_side_stay_apart_in_a_recording_without_names() {
    let (run, port) = ("TORCHELASTIC_RUN_ID", "MASTER_PORT");
    let rank = |pid, variables: &[(&str, &str)]| {
        env(cuda(process(pid, "pt_main_thread"), &[0]), variables)
    };
    let mut procs = vec![init()];
    for (first, id, number) in [(500, "anas-run", "29500"), (502, "bos-run", "29501")] {
        let variables = [(run, id), ("RANK", "0"), (port, number)];
        procs.extend([first, first + 1].map(|pid| rank(pid, &variables)));
    }
    for (pid, number) in [(510, "29600"), (511, "29600"), (512, "29601"), (513, "29601")] {
        procs.push(rank(pid, &[(port, number), ("LOCAL_RANK", "0")]));
    }
    procs.extend([520, 521].map(|pid| rank(pid, &[(port, "29602")])));
    procs.extend([530, 531].map(|pid| rank(pid, &[(run, ""), (port, ""), ("RANK", "0")])));
    let pids_of: Vec<u32> = procs[1..].iter().map(|process| process.id.pid.0).collect();
    let rows = pids_of.iter().map(|pid| row(*pid, GIB)).collect();
    let gpus = vec![with_rows(gpu(0), rows)];
    let plain = watched(5, &gpus, &host(), &procs).1;
    let ticks: Vec<Tick> = (0..=5)
        .map(|second| T0 + second * 1_000)
        .flat_map(|at| [gpu_tick(at, gpus.clone()), proc_tick(at + 100, host(), procs.clone())])
        .collect();
    let nameless = without_names(&ticks);
    let jobs = |view: &View| -> Vec<Vec<u32>> {
        pids_of.iter().map(|pid| pids(&plan(view, &[id(*pid)], None))).collect()
    };
    let sorted = |mut job: Vec<u32>| {
        job.sort_unstable();
        job
    };
    let found: Vec<Vec<u32>> = jobs(&nameless).into_iter().map(sorted).collect();
    let expected: [&[u32]; 12] = [
        &[500, 501],
        &[500, 501],
        &[502, 503],
        &[502, 503],
        &[510, 511],
        &[510, 511],
        &[512, 513],
        &[512, 513],
        &[520],
        &[521],
        &[530],
        &[531],
    ];
    assert_eq!(found, expected);
    assert_eq!(jobs(&nameless), jobs(&plain));
    let verdicts = |view: &View| -> Vec<_> {
        let of = |holder: &vramlens::analyze::Holder| {
            let keys: Vec<_> = holder.verdict.evidence.iter().map(|fact| fact.key).collect();
            (holder.pid, holder.verdict.class, holder.verdict.zombie, keys)
        };
        view.holders.iter().map(of).collect()
    };
    assert_eq!(verdicts(&nameless), verdicts(&plain));
}
