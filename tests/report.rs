//! Reports: what they say, that it adds up, and that nothing hostile gets through.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "report/schema.rs"]
mod schema;
#[path = "record/ticks.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod ticks;
#[path = "report/views.rs"]
mod views;

use serde_json::Value;
use vramlens::analyze::xid::{self, XidSeen};
use vramlens::report::json::{SCHEMA, Snapshot};
use vramlens::report::triage::{self, Triage};
use vramlens::report::{Style, text};
use vramlens::rules::{Provenance, Saving, Wanted, closest};
use vramlens::sample::{Reading, ServedModel, ServerSample, ServerSoftware, Why};
use vramlens::units::Milliwatts;

fn hide(arguments: &[String]) -> Vec<String> {
    arguments.iter().map(|argument| argument.replace("hunter2", "***")).collect()
}

fn style() -> Style {
    Style::new(hide)
}

#[test]
fn a_triage_reads_as_it_should() {
    insta::assert_snapshot!(triage::text(&views::busy(), &views::findings(), &style()));
}

#[test]
fn a_triage_of_a_ghost_names_its_survivors() {
    insta::assert_snapshot!(triage::text(&views::ghost(), &[], &style()));
}

#[test]
fn a_mig_instance_has_a_number_of_its_own() {
    let text = triage::text(&views::mig(), &[], &style());
    assert!(text.contains("\nGPU 0:7  NVIDIA H200 MIG 1g.18gb"), "{text}");
    assert!(text.contains("\n  0:7    40011  bo"), "{text}");
    assert!(text.contains("0 GPUs"), "{text}");
}

#[test]
fn one_frame_of_text() {
    insta::assert_snapshot!(text::frame(&views::busy(), &Style { width: 100, ..style() }));
}

#[test]
fn ascii_is_ascii() {
    let plain = Style { ascii: true, ..style() };
    for view in [views::busy(), views::ghost(), views::hostile(), views::empty(), views::mig()] {
        let all = text::frame(&view, &plain) + &triage::text(&view, &views::findings(), &plain);
        assert!(all.is_ascii(), "{all}");
    }
    insta::assert_snapshot!(text::frame(&views::ghost(), &plain));
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    let view = views::hostile();
    let mut findings = views::findings();
    findings[0].headline = "\u{1b}[31mred\r\n  2  forged".to_owned();
    findings[0].fixes[0].line = Some("true\nrm -rf /".to_owned());
    for width in [20, 80, 200] {
        let style = Style { width, ..style() };
        let all = text::frame(&view, &style) + &triage::text(&view, &findings, &style);
        assert!(!all.chars().any(|c| c != '\n' && c.is_control()), "{all}");
        assert!(!all.contains('\u{202e}') && !all.contains("hunter2"));
        assert_eq!(all.lines().filter(|line| line.starts_with("FINDINGS")).count(), 1);
        assert!(!all.lines().any(|line| line.starts_with("rm") || line.starts_with("  2  forged")));
    }
    insta::assert_snapshot!(triage::text(&view, &[], &style()));
    let json = serde_json::to_string(&Triage::new(&view, &findings, hide)).unwrap();
    assert!(!json.contains("hunter2") && !json.contains("\\u001b") && !json.contains("\\n"));
}

