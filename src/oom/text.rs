//! The answer for a terminal: plain text, 80 columns, nothing of the log's own escape sequences.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use super::advice::{Advice, Saves};
use super::diagnose::{Confidence, Diagnosis, show};
use super::explanation::Explanation;
use super::ledger::Ledger;
use super::live::Live;
use super::page::{WIDTH, code, fit, paragraph};

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
        Diagnosis::NotOom if answer.cause.is_some() => {
            format!("GPU memory ran short, and it went on: {}", product(answer.software))
        }
        Diagnosis::NotOom if answer.software == "none" => "No shortage of memory".to_owned(),
        Diagnosis::NotOom => format!("No shortage of GPU memory: {}", product(answer.software)),
        Diagnosis::HostRamNotVram => {
            let likely = if answer.confidence == Confidence::Certain { "" } else { " most likely" };
            let whose = match answer.software {
                "none" => String::new(),
                software => format!(": {}", product(software)),
            };
            format!("Host memory{likely} ran out, not VRAM{whose}")
        }
        _ if answer.refused_with_room => {
            let likely =
                if answer.confidence == Confidence::Certain { "" } else { ", most likely" };
            let software = product(answer.software);
            let room = if likely.is_empty() && answer.free_bytes.is_none() {
                ""
            } else {
                " with room left"
            };
            format!("GPU memory was refused{likely}{room}: {software}")
        }
        // Its estimate is made before anything is loaded.
        _ if answer.decisive.as_ref().is_some_and(|quote| quote.signature == "lmstudio") => {
            format!("The model was refused before loading: {}", product(answer.software))
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
    rows.extend(shortage(answer));
    if rows.is_empty() {
        rows.push(("asked for", "the message prints no size".to_owned()));
    }
    out.push('\n');
    for (name, value) in rows {
        let _ = writeln!(out, "  {name:<15}{value}");
    }
}

/// What is short, and what to free for it.
fn shortage(answer: &Explanation) -> Vec<(&'static str, String)> {
    let Some(aim) = answer.deficit_bytes.filter(|_| !answer.refused_with_room || shares(answer))
    else {
        return Vec::new();
    };
    let short = answer.short_bytes.unwrap_or_default();
    let of = if shares(answer) { " of what it may take" } else { "" };
    let mut rows = Vec::new();
    if short > 0 {
        rows.push(("short by", format!("at least {}{of}", show(short))));
    }
    let margin = show(aim.saturating_sub(short));
    let margin = if short > 0 {
        format!("with a margin of {margin}")
    } else {
        // The request alone would have fitted.
        "as a margin beside the request".to_owned()
    };
    rows.push(("aim for", format!("{} more, {margin}", show(aim))));
    rows
}

/// A share of the device is what was used up.
fn shares(answer: &Explanation) -> bool {
    let used = answer.reserved_bytes.or(answer.allocated_bytes).unwrap_or_default();
    let other = answer.other_allocations_bytes.unwrap_or_default();
    let left = answer.allowed_bytes.map(|limit| limit.saturating_sub(used.saturating_add(other)));
    left.is_some_and(|left| answer.free_bytes.is_none_or(|free| left < free))
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
        Diagnosis::UnknownGpuOom => "the log does not tell",
    };
    let name = answer.cause.unwrap_or(name);
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
        fix(number + 1, advice, answer, out);
    }
}

fn fix(number: usize, advice: &Advice, answer: &Explanation, out: &mut String) {
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
    code(out, "       ", &advice.line);
    if let (Some(false), Some(short)) = (advice.enough, answer.short_bytes) {
        let text = format!("not enough alone: at least {} is short", show(short));
        paragraph(out, "       # ", "       # ", &text);
    }
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
        "blender" => "Blender",
        "koboldcpp" => "KoboldCpp",
        "exllama" => "ExLlama",
        "hashcat" => "Hashcat",
        "stable-diffusion-webui" => "Stable Diffusion web UI",
        "opencv" => "OpenCV",
        "ffmpeg" => "FFmpeg",
        "warp" => "NVIDIA Warp",
        "ctranslate2" => "CTranslate2",
        "matlab" => "MATLAB",
        "xgboost" => "XGBoost",
        "openmm" => "OpenMM",
        "v-ray" => "V-Ray",
        "direct3d" => "Direct3D",
        "cuda.jl" => "CUDA.jl",
        "triton" => "Triton",
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

fn shorten(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
