//! What may happen to a message on its way, and must not change what is read from it.

#![allow(clippy::unwrap_used, reason = "helpers of tests, not tests themselves")]

use std::fmt::Write as _;

use proptest::prelude::*;
use vramlens::oom::{self, Explanation, Scanner};

/// Complete messages of several families.
static MESSAGES: &[&str] = &[
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 1 has a total capacity of 47.43 GiB of which 819.56 MiB is free. Process 1180422 has 23.64 GiB memory in use. Including non-PyTorch memory, this process has 22.98 GiB memory in use. Of the allocated memory 21.30 GiB is allocated by PyTorch, with 3.14 GiB allocated in private pools (e.g., CUDA Graphs), and 602.11 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
    "RuntimeError: CUDA out of memory. Tried to allocate 1.37 GiB (GPU 0; 15.78 GiB total capacity; 6.02 GiB already allocated; 388.75 MiB free; 13.95 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
    "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 32,000,000,000 bytes (allocated so far: 8,000,000,512 bytes, limit set to: 24,000,000,000 bytes).",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 18.24GiB (19585050880B) on device ordinal 0 while running",
    "ValueError: Free memory on device cuda:1 (10.5/79.19 GiB) on startup is less than desired GPU memory utilization (0.92, 72.85 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
];

/// Where one of them may end as well: other versions print no more.
static SHORT: &[&str] = &["allocating 32,000,000,000 bytes", "18.24GiB", "(19585050880B)"];

/// What is read from a message: everything but where it stood and the conclusions.
fn reading(answer: &Explanation) -> Vec<(&'static str, Option<u64>)> {
    let mut figures = vec![
        ("device", answer.device),
        ("requested", answer.requested_bytes),
        ("total", answer.total_bytes),
        ("free", answer.free_bytes),
        ("allocated", answer.allocated_bytes),
        ("unallocated", answer.reserved_unallocated_bytes),
        ("allowed", answer.allowed_bytes),
        ("private", answer.private_pools_bytes),
        ("this", answer.this_process_bytes),
    ];
    figures.extend(answer.other_processes.iter().map(|other| ("other", other.bytes)));
    figures
}

fn plain(message: &str) -> Vec<(&'static str, Option<u64>)> {
    reading(&oom::explain(message.as_bytes()))
}

