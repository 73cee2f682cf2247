//! The arithmetic against what llama.cpp itself computes for the same models.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod fit_gen;

use serde_json::Value as Json;
use vramlens::model::Model;
use vramlens::model::best::Question;
use vramlens::model::compute::Era;
use vramlens::model::plan::{Placement, Settings, place};

const ORACLE: &str = include_str!("corpus/fit/oracle.json");
const MIB: f64 = 1_048_576.0;

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

/// Errors of a group, for the table.
#[derive(Default)]
struct Group(Vec<(f64, String)>);

impl Group {
    fn add(&mut self, what: &str, predicted: f64, measured: f64, relative: bool) {
        let error = (predicted - measured).abs();
        let error = if relative { error / measured.max(1e-9) * 100.0 } else { error };
        self.0.push((error, format!("{what}: {predicted:.2} for {measured:.2}")));
    }

    /// Median, 95th percentile, worst.
    fn print(&mut self, name: &str, unit: &str) -> (f64, f64, f64) {
        self.0.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = |q: f64| self.0[((self.0.len() - 1) as f64 * q).round() as usize].0;
        let row = (at(0.5), at(0.95), at(1.0));
        let worst = self.0.last().map_or("", |w| w.1.as_str());
        println!(
            "{name:<26} n {:>4}  median {:>7.3}{unit}  p95 {:>7.3}{unit}  worst {:>7.3}{unit}  {worst}",
            self.0.len(),
            row.0,
            row.1,
            row.2,
        );
        row
    }
}

fn models() -> (tempfile::TempDir, Vec<(&'static str, Model)>) {
    const NAMES: [&str; 9] = [
        "llama31-8b",
        "llama32-3b",
        "llama2-7b",
        "qwen3-4b",
        "gemma3-27b",
        "gpt-oss-20b",
        "qwen3-30b-a3b",
        "qwen36-27b",
        "deepseek-v3",
    ];
    let folder = tempfile::tempdir().unwrap();
    let models = NAMES.map(|name| {
        let path = fit_gen::saved(folder.path(), name, &fit_gen::oracle_model(name));
        (name, Model::open(path.to_str().unwrap()).unwrap())
    });
    (folder, models.into())
}

fn find<'a>(models: &'a [(&str, Model)], name: &str) -> &'a Model {
    &models.iter().find(|m| m.0 == name).unwrap().1
}

/// The oracle's device is no CUDA device.
fn settings(context: u64, ubatch: u64) -> Settings {
    let mut s = Settings::new(context);
    s.cache.ubatch = ubatch;
    s.compute.cuda = false;
    s
}

fn placed(model: &Model, settings: &Settings) -> Placement {
    place(&model.shape, &model.weights, settings)
}

#[test]
fn every_row_of_the_oracle() {
    let (_folder, models) = models();
    let oracle: Json = serde_json::from_str(ORACLE).unwrap();
    let (mut weights, mut cache, mut compute, mut host) = Default::default();
    let groups: [&mut Group; 4] = [&mut weights, &mut cache, &mut compute, &mut host];
    let [weights, cache, compute, host] = groups;
    for row in oracle["rows"].as_array().unwrap() {
        let int = |i: usize| row[i].as_u64().unwrap();
        let float = |i: usize| row[i].as_f64().unwrap();
        let name = row[0].as_str().unwrap();
        let mut s = settings(int(1), int(2));
        s.cache.slots = int(3);
        s.compute.outputs = Some(if int(4) == 0 { u64::MAX } else { int(4) });
        s.compute.flash = int(5) == 1;
        s.cache.keys = row[6].as_str().unwrap().parse().unwrap();
        s.cache.values = s.cache.keys;
        let placed = placed(find(&models, name), &s);
        let gpu = placed.gpus[0];
        let what = format!("{name} {row}");
        weights.add(&what, mib(gpu.weights), float(7), false);
        weights.add(&what, mib(placed.host.weights), float(10), false);
        cache.add(&what, mib(gpu.context()), float(8), false);
        compute.add(&what, mib(gpu.compute.bytes()), float(9), true);
        host.add(&what, mib(placed.host.compute), float(12), true);
    }
    let exact = weights.print("weights", " MiB");
    assert!(exact.2 <= 0.011, "weights are exact");
    let exact = cache.print("cache and state", " MiB");
    assert!(exact.2 <= 0.011, "the cache is exact");
    let (median, p95, _) = compute.print("compute, GPU", " %");
    assert!(median <= 3.0 && p95 <= 10.0);
    host.print("compute, host", " %");
}

