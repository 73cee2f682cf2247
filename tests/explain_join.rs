//! Which GPU of this machine an error message is about.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod verdict_support;

use verdict_support::*;
use vramlens::analyze::View;
use vramlens::history::History;
use vramlens::ids::GpuIndex;
use vramlens::oom;
use vramlens::runtime::explain;
use vramlens::units::Bytes;

const MESSAGE: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 1 \
has a total capacity of 80.00 GiB of which 7.08 GiB is free. Process 590 has 4.00 GiB memory in use. \
Process 589 has 7.00 GiB memory in use. Including non-PyTorch memory, this process has 60.51 GiB \
memory in use. Of the allocated memory 60.00 GiB is allocated by PyTorch, and 0 bytes is reserved by \
PyTorch but unallocated.";

fn about(message: &str, on: &[&[(u32, u64)]]) -> Option<GpuIndex> {
    let mut history = History::new();
    let gpus = on.iter().enumerate().map(|(n, rows)| {
        let rows = rows.iter().map(|(pid, gib)| row(*pid, gib * GIB)).collect();
        with_rows(gpu(n as u32), rows)
    });
    history.push(&gpu_tick(T0, gpus.collect()));
    let view = View::build(&history, &moment(T0 + 100));
    let mut answer = oom::explain(message.as_bytes());
    answer.join(&view);
    answer.live.and_then(|live| live.gpu)
}

/// A process may hold memory of several GPUs.
#[test]
fn the_gpu_is_the_one_where_the_named_hold_what_the_message_says() {
    assert_eq!(about(MESSAGE, &[&[(589, 3)], &[(589, 7), (590, 4)]]), Some(GpuIndex(1)));
    assert_eq!(about(MESSAGE, &[&[(589, 7), (590, 4)], &[(589, 3)]]), Some(GpuIndex(0)));
    // The program's number counts where nothing else tells them apart.
    assert_eq!(about(MESSAGE, &[&[(589, 7)], &[(589, 7)]]), Some(GpuIndex(1)));
    assert_eq!(about(MESSAGE, &[&[(1, 7)], &[(2, 7)]]), None);
}

/// What would fit is said with what it is made of, and with which card it is.
#[test]
fn another_card_than_the_message_s_is_named() {
    let mut history = History::new();
    history.push(&gpu_tick(T0, vec![with_rows(gpu(0), vec![row(1, GIB)])]));
    let view = View::build(&history, &moment(T0 + 100));
    let total = view.gpus[0].ledger.value().unwrap().total;
    let of = |message: &str| {
        let mut answer = oom::explain(message.as_bytes());
        answer.join(&view);
        let wanted = explain::wanted(&answer, &view).unwrap();
        explain::would_it_fit(&answer, wanted, &view)
    };
    assert_eq!(total, Bytes::gib(80));
    let text = of(&MESSAGE.replace("80.00 GiB", "140.00 GiB"));
    let made = "68.5 GiB are the 8.0 GiB asked for and the 60.5 GiB that its process had.";
    assert!(text.contains(made), "{text}");
    let another = "GPU 0 is another card than the message's of 140.0 GiB: ";
    assert!(text.contains(another) && text.contains(&format!("with {total}.")), "{text}");
    // Of the very card nothing is said.
    let here = of(MESSAGE);
    assert!(here.contains(made) && !here.contains("card"), "{here}");
    let text = of("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n");
    assert!(text.contains("2.0 GiB were asked for.") && text.contains("cannot be told"), "{text}");
}