/// Breaks a text into lines of at most `width` characters, between words or anywhere.
fn wrap(text: &str, width: usize, anywhere: bool) -> Vec<String> {
    if anywhere {
        let chars: Vec<char> = text.chars().collect();
        return chars.chunks(width).map(|chunk| chunk.iter().collect()).collect();
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && line.len() + word.len() + 1 > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

fn message() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(MESSAGES)
}

fn prefix() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(
        &[
            "",
            "[rank3]: ",
            "worker-2  | ",
            "(TrainWorker pid=70211) ",
            "(EngineCore_DP0 pid=17374) ERROR 09-28 15:47:24 [core.py:718] ",
            "Mar 02 11:20:31 rook vllm[911]: ",
            "2026-01-09T12:00:31.881Z ERROR ",
            "[2026-05-20 03:12:45 TP0] ",
            "[pod/a/b] ",
            "> ",
            "\u{1b}[0;36m(APIServer pid=1)\u{1b}[0;0m ",
        ][..],
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn marks_and_line_breaks_do_not_change_it(
        message in message(), prefix in prefix(), width in 44_usize..200, anywhere: bool, crlf: bool,
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text = format!("{prefix}Traceback (most recent call last):{end}");
        for line in wrap(message, width, anywhere) {
            write!(text, "{prefix}{line}{end}").unwrap();
        }
        text += "and so on\n";
        let got = oom::explain(text.as_bytes());
        prop_assert_eq!(reading(&got), plain(message), "{}", text);
        prop_assert!(!got.incomplete);
    }

    #[test]
    fn colours_do_not_change_it(message in message(), at in proptest::collection::vec(0_usize..4000, 0..40)) {
        let mut text = String::new();
        for (index, c) in message.chars().enumerate() {
            if at.contains(&index) {
                text += "\u{1b}[1;36m";
            }
            text.push(c);
        }
        prop_assert_eq!(reading(&oom::explain(text.as_bytes())), plain(message));
    }

    #[test]
    fn other_ranks_between_the_lines_do_not_change_it(
        message in message(), width in 60_usize..160, ranks in proptest::collection::vec(0_u8..3, 4..40),
    ) {
        let mut lines = wrap(message, width, false).into_iter();
        let mut text = String::new();
        for rank in ranks {
            if rank == 0 {
                if let Some(line) = lines.next() {
                    writeln!(text, "[rank0]: {line}").unwrap();
                }
            } else {
                writeln!(text, "[rank{rank}]: step 12 loss 0.3").unwrap();
            }
        }
        for line in lines {
            writeln!(text, "[rank0]: {line}").unwrap();
        }
        prop_assert_eq!(reading(&oom::explain(text.as_bytes())), plain(message), "{}", text);
    }

    #[test]
    fn a_cut_message_gives_no_other_figure_or_says_that_it_is_cut(message in message(), keep in 30_usize..700) {
        let whole = plain(message);
        let part: String = message.chars().take(keep).collect();
        if SHORT.iter().any(|end| part.trim_end().ends_with(end)) {
            return Ok(());
        }
        let got = oom::explain(part.as_bytes());
        let complete = reading(&got) == whole;
        prop_assert!(complete || got.incomplete || !got.is_gpu_oom || got.requested_bytes.is_none(), "{}\n{:?}", part, got);
        for (key, value) in reading(&got) {
            let known = whole.iter().any(|(name, wanted)| *name == key && *wanted == value);
            // A process may be listed without its bytes when the text ends between the two; a
            // number may lose its last digits, and then the answer says so.
            prop_assert!(value.is_none() || known || got.incomplete, "{} in {}", key, part);
        }
    }

    #[test]
    fn the_size_of_the_pieces_does_not_matter(message in message(), step in 1_usize..300) {
        let text = format!("one\ntwo\n{message}\nthree\n");
        let mut scanner = Scanner::new();
        for piece in text.as_bytes().chunks(step) {
            scanner.push(piece);
        }
        prop_assert_eq!(scanner.finish(), oom::explain(text.as_bytes()));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic_and_shown_without_controls(
        bytes in proptest::collection::vec(any::<u8>(), 0..4000), message in message(), at in 0_usize..4000,
    ) {
        let mut text = bytes;
        let at = at.min(text.len());
        text.splice(at..at, message.bytes());
        for input in [&text[..], &text[..at]] {
            let report = oom::report(&oom::explain(input));
            prop_assert!(report.chars().all(|c| c == '\n' || !c.is_control()));
        }
    }

    #[test]
    fn fragments_of_known_texts_in_any_order_are_harmless(
        parts in proptest::collection::vec((0_usize..5, 0_usize..700, 1_usize..60), 0..120),
        glue in proptest::sample::select(&["", " ", "\n", "\r", "\u{1b}[2J", "\u{1b}]0;x\u{7}", "\\n", "\0"][..]),
    ) {
        let mut text = String::new();
        for (which, from, length) in parts {
            text.extend(MESSAGES[which].chars().skip(from).take(length));
            text += glue;
        }
        let report = oom::report(&oom::explain(text.as_bytes()));
        prop_assert!(report.chars().all(|c| c == '\n' || !c.is_control()));
        prop_assert!(report.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{}", report);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_of_megabytes_around_it_does_not_change_it(message in message(), before in 0_usize..30_000, after in 0_usize..30_000) {
        let mut text = String::new();
        for step in 0..before {
            writeln!(text, "step {step} | loss 0.{step} | {} tok/s", step * 7 % 9000).unwrap();
        }
        writeln!(text, "Traceback (most recent call last):\n{message}").unwrap();
        for step in 0..after {
            writeln!(text, "worker {step} stopped").unwrap();
        }
        prop_assert_eq!(reading(&oom::explain(text.as_bytes())), plain(message));
    }
}

/// Bytes touched for each byte of input must not grow with the input.
#[test]
fn the_work_is_in_proportion_to_the_input() {
    let hostile: [&dyn Fn(usize) -> Vec<u8>; 6] = [
        &|n| b"CUDA out of memory. Tried to allocate ".iter().copied().cycle().take(n).collect(),
        &|n| b"CUDA out of memory\n".iter().copied().cycle().take(n).collect(),
        &|n| b"1.0 GiB used\n".iter().copied().cycle().take(n).collect(),
        &|n| b"Process 1 has 1.00 MiB memory in use. ".iter().copied().cycle().take(n).collect(),
        &|n| vec![b'9'; n],
        &|n| b"\x1b[".iter().copied().cycle().take(n).collect(),
    ];
    for make in hostile {
        let work = |size: usize| {
            let mut scanner = Scanner::new();
            scanner.push(&make(size));
            scanner.finish_counted().1
        };
        for size in [1 << 20, 4 << 20] {
            let touched = work(size);
            assert!(touched <= 4 * size as u64 + (1 << 16), "{touched} for {size}");
        }
    }
}

#[test]
fn repeats_are_counted_over_the_whole_log_and_the_first_one_is_kept() {
    let mut text = String::from("start\n");
    for round in 0..5000 {
        for line in 0..20 {
            writeln!(text, "round {round} line {line} of some text that is long enough to matter")
                .unwrap();
        }
        writeln!(text, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {round}.00 GiB. GPU 0 has a total capacity of 9.00 GiB of which 0 bytes is free. Of the allocated memory 8.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.").unwrap();
    }
    let got = oom::explain(text.as_bytes());
    assert_eq!(got.occurrences, 5000);
    assert_eq!(got.requested_bytes, Some(0));
    assert!(got.decisive.is_some_and(|quote| quote.offset < 4000));
}