#[test]
fn no_line_is_wider_than_asked() {
    for view in [views::busy(), views::ghost(), views::hostile(), views::empty(), views::mig()] {
        for width in [40, 80, 133] {
            let style = Style { width, ..style() };
            let all = text::frame(&view, &style) + &triage::text(&view, &[], &style);
            for line in all.lines() {
                // Fixed columns of the tables alone need more than 40.
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn a_snapshot_in_json() {
    let snapshot = Snapshot { version: "[version]", ..Snapshot::new(&views::busy(), hide) };
    assert_eq!(snapshot.schema, SCHEMA);
    insta::assert_json_snapshot!(snapshot);
}

#[test]
fn what_was_read_before_the_look_has_its_age() {
    let mut view = views::busy();
    let sample = &mut view.gpus[0].sample;
    sample.earlier.details_boot_ms = Some(view.at.boot_ms - 2_120);
    sample.earlier.pcie_boot_ms = Some(view.at.boot_ms - 3_120);
    let json = serde_json::to_value(Snapshot::new(&view, hide)).unwrap();
    let gpu = &json["gpus"][0];
    assert_eq!(gpu["details_age_ms"], 2_120);
    // Of this look, and not there at all.
    assert_eq!(gpu["lists_age_ms"], json["gpus_age_ms"]);
    assert_eq!(gpu["settings_age_ms"], json["gpus_age_ms"]);
    assert_eq!(gpu["pcie"]["age_ms"], gpu["pcie"]["rx_bytes_per_second"]);
    assert_eq!(gpu["pcie"]["age_ms"]["absent"], "not_asked");
}

#[test]
fn a_limit_that_is_old_says_so_in_the_report() {
    let mut view = views::busy();
    let sample = &mut view.gpus[0].sample;
    sample.power = Reading::Value(Milliwatts(612_000));
    sample.power_limit = Reading::Value(Milliwatts(700_000));
    view.at.boot_ms += 1_000_000;
    sample.earlier.settings_boot_ms = Some(view.at.boot_ms - 9_000);
    let style = Style { width: 100, ..style() };
    assert!(text::frame(&view, &style).contains("612/700 W  "));
    view.gpus[0].sample.earlier.settings_boot_ms = Some(view.at.boot_ms - 300_000);
    assert!(text::frame(&view, &style).contains("612/700 W (limit 4m old)"));
}

#[test]
fn the_schema_file_says_the_same_as_the_program() {
    let file = include_str!("../assets/snapshot.schema.json");
    let schema: Value = serde_json::from_str(file).unwrap();
    for view in [views::busy(), views::ghost(), views::hostile(), views::empty(), views::mig()] {
        let snapshot = serde_json::to_value(Snapshot::new(&view, hide)).unwrap();
        schema::check(&schema, &snapshot);
        let triage = serde_json::to_value(Triage::new(&view, &views::findings(), hide)).unwrap();
        schema::check(&schema, &triage);
    }
}

#[test]
fn what_triage_adds_for_a_wanted_size_is_in_the_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../assets/snapshot.schema.json")).unwrap();
    let (view, mut findings) = (views::busy(), views::findings());
    let bytes = vramlens::units::Bytes::gib(5);
    let provenance = Provenance::Reported;
    findings[0].fixes[0].saves = Some(Saving { bytes, low: bytes, high: bytes, provenance });
    let wanted = Wanted::anywhere(vramlens::units::Bytes::gib(60));
    let mut triage = serde_json::to_value(Triage::new(&view, &findings, hide)).unwrap();
    let fit = closest(&view, wanted, &findings);
    assert!(fit.as_ref().is_some_and(|fit| !fit.steps.is_empty()), "{fit:?}");
    triage["fit"] = serde_json::to_value(fit).unwrap();
    triage["would_it_fit"] = "words".into();
    schema::check(&schema, &triage);
}

#[test]
fn faults_and_servers_are_in_the_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../assets/snapshot.schema.json")).unwrap();
    let mut view = views::busy();
    view.gpus[0].xids.watched = Reading::Value(());
    view.gpus[0].xids.counts = [(31, 2)].into();
    view.gpus[0].xids.recent =
        vec![XidSeen { at: view.at, age_ms: 0, xid: xid::meaning(31), instance: (Some(3), None) }];
    for (holder, said) in view.holders.iter_mut().zip([true, false]) {
        let server = ServerSample {
            at: view.at,
            software: ServerSoftware::Vllm,
            port: 8000,
            kv_used: said.then_some(vramlens::units::Percent(12.5)),
            kv_tokens: None,
            running: Some(3),
            waiting: Some(0),
            slots: None,
            models: vec![ServedModel {
                name: "a\u{1b}model".to_owned(),
                size: None,
                in_vram: None,
                context_tokens: Some(8192),
                expires: None,
            }],
            devices: Vec::new(),
        };
        let server = if said { Reading::Value(server) } else { Reading::Absent(Why::TimedOut) };
        holder.server = Some(server);
    }
    let json = serde_json::to_value(Snapshot::new(&view, hide)).unwrap();
    schema::check(&schema, &json);
    assert_eq!(json["holders"][0]["server"]["kv_used_percent"], 12.5, "{json:#}");
    assert_eq!(json["holders"][1]["server"]["port"]["absent"], "timed_out");
    assert_eq!(json["gpus"][0]["xid"]["recent"][0]["code"], 31);
    assert!(!json.to_string().contains("\\u001b"));
}

#[test]
fn the_ledger_of_the_json_adds_up() {
    for view in [views::busy(), views::ghost()] {
        let json = serde_json::to_value(Snapshot::new(&view, hide)).unwrap();
        let ledger = &json["gpus"][0]["ledger"];
        let part = |name: &str| ledger[format!("{name}_bytes")].as_u64().unwrap_or(0);
        let sum = ["processes", "survivors", "unaccounted", "reserved", "free"].map(part);
        assert_eq!(part("total") + part("shared"), sum.iter().sum::<u64>());
    }
}

#[test]
fn notices_alone_are_clean() {
    assert!(triage::is_clean(&[]));
    assert!(triage::is_clean(&views::findings()[..1]));
    assert!(!triage::is_clean(&views::findings()));
}
