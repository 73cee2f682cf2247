//! Where every dependency comes from and under which licence, against `.deny.toml`: what
//! `cargo deny check licenses sources` says in `.ci/run`, without it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn rules() -> toml::Table {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/.deny.toml");
    std::fs::read_to_string(file).unwrap().parse().unwrap()
}

fn texts(value: &toml::Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Whether an expression (SPDX) can be met with these licences: of `OR` one, of `AND` both.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let plain = expression.replace(['(', ')'], " ").replace('/', " OR ");
    // No package nests an `OR` below an `AND` otherwise than `(A OR B) AND C`.
    plain
        .split(" AND ")
        .all(|all| all.split(" OR ").map(str::trim).any(|licence| allowed.contains(licence)))
}

#[test]
fn every_licence_is_allowed_and_every_source_is_the_registry() {
    let rules = rules();
    let allowed = texts(&rules["licenses"]["allow"]);
    let registries = texts(&rules["sources"]["allow-registry"]);
    let mut wrong = Vec::new();
    let all = packages();
    assert!(all.len() > 50, "the dependencies were not found");
    for package in &all {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or("none"));
        if !is_allowed(licence, &allowed) {
            wrong.push(format!("{name}: {licence}"));
        }
        let source = package["source"].as_str();
        let known = source.is_none_or(|source| {
            registries.iter().any(|registry| source == format!("registry+{registry}"))
        });
        // Without a source it is this package itself.
        if !known || (source.is_none() && name != "vramlens") {
            wrong.push(format!("{name} comes from {source:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_version_is_left_open() {
    let all = packages();
    let own = all.iter().find(|package| package["name"] == "vramlens").unwrap();
    for dependency in own["dependencies"].as_array().unwrap() {
        assert_ne!(dependency["req"], "*", "{}", dependency["name"]);
    }
}

#[test]
fn the_referee_reads_expressions() {
    let allowed: BTreeSet<String> = ["MIT", "Unicode-3.0"].map(ToOwned::to_owned).into();
    assert!(is_allowed("Apache-2.0 OR MIT", &allowed) && is_allowed("MIT/Apache-2.0", &allowed));
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
    assert!(!is_allowed("MIT AND GPL-3.0", &allowed) && !is_allowed("none", &allowed));
}

/// The threat model names what holds it up; a test that is renamed leaves no hollow word.
#[test]
fn every_test_that_the_threat_model_names_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("assets/docs/security.md")).unwrap();
    let named: Vec<_> = page.split('`').filter(|text| text.starts_with("tests/")).collect();
    let mut found = 0;
    for (file, test) in named.iter().filter_map(|text| text.split_once("::")) {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(text.contains(&format!("fn {test}(")), "{file}::{test}");
        found += 1;
    }
    assert!(found >= 20, "{found} tests are named");
}
