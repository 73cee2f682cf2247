//! What is exported of views, and that rules and dashboard ask for nothing else.
#![allow(clippy::unwrap_used, clippy::panic, clippy::float_cmp, reason = "tests of whole numbers")]

#[allow(unused_imports, reason = "shared with other tests")]
mod scenes;
#[path = "record/ticks.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod ticks;
#[path = "report/views.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod views;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use vramlens::analyze::{Fragmentation, Freshness, Growth, View};
use vramlens::ids::{CudaOrdinal, Pid, Stamp};
use vramlens::report::prometheus::{Exposition, Format, Own, names, render};
use vramlens::rules::Finding;
use vramlens::sample::*;
use vramlens::units::*;

fn own() -> Own {
    Own {
        cpu_seconds: Reading::Value(1.25),
        resident_bytes: Reading::Value(15_000_000),
        ticks: 60,
        failures: 1,
        requests: 4,
        refused: 2,
        cut_connections: 3,
    }
}

fn page(view: &View, findings: &[Finding], most_holders: usize, format: Format) -> String {
    render(&Exposition { view, findings, own: &own(), most_holders }, format)
}

fn prometheus(view: &View) -> String {
    page(view, &[], 20, Format::Prometheus)
}

fn samples(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter(|line| !line.starts_with('#'))
}

fn name(sample: &str) -> &str {
    sample.split(['{', ' ']).next().unwrap()
}

fn server() -> ServerSample {
    ServerSample {
        at: Stamp { boot_ms: 1, wall_ms: 1 },
        software: ServerSoftware::Vllm,
        port: 8000,
        kv_used: Some(Percent(12.0)),
        kv_tokens: None,
        running: None,
        waiting: None,
        slots: None,
        models: Vec::new(),
        devices: Vec::new(),
    }
}

/// One whose every figure is known.
fn allocator() -> AllocatorSample {
    let bytes = |n| Reading::Value(Bytes::gib(n));
    AllocatorSample {
        at: Stamp { boot_ms: 1, wall_ms: 1 },
        basis: AllocatorBasis::Blocks,
        devices: vec![AllocatorDevice {
            ordinal: CudaOrdinal(0),
            allocated: Bytes::gib(5),
            reserved: Bytes::gib(8),
            active: bytes(5),
            inactive_split: bytes(2),
            requested: bytes(5),
            retries: Reading::Value(1),
            ooms: Reading::Value(2),
            segments: Reading::Value(9),
            free: Reading::Absent(Why::NotAsked),
            private_pools: bytes(0),
            expandable_segments: Reading::Value(false),
            peak_allocated: bytes(6),
            peak_reserved: bytes(8),
            gpu: None,
        }],
        backend: AllocatorBackend::Native,
    }
}

/// A view in which everything is known.
fn full() -> View {
    let mut view = views::busy();
    view.procs_age_ms = Some(250);
    for gpu in &mut view.gpus {
        gpu.growth = Growth::Trend {
            per_minute: BytesPerMinute(1e6),
            error: BytesPerMinute(1e3),
            full_in_ms: Some([60_000, 120_000, 240_000]),
        };
        gpu.sample.power_limit = Reading::Value(Milliwatts(700_000));
        gpu.sample.memory_clock = Reading::Value(Megahertz(3201));
        gpu.sample.fan = Reading::Value(Percent(31.0));
        gpu.sample.throttle = Reading::Value(Throttle(4));
        let traffic = Pcie { rx: BytesPerSecond(1024), tx: BytesPerSecond(2048) };
        gpu.sample.pcie = Reading::Value(traffic);
        gpu.xids.watched = Reading::Value(());
        gpu.xids.counts = [(31, 2), (79, 1)].into();
    }
    // One without memory of its own, so that its metric is there too.
    view.gpus.extend(scenes::shared().gpus);
    for holder in &mut view.holders {
        holder.growth = Growth::Steady;
        holder.fragmentation = Fragmentation::Blocks {
            cached: Bytes::gib(3),
            reusable: Bytes::gib(1),
            fragmented: Bytes::gib(2),
            request: Bytes::mib(64),
            largest_request: Bytes::mib(32),
        };
        holder.allocator = Some(Reading::Value(allocator()));
        holder.server = Some(Reading::Value(server()));
        if let Some(process) = &mut holder.process {
            let process = Arc::make_mut(process);
            process.cpu = Reading::Value(Percent(97.3));
            process.rss = Reading::Value(Bytes::gib(4));
        }
    }
    view
}

