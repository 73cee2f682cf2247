//! The answer for a terminal: plain text, 80 columns, nothing of the log's own escape sequences.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use super::advice::{Advice, Saves};
use super::diagnose::{Confidence, Diagnosis, show};
use super::explanation::Explanation;
use super::ledger::Ledger;
use super::live::Live;

const WIDTH: usize = 80;
/// Columns of the ledger: label, figure, share; the bar takes the rest.
const LABEL: usize = 47;
const BAR: usize = 13;

/// The report.
pub fn report(answer: &Explanation) -> String {
    let mut out = String::new();
    if !answer.recognised {
        nothing(answer, &mut out);
        return out;
    }
    headline(answer, &mut out);
    if let Some(quote) = &answer.decisive {
        paragraph(&mut out, "  > ", "    ", &shorten(&quote.text, 300));
    }
    if let Some(first) = answer
        .first
        .as_ref()
        .filter(|first| Some(first.offset) != answer.decisive.as_ref().map(|d| d.offset))
    {
        paragraph(
            &mut out,
            "  before it, at byte ",
            "    ",
            &format!("{}: {}", first.offset, shorten(&first.text, 120)),
        );
    }
    if answer.incomplete {
        paragraph(
            &mut out,
            "  ! ",
            "    ",
            "The message is incomplete: it breaks off before its end, and what is not there is not guessed.",
        );
    }
    if answer.is_gpu_oom {
        request(answer, &mut out);
    }
    if let Some(ledger) = &answer.ledger {
        table(ledger, &mut out);
    }
    why(answer, &mut out);
    if let Some(live) = &answer.live {
        machine(live, &mut out);
    }
    fixes(answer, &mut out);
    if !answer.will_not_help.is_empty() {
        out.push_str("\nWILL NOT HELP HERE\n");
        for line in &answer.will_not_help {
            paragraph(&mut out, "  - ", "    ", line);
        }
    }
    if let Some(fix) = answer.fixes.first() {
        let _ = writeln!(
            out,
            "\nMore about a fix, with the lines for other programs: vramlens fixes {fix}"
        );
    }
    out
}

fn headline(answer: &Explanation, out: &mut String) {
    let what = match answer.diagnosis {
        Diagnosis::NotOom if answer.software == "none" => "No shortage of memory".to_owned(),
        Diagnosis::NotOom => format!("No shortage of GPU memory: {}", product(answer.software)),
        Diagnosis::HostRamNotVram if answer.software == "none" => {
            "Host memory ran out, not VRAM".to_owned()
        }
        Diagnosis::HostRamNotVram => {
            format!("Host memory ran out, not VRAM: {}", product(answer.software))
        }
        _ if refused(answer) => {
            format!("GPU memory was refused with room left: {}", product(answer.software))
        }
        _ => format!("GPU memory ran out: {}", product(answer.software)),
    };
    let version = match (&answer.version, answer.wording) {
        (Some(version), _) => format!(" {version}"),
        (None, Some(wording)) if answer.software.starts_with("pytorch") => {
            format!(" ({wording}, by its wording)")
        }
        (None, Some(wording)) => format!(" (PyTorch {wording}, by its wording)"),
        (None, None) => String::new(),
    };
    let device = answer.device.map(|device| format!(", device {device}")).unwrap_or_default();
    let seen = match answer.occurrences {
        0 | 1 => String::new(),
        times => format!(", {times} times"),
    };
    paragraph(out, "", "  ", &format!("{what}{version}{device}{seen}"));
}

/// There was room for it.
fn refused(answer: &Explanation) -> bool {
    answer.requested_bytes.zip(answer.free_bytes).is_some_and(|(asked, free)| asked < free)
        && answer.deficit_bytes.is_none()
}

fn request(answer: &Explanation, out: &mut String) {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if let Some(bytes) = answer.requested_bytes {
        rows.push(("asked for", show(bytes)));
    }
    if let Some(bytes) = answer.free_bytes {
        rows.push(("free", show(bytes)));
    }
    if let Some(bytes) = answer.allowed_bytes {
        rows.push(("allowed", show(bytes)));
    }
    if let Some((need, have)) = answer.kv_needed_bytes.zip(answer.kv_available_bytes) {
        rows.push(("cache needed", show(need)));
        rows.push(("cache possible", show(have)));
    }
    if let Some(bytes) = answer.deficit_bytes {
        rows.push(("missing", format!("{} at least, with a margin", show(bytes))));
    }
    if rows.is_empty() {
        rows.push(("asked for", "the message prints no size".to_owned()));
    }
    out.push('\n');
    for (name, value) in rows {
        let _ = writeln!(out, "  {name:<15}{value}");
    }
}

