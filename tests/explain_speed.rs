//! How fast a plain log is read. Run on demand: `cargo test --release --test explain_speed --
//! --ignored --nocapture`.

use std::fmt::Write as _;
use std::time::Instant;

use vramlens::oom::Scanner;

#[test]
#[ignore = "a measurement, not a check"]
fn throughput() {
    let mut plain = String::new();
    let mut dense = String::new();
    for step in 0..300_000 {
        writeln!(plain, "2026-11-30 10:00:00,123 INFO trainer.py:118 step {step} loss 0.{step} lr 1.0e-5 tokens/s 41200 grad_norm 0.81").unwrap();
        writeln!(
            dense,
            "2026-11-30 10:00:00,123 INFO step {step} loss 0.{step} mem 21.4 GiB reserved 22.0 GiB"
        )
        .unwrap();
    }
    for (name, text) in [("plain", &plain), ("figures on every line", &dense)] {
        let start = Instant::now();
        let mut scanner = Scanner::new();
        let mut total = 0;
        while total < 1_000_000_000 {
            for piece in text.as_bytes().chunks(256 << 10) {
                scanner.push(piece);
            }
            total += text.len();
        }
        let answer = scanner.finish();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{name}: {:.0} MB/s ({} bytes, recognised: {})",
            total as f64 / seconds / 1e6,
            answer.bytes_read,
            answer.recognised
        );
    }
}