#[test]
fn a_page_reads_as_it_should() {
    insta::assert_snapshot!(page(&views::busy(), &views::findings(), 2, Format::OpenMetrics));
}

#[test]
fn every_metric_is_exported_where_it_is_known() {
    let page = page(&full(), &views::findings(), 1, Format::Prometheus);
    let exported: BTreeSet<&str> = samples(&page).map(name).collect();
    let known = names();
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    assert_eq!(exported, known);
}

#[test]
fn faults_are_counted_by_number() {
    let page = page(&full(), &[], 1, Format::OpenMetrics);
    assert!(page.contains("# TYPE vramlens_gpu_xid_errors counter"), "{page}");
    let counted = page.lines().filter(|line| line.starts_with("vramlens_gpu_xid_errors_total{"));
    let counted: Vec<&str> = counted.collect();
    assert!(counted[0].contains("xid=\"31\"") && counted[0].ends_with(" 2"), "{counted:?}");
    assert!(counted[1].contains("xid=\"79\"") && counted[1].ends_with(" 1"), "{counted:?}");
}

#[test]
fn no_series_is_there_twice_and_no_value_is_no_number() {
    let mut all = vec![views::busy(), views::mig(), views::ghost(), views::empty()];
    all.extend([views::hostile(), full(), scenes::many(8, 40), scenes::mig()]);
    all.extend([scenes::stalled(), scenes::lost(), scenes::unified(), scenes::nothing()]);
    for view in &all {
        for format in [Format::Prometheus, Format::OpenMetrics] {
            let page = page(view, &scenes::findings(), 5, format);
            let mut seen = BTreeSet::new();
            for sample in samples(&page) {
                let (series, value) = sample.rsplit_once(' ').unwrap();
                assert!(seen.insert(series.to_owned()), "{series} is there twice");
                assert!(value.parse::<f64>().unwrap().is_finite(), "{sample}");
            }
            assert!(!page.chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}

#[test]
fn the_number_of_series_is_bounded_and_sums_stay_right() {
    let view = scenes::many(2, 300);
    let sum = |page: &str| -> f64 {
        let memory = samples(page).filter(|s| name(s) == "vramlens_holder_memory_bytes");
        memory.map(|s| s.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    };
    let all = page(&view, &[], 10_000, Format::Prometheus);
    for most in [0, 1, 7] {
        let some = page(&view, &[], most, Format::Prometheus);
        assert_eq!(sum(&some), sum(&all), "with {most}");
        let count = |wanted| samples(&some).filter(|s| name(s) == wanted).count();
        assert_eq!(count("vramlens_holder_memory_bytes"), 2 * (most + 1));
        assert_eq!(count("vramlens_holder_info"), 2 * most);
        assert!(some.lines().count() < 400 + most * 40);
    }
}

#[test]
fn what_is_absent_has_no_sample() {
    let stalled = prometheus(&scenes::stalled());
    assert!(matches!(scenes::stalled().freshness, Freshness::Stalled { .. }));
    assert!(stalled.contains("\nvramlens_up 0\n"), "{stalled}");
    assert!(!stalled.contains("vramlens_gpu_") && !stalled.contains("vramlens_holder"));
    let unified = prometheus(&scenes::unified());
    assert!(!unified.contains("vramlens_gpu_memory_total_bytes"), "{unified}");
    assert!(unified.contains("vramlens_gpu_up{"), "{unified}");
    let shared = prometheus(&scenes::shared());
    for part in ["gpu", "host", "available"] {
        let is = |line: &str| {
            line.starts_with("vramlens_gpu_unified_memory_bytes{")
                && line.contains(&format!("part=\"{part}\""))
        };
        assert!(shared.lines().any(is), "{part}: {shared}");
    }
    let resting = prometheus(&scenes::resting());
    let asleep = samples(&resting).filter(|s| name(s) == "vramlens_gpu_asleep");
    let asleep: Vec<_> = asleep.map(|s| s.ends_with(" 1")).collect();
    assert_eq!(asleep, [true, true, false]);
    let lost = prometheus(&scenes::lost());
    assert!(samples(&lost).any(|s| name(s) == "vramlens_gpu_up" && s.ends_with(" 0")), "{lost}");
    // Nobody is told to be on it: that is no count of nobody.
    let mut blind = scenes::resting();
    let gpu = blind.gpus.last_mut().unwrap();
    let own = format!("uuid=\"{}\"", gpu.sample.uuid.0);
    gpu.sample.processes = Reading::Absent(Why::NoPermission);
    let blind = prometheus(&blind);
    let seen = prometheus(&scenes::resting());
    for metric in
        ["vramlens_gpu_zombies", "vramlens_gpu_zombie_memory_bytes", "vramlens_gpu_holders"]
    {
        let has = |text: &str| samples(text).any(|s| name(s) == metric && s.contains(&own));
        assert!(has(&seen) && !has(&blind), "{metric}: {blind}");
    }
    let nothing = prometheus(&scenes::nothing());
    assert!(!nothing.contains("vramlens_gpu"), "{nothing}");
    // Of one of the two the allocator was not read.
    let busy = prometheus(&views::busy());
    let read = samples(&busy).filter(|s| name(s) == "vramlens_holder_allocator_reserved_bytes");
    assert_eq!(read.count(), 1, "{busy}");
}

#[test]
fn hostile_names_stay_inside_their_labels() {
    let mut view = views::busy();
    view.holders[0].pid = Pid(7);
    Arc::make_mut(view.holders[0].process.as_mut().unwrap()).comm =
        "a\"} 1\nvramlens_up 0\u{1b}[2J\\".to_owned();
    let page = prometheus(&view);
    assert_eq!(samples(&page).filter(|sample| name(sample) == "vramlens_up").count(), 1);
    assert!(page.contains("comm=\"a\\\"} 1␊vramlens_up 0␛[2J\\\\\""), "{page}");
}

/// Names in a text that begin as ours do; recorded ones hold a colon.
fn asked_for(text: &str) -> BTreeSet<&str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c: char| !part(c)).filter(|word| !word.contains(':'));
    words.filter(|word| word.starts_with("vramlens_")).collect()
}

fn asset(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn rules_and_dashboard_ask_only_for_what_is_exported() {
    let known = names();
    for file in ["recording.yml", "alerts.yml", "tests.yml"] {
        let text = asset(&format!("prometheus/{file}"));
        let asked = asked_for(&text);
        assert!(asked.len() > 3, "{file}");
        for name in asked {
            assert!(known.iter().any(|known| known == name), "{file} asks for {name}");
        }
    }
    let dashboard: Value = serde_json::from_str(&asset("grafana/vramlens.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    let mut asked = 0;
    for panel in panels {
        let title = &panel["title"];
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let names = asked_for(expression);
            assert!(!names.is_empty(), "{title}: {expression}");
            for name in names {
                assert!(known.iter().any(|known| known == name), "{title} asks for {name}");
                asked += 1;
            }
        }
    }
    assert!(asked > 20);
    let query = dashboard["templating"]["list"][1]["query"]["query"].as_str().unwrap();
    assert!(known.iter().any(|known| query.contains(known.as_str())));
}

#[test]
fn every_recorded_name_is_of_an_exported_one() {
    let known = names();
    for line in asset("prometheus/recording.yml").lines() {
        let Some((_, record)) = line.split_once("record: ") else { continue };
        let metric = record.split(':').find(|part| part.starts_with("vramlens_")).unwrap();
        let of = |known: &String| known.starts_with(metric);
        assert!(known.iter().any(of), "{record} is of no metric");
    }
}

#[test]
fn the_service_starts_what_there_is() {
    let unit = asset("vramlens.service");
    assert!(unit.contains("Type=notify"));
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let arguments = start.split(' ').skip(1).map(str::to_owned);
    let typed = std::iter::once("vramlens".to_owned()).chain(arguments);
    let cli = <vramlens::cli::args::Cli as clap::Parser>::try_parse_from(typed);
    assert!(cli.is_ok(), "{:?}", cli.err());
}