fn table(ledger: &Ledger, out: &mut String) {
    let total = ledger.total_bytes.unwrap_or(ledger.sum_bytes).max(1);
    let gib = total >= 8 << 30;
    let unit = if gib { "GiB" } else { "MiB" };
    let figure = |bytes: u64| {
        let factor = if gib { f64::from(1 << 30) } else { f64::from(1 << 20) };
        format!("{:.*}", if gib { 2 } else { 0 }, bytes as f64 / factor)
    };
    let title = "WHO HELD IT";
    let _ = writeln!(out, "\n{title:<LABEL$}{unit:>9}{:>7}", "%");
    for entry in &ledger.entries {
        let label = fit(&format!("  {}", entry.label), LABEL);
        let Some(bytes) = entry.bytes else {
            let _ = writeln!(out, "{label}{:>9}{:>7}", "?", "");
            continue;
        };
        let share = bytes as f64 / total as f64;
        let bar = "#".repeat(((share * BAR as f64).round() as usize).min(BAR));
        let line = format!("{label}{:>9}{:>7.1}  {bar}", figure(bytes), share * 100.0);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let _ = writeln!(out, "{:<LABEL$}{:>9}{:>7}", "", "-------", "-----");
    let label =
        if ledger.total_bytes.is_some() { "  device" } else { "  as far as the message tells" };
    let sum = ledger.total_bytes.unwrap_or(ledger.sum_bytes);
    let _ = writeln!(out, "{label:<LABEL$}{:>9}{:>7}", figure(sum), "100.0");
    if ledger.over_bytes > 64 << 20 {
        let text = format!(
            "The figures exceed the device by {}: memory spilled into RAM, or is counted twice.",
            show(ledger.over_bytes)
        );
        paragraph(out, "  ", "  ", &text);
    }
}

fn why(answer: &Explanation, out: &mut String) {
    let name = match answer.diagnosis {
        Diagnosis::Fragmentation => "fragmentation",
        Diagnosis::ModelTooBig => "the model is too large",
        Diagnosis::KvCacheTooBig => "the cache of keys and values is too large",
        Diagnosis::OtherProcessHoldsMemory => "another process holds the memory",
        Diagnosis::BatchOrActivationTooBig => "one step needs too much",
        Diagnosis::LeakOrGrowth => "memory grows",
        Diagnosis::HostRamNotVram => "the host's memory, not the GPU's",
        Diagnosis::NotOom => "not a shortage of memory",
        Diagnosis::UnknownGpuOom if refused(answer) => "another limit than the device's capacity",
        Diagnosis::UnknownGpuOom => "the log does not tell",
    };
    let sure = match answer.confidence {
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Possible => "possible",
    };
    let _ = writeln!(out, "\nWHY: {name} ({sure})");
    for line in &answer.why {
        paragraph(out, "  - ", "    ", line);
    }
    if !answer.settings.is_empty() {
        paragraph(out, "  - ", "    ", &format!("set already: {}", answer.settings.join(", ")));
    }
}

fn machine(live: &Live, out: &mut String) {
    let gpu = live.gpu.map(|gpu| format!(" (GPU {gpu})")).unwrap_or_default();
    let free = live.free_bytes.map(|free| format!(", {} free", show(free))).unwrap_or_default();
    let _ = writeln!(out, "\nNOW ON THIS MACHINE{gpu}{free}");
    for holder in &live.holders {
        let bytes = holder.bytes.map_or_else(|| "?".to_owned(), show);
        let mark = if holder.leftover { "leftover" } else { "" };
        let named = if holder.named { "named above" } else { "" };
        let line =
            format!("  {:>8} {bytes:>11} {mark:<8} {named:<11} {}", holder.pid.0, holder.command);
        let _ = writeln!(out, "{}", fit(&line, WIDTH).trim_end());
    }
    if live.reclaimable_bytes > 0 {
        let _ = writeln!(
            out,
            "  vramlens kill --zombies would give {} back",
            show(live.reclaimable_bytes)
        );
    }
}

fn fixes(answer: &Explanation, out: &mut String) {
    if answer.advice.is_empty() {
        if !answer.is_gpu_oom && answer.diagnosis == Diagnosis::NotOom {
            return;
        }
        out.push_str("\nNone of the nine fixes helps here.\n");
        return;
    }
    out.push_str("\nFIXES, the best first\n");
    for (number, advice) in answer.advice.iter().enumerate() {
        fix(number + 1, advice, out);
    }
}

fn fix(number: usize, advice: &Advice, out: &mut String) {
    let saves = match (advice.saves_bytes, advice.saves) {
        (Some(bytes), Some(Saves::AtMost)) => format!("up to {}", show(bytes)),
        (Some(bytes), Some(Saves::About)) => format!("about {}", show(bytes)),
        (Some(bytes), _) => show(bytes),
        (None, _) => String::new(),
    };
    let which = if advice.fix > 0 { format!("fix {}", advice.fix) } else { String::new() };
    let lead = format!("  {number}. {}", advice.title);
    let right =
        [saves, which].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("   ");
    let gap = WIDTH.saturating_sub(lead.width() + right.width()).max(2);
    let _ = writeln!(out, "{}", format!("{lead}{}{right}", " ".repeat(gap)).trim_end());
    paragraph(out, "       ", "         ", &advice.line);
    if let Some(note) = &advice.note {
        paragraph(out, "       # ", "       # ", note);
    }
    if advice.cost != "none" {
        paragraph(out, "     costs: ", "            ", advice.cost);
    }
}

fn nothing(answer: &Explanation, out: &mut String) {
    out.push_str("No out-of-memory error was recognised.\n\n");
    let text = format!(
        "Read {} bytes and looked for {} texts of PyTorch (CUDA, ROCm, MPS), cuBLAS, cuDNN, NCCL, TensorFlow, \
         JAX, CuPy, Numba, RMM, ONNX Runtime, TensorRT, Paddle, MXNet, llama.cpp, Ollama, vLLM, SGLang, TGI, \
         ComfyUI, Blender, Hashcat and others, and for kills by the kernel, Kubernetes and Slurm.",
        answer.bytes_read, answer.looked_for
    );
    paragraph(out, "  ", "  ", &text);
    if let Some(nearest) = &answer.nearest {
        out.push_str("\n  The nearest line:\n");
        paragraph(out, "  > ", "    ", nearest);
    }
    out.push_str("\n  Paste the lines from \"Traceback\" or from the first error to the end.\n");
}

/// How a program writes its name.
fn product(key: &str) -> &str {
    match key {
        "pytorch" => "PyTorch",
        "pytorch-rocm" => "PyTorch on ROCm",
        "pytorch-mps" => "PyTorch on Apple's MPS",
        "pytorch-xpu" => "PyTorch on XPU",
        "pytorch-directml" => "PyTorch on DirectML",
        "vllm" => "vLLM",
        "sglang" => "SGLang",
        "tgi" => "Text Generation Inference",
        "tensorrt-llm" => "TensorRT-LLM",
        "tensorrt" => "TensorRT",
        "tensorflow" => "TensorFlow",
        "jax" => "JAX",
        "cupy" => "CuPy",
        "numba" => "Numba",
        "nccl" => "NCCL",
        "rapids-rmm" => "RAPIDS (RMM)",
        "ollama" => "Ollama",
        "comfyui" => "ComfyUI",
        "onnxruntime" => "ONNX Runtime",
        "paddle" => "PaddlePaddle",
        "mxnet" => "MXNet",
        "lm-studio" => "LM Studio",
        "unreal-engine" => "Unreal Engine",
        "kubernetes" => "Kubernetes",
        "slurm" => "Slurm",
        "deepspeed" => "DeepSpeed",
        "linux" => "the Linux kernel",
        "cuda" => "a CUDA program",
        other => other,
    }
}

/// Text in lines of at most [`WIDTH`] columns; a word that is longer is cut.
fn paragraph(out: &mut String, first: &str, next: &str, text: &str) {
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        let mut word = word;
        loop {
            let space = usize::from(!empty);
            if line.width() + space + word.width() <= WIDTH {
                line.push_str(if empty { "" } else { " " });
                line.push_str(word);
                empty = false;
                break;
            }
            if empty {
                let (head, tail) = head(word, WIDTH.saturating_sub(line.width()).max(1));
                line.push_str(head);
                word = tail;
            }
            let _ = writeln!(out, "{line}");
            next.clone_into(&mut line);
            empty = true;
            if word.is_empty() {
                break;
            }
        }
    }
    if !empty {
        let _ = writeln!(out, "{line}");
    }
}

/// The part of a word that fits into `width` columns, and the rest; at least one character.
fn head(word: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    let end = word
        .char_indices()
        .find(|(at, c)| {
            used += c.to_string().width();
            used > width && *at > 0
        })
        .map_or(word.len(), |(at, _)| at);
    word.split_at_checked(end).unwrap_or((word, ""))
}

/// Exactly `width` columns: cut with an ellipsis, or filled with spaces.
fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return format!("{text}{}", " ".repeat(width - text.width()));
    }
    let (head, _) = head(text, width.saturating_sub(1));
    let fill = width.saturating_sub(head.width() + 1);
    format!("{head}…{}", " ".repeat(fill))
}

fn shorten(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_page() {
        let mut out = String::new();
        paragraph(
            &mut out,
            "  - ",
            "    ",
            &format!("{} 宽宽宽 {}", "x".repeat(200), "a b c ".repeat(40)),
        );
        assert!(out.lines().all(|line| line.width() <= WIDTH), "{out}");
        assert!(out.contains(&"x".repeat(70)));
        assert_eq!(fit("宽宽宽", 4).width(), 4);
    }
}
