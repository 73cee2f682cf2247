//! What one step costs, at three sizes: `cargo bench --bench micro`.

#![allow(clippy::unwrap_used)]

mod machine;

use std::io::Cursor;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use machine::{Machine, NOW, SIZES, moment};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use vramlens::analyze::View;
use vramlens::history::History;
use vramlens::model::gguf::Gguf;
use vramlens::record::{Form, Header, Reader, Redaction, Writer};
use vramlens::sample::{Tick, redact};
use vramlens::ui::{self, App, Context};
use vramlens::{oom, rules};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

fn view(size: &str) -> (History, View) {
    let history = Machine::of(size).history();
    let view = View::build(&history, &moment(NOW));
    (history, view)
}

#[divan::bench(args = SIZES)]
fn history_push(bencher: Bencher<'_, '_>, size: &str) {
    let machine = Machine::of(size);
    let mut history = machine.history();
    let mut second = NOW;
    bencher
        .with_inputs(|| {
            second += 1;
            machine.ticks(second)
        })
        .bench_local_values(|ticks| ticks.iter().for_each(|tick| history.push(tick)));
}

#[divan::bench(args = SIZES)]
fn view_build(bencher: Bencher<'_, '_>, size: &str) {
    let (history, _) = view(size);
    let moment = moment(NOW);
    bencher.bench_local(|| View::build(black_box(&history), &moment));
}

#[divan::bench(args = SIZES)]
fn run_rules(bencher: Bencher<'_, '_>, size: &str) {
    let (_, view) = view(size);
    bencher.bench_local(|| rules::run(black_box(&view)));
}

#[divan::bench(args = SIZES)]
fn draw(bencher: Bencher<'_, '_>, size: &str) {
    let (history, view) = view(size);
    let findings = rules::run(&view);
    let app = App::default();
    let area = Rect::new(0, 0, 160, 50);
    let mut buffer = Buffer::empty(area);
    bencher.bench_local(|| {
        let context = Context { view: &view, history: &history, findings: &findings };
        ui::draw_on(&mut buffer, area, &app, context)
    });
}

#[divan::bench(args = SIZES)]
fn record_encode(bencher: Bencher<'_, '_>, size: &str) {
    let machine = Machine::of(size);
    let ticks: Vec<Tick> = (0..60).flat_map(|second| machine.ticks(second)).collect();
    bencher.bench_local(|| encode(black_box(&ticks)).len());
}

#[divan::bench(args = SIZES)]
fn record_decode(bencher: Bencher<'_, '_>, size: &str) {
    let machine = Machine::of(size);
    let ticks: Vec<Tick> = (0..60).flat_map(|second| machine.ticks(second)).collect();
    let bytes = encode(&ticks);
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
        let reader = Reader::new(Cursor::new(black_box(&bytes[..]))).unwrap();
        reader.flatten().count()
    });
}

fn encode(ticks: &[Tick]) -> Vec<u8> {
    let header = Header::new(ticks[0].at(), 1_000);
    let redaction = Redaction::secrets(redact);
    let mut writer = Writer::new(Vec::new(), Form::Frames, header, redaction).unwrap();
    for tick in ticks {
        writer.push(tick).unwrap();
    }
    writer.finish().unwrap()
}

/// A log of so many lines with an error at its end.
#[divan::bench(args = [10, 1_000, 100_000])]
fn explain(bencher: Bencher<'_, '_>, lines: usize) {
    let mut text = String::new();
    for line in 0..lines {
        text.push_str(&format!(
            "2026-11-30 10:00:00,123 INFO step {line} loss 0.81 mem 21.4 GiB\n"
        ));
    }
    text.push_str(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total \
         capacity of 23.55 GiB of which 1.21 GiB is free. Process 41233 has 22.33 GiB memory in \
         use. Of the allocated memory 20.10 GiB is allocated by PyTorch, and 1.75 GiB is reserved \
         by PyTorch but unallocated.\n",
    );
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| oom::explain(black_box(text.as_bytes())));
}

/// A header with so many words in its vocabulary and 291 tensors.
#[divan::bench(args = [1_000, 32_000, 256_000])]
fn gguf_header(bencher: Bencher<'_, '_>, words: u64) {
    let bytes = gguf(words);
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| Gguf::read(Cursor::new(black_box(&bytes[..]))).unwrap());
}

fn gguf(words: u64) -> Vec<u8> {
    const TENSORS: u64 = 291;
    const TEXT: u32 = 8;
    const ARRAY: u32 = 9;
    let mut bytes = b"GGUF".to_vec();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.bytes());
    };
    bytes.extend(3_u32.to_le_bytes());
    bytes.extend(TENSORS.to_le_bytes());
    bytes.extend(2_u64.to_le_bytes());
    text(&mut bytes, "general.architecture");
    bytes.extend(TEXT.to_le_bytes());
    text(&mut bytes, "llama");
    text(&mut bytes, "tokenizer.ggml.tokens");
    bytes.extend(ARRAY.to_le_bytes());
    bytes.extend(TEXT.to_le_bytes());
    bytes.extend(words.to_le_bytes());
    for word in 0..words {
        text(&mut bytes, &format!("word{word}"));
    }
    for tensor in 0..TENSORS {
        text(&mut bytes, &format!("blk.{tensor}.attn_q.weight"));
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend([4096_u64, 4096].iter().flat_map(|n| n.to_le_bytes()));
        bytes.extend(12_u32.to_le_bytes());
        bytes.extend((tensor * 9_437_184).to_le_bytes());
    }
    bytes
}