#[test]
fn layers_on_the_gpu() {
    let (_folder, models) = models();
    let oracle: Json = serde_json::from_str(ORACLE).unwrap();
    let mut compute = Group::default();
    for row in oracle["ngl"].as_array().unwrap() {
        let name = row["model"].as_str().unwrap();
        let mut s = settings(row["n_ctx"].as_u64().unwrap(), 512);
        s.gpu_layers = row["ngl"].as_u64().unwrap();
        let placed = placed(find(&models, name), &s);
        let gpu = placed.gpus[0];
        let measured = |i: usize| row["gpu_mib"][i].as_f64().unwrap();
        let what = format!("{name} -ngl {}", s.gpu_layers);
        assert!((mib(gpu.weights) - measured(0)).abs() < 0.02, "{what}: {}", mib(gpu.weights));
        assert!((mib(gpu.context()) - measured(1)).abs() < 0.01, "{what}");
        compute.add(&what, mib(gpu.compute.bytes()), measured(2), false);
    }
    let (_, _, worst) = compute.print("compute, -ngl", " MiB");
    assert!(worst < 0.1);
}

#[test]
fn experts_on_the_cpu() {
    let (_folder, models) = models();
    let model = find(&models, "qwen3-30b-a3b");
    let mut s = settings(4096, 512);
    s.cpu_experts = u64::MAX;
    let gpu = placed(model, &s).gpus[0];
    assert!((mib(gpu.weights) - 778.23).abs() < 0.01, "{}", mib(gpu.weights));
    assert!((mib(gpu.context()) - 384.0).abs() < 0.01);
    assert!((mib(gpu.compute.bytes()) - 52.01).abs() < 0.1, "{}", mib(gpu.compute.bytes()));
}

/// With room for exactly what llama.cpp computed, that many layers are the best; with 1 MiB less,
/// one layer fewer.
#[test]
fn best_layers_by_the_oracle() {
    let (_folder, models) = models();
    let oracle: Json = serde_json::from_str(ORACLE).unwrap();
    let (mut right, mut all) = (0, 0);
    for row in oracle["ngl"].as_array().unwrap() {
        let ngl = row["ngl"].as_u64().unwrap();
        let model = find(&models, row["model"].as_str().unwrap());
        let sum: f64 = (0..3).map(|i| row["gpu_mib"][i].as_f64().unwrap()).sum();
        let s = settings(row["n_ctx"].as_u64().unwrap(), 512);
        let best = |mib: f64| {
            let budgets = [(mib.max(0.0) * MIB) as u64];
            Question { shape: &model.shape, weights: &model.weights, budgets: &budgets }
                .gpu_layers(&s)
        };
        // The figures are printed with two digits.
        let cases = [(sum + 0.15, Some(ngl)), (sum - 1.0, ngl.checked_sub(1))];
        for (mib, expected) in cases.into_iter().filter(|case| case.1.is_some()) {
            all += 1;
            right += u32::from(best(mib) == expected);
        }
    }
    println!("best -ngl: {right} of {all}");
    assert!(right * 100 >= all * 95, "{right} of {all}");
}

#[test]
fn more_room_is_never_worse() {
    let (_folder, models) = models();
    for name in ["llama32-3b", "qwen3-30b-a3b", "gemma3-27b"] {
        let model = find(&models, name);
        let mut last = (0, 0, u64::MAX);
        for gib in (1..40).map(|n| n << 29) {
            let budgets = [gib];
            let question =
                Question { shape: &model.shape, weights: &model.weights, budgets: &budgets };
            let s = Settings::new(8192);
            let layers = question.gpu_layers(&s).unwrap_or(0);
            let experts = question.cpu_experts(&s).unwrap_or(u64::MAX);
            let now = (layers, question.context(&s), experts);
            assert!(now.0 >= last.0 && now.1 >= last.1 && now.2 <= last.2, "{name} {gib}");
            let context = now.1;
            if context > 0 {
                assert!(question.fits(&Settings::new(context)), "{name} {context}");
            }
            last = now;
        }
    }
}

/// The two parts of a model on two equal GPUs, as a log shows them (t006).
#[test]
fn two_equal_gpus() {
    let (_folder, models) = models();
    let mut s = settings(32_768, 512);
    s.split = vec![1, 1];
    s.compute.era = Era::IkLlama;
    let placed = placed(find(&models, "qwen3-30b-a3b"), &s);
    let cache: Vec<f64> = placed.gpus.iter().map(|gpu| mib(gpu.context())).collect();
    assert_eq!(cache, [1600.0, 1472.0]);
    let last = mib(placed.gpus[1].compute.bytes());
    assert!((last - 444.77).abs() < 1.0, "{last}");
}
