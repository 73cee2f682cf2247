//! One message of every kind that is known, as short as it comes, with what must be read from it.

#[path = "explain_formats/frameworks.rs"]
mod frameworks;
#[path = "explain_formats/host.rs"]
mod host;
#[path = "explain_formats/programs.rs"]
mod programs;

use std::fmt::Write as _;

use vramlens::oom::{self, Diagnosis as D};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

#[derive(Clone, Copy)]
struct Case {
    text: &'static str,
    software: &'static str,
    gpu: bool,
    diagnosis: Option<D>,
    requested: Option<u64>,
}

const fn case(
    text: &'static str,
    software: &'static str,
    gpu: bool,
    diagnosis: Option<D>,
    requested: Option<u64>,
) -> Case {
    Case { text, software, gpu, diagnosis, requested }
}

const BATCH: Option<D> = Some(D::BatchOrActivationTooBig);
const KV: Option<D> = Some(D::KvCacheTooBig);
const MODEL: Option<D> = Some(D::ModelTooBig);
const HOST: Option<D> = Some(D::HostRamNotVram);
const NOT: Option<D> = Some(D::NotOom);
const OTHER: Option<D> = Some(D::OtherProcessHoldsMemory);

#[test]
fn every_kind_of_message_is_recognised() {
    let mut wrong = String::new();
    for case in [frameworks::CASES, programs::CASES, host::CASES].concat() {
        let got = oom::explain(case.text.as_bytes());
        let alike = got.software == case.software
            && got.is_gpu_oom == case.gpu
            && case.diagnosis.is_none_or(|diagnosis| diagnosis == got.diagnosis)
            && got.requested_bytes == case.requested
            && got.recognised;
        if !alike {
            let head: String = case.text.chars().take(110).collect();
            writeln!(
                wrong,
                "{head}\n   got {} gpu={} {:?} {:?} by {:?}, want {} gpu={} {:?} {:?}",
                got.software,
                got.is_gpu_oom,
                got.diagnosis,
                got.requested_bytes,
                got.decisive.map(|quote| quote.signature),
                case.software,
                case.gpu,
                case.diagnosis,
                case.requested
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
