//! What is no shortage of GPU memory: the host's memory, other faults, and what went well in the end.

use super::diagnose::{Confidence, Diagnosis, Finding, show};
use super::figures::Slot;
use super::judge::{Case, Outcome};
use super::signatures::Class;

/// The host ran out.
pub(super) fn host(case: &Case) -> Finding {
    let event = case.event();
    let killed = event.is_some_and(|event| event.signature.class == Class::Killed);
    let fixes: &[u8] = if case.software == "ollama" { &[9, 2] } else { &[] };
    let confidence = if killed { Confidence::Likely } else { Confidence::Certain };
    let meaning = event.map_or("", |event| event.signature.meaning);
    let mut finding = Finding::new(Diagnosis::HostRamNotVram, confidence, fixes, meaning);
    let get = |slot| case.figures.get(slot);
    if let Some(wanted) = get(Slot::HostRequested) {
        let there = get(Slot::HostAvailable)
            .map(|n| format!(", {} was available", show(n)))
            .unwrap_or_default();
        finding.why.push(format!("{} of host memory was asked for{there}", show(wanted)));
    }
    if let Some(rss) = get(Slot::HostRss) {
        finding.why.push(format!("the killed process had {} in RAM", show(rss)));
    }
    if let (Some(requested), Some(free)) = (get(Slot::Requested), get(Slot::Free))
        && free > requested
    {
        finding.why.push(format!(
            "the GPU had {} free when {} was refused: it was not the GPU that was full",
            show(free),
            show(requested)
        ));
    }
    finding
}

/// Memory did not run out, or not for good.
pub(super) fn not_oom(case: &Case) -> Finding {
    let event = case.event();
    let meaning = event.map_or("", |event| event.signature.meaning);
    let fixes: &[u8] =
        if event.is_some_and(|event| event.signature.id == "vllm.profiling") { &[3] } else { &[] };
    let text = match case.outcome {
        Outcome::Recovered => {
            "memory ran out, the program caught it, and it went on: nothing has to be done"
                .to_owned()
        }
        Outcome::Mention => {
            "the words stand in text about such errors, not in an error of this program".to_owned()
        }
        Outcome::Nothing => "no message that is known was found".to_owned(),
        _ => meaning.to_owned(),
    };
    let mut finding = Finding::new(Diagnosis::NotOom, Confidence::Likely, fixes, text);
    let short =
        event.is_some_and(|e| e.signature.class.is_gpu() || e.signature.class == Class::Recovered);
    if case.outcome == Outcome::Recovered && short {
        finding = finding.because("a shortage that the program got over");
    }
    if case.outcome == Outcome::Recovered && !meaning.is_empty() {
        finding.why.push(meaning.to_owned());
    }
    finding
}
