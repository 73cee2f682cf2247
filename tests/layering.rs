//! The referee of the module order: who may import whom, what the pure modules never name, how
//! long a file and a function may be, and where `unsafe` may stand.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// Lower modules first. A module imports only lower layers, and itself.
const LAYERS: [&[&str]; 9] = [
    &["units", "ids"],
    &["sample"],
    &["source", "host", "allocator", "model", "history", "record"],
    &["analyze"],
    &["oom", "fields", "rules"],
    &["report", "ui"],
    &["runtime"],
    &["cmd"],
    &["cli"],
];

/// Within a layer: the first may import the second.
const SIDEWAYS: [(&str, &str); 3] = [("ids", "units"), ("host", "allocator"), ("rules", "oom")];

/// Modules without a clock, files, environment or runtime.
const PURE: [&str; 5] = ["analyze", "rules", "report", "oom", "ui"];
const IMPURE: [&str; 9] = [
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "tokio",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
];

/// Files in which `unsafe` may stand: one small module per need.
const UNSAFE: [&str; 3] =
    ["src/source/nvml/raw.rs", "src/runtime/child.rs", "src/runtime/footprint.rs"];

/// Files of tests in which it may stand: the stand-in library, whose functions C calls, what forks,
/// and what counts allocations.
const UNSAFE_TESTS: [&str; 5] = [
    "tests/fake_nvml/",
    "tests/helper/holder.rs",
    "tests/allocator/",
    "tests/soak/",
    "tests/bench/",
];

/// Of a file, and of a function from its name to its last brace; of tests too.
const MAX_LINES: usize = 400;
const MAX_FUNCTION_LINES: usize = 60;

struct Source {
    path: String,
    module: String,
    /// Without comments and without tests.
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    files.sort();
    let found: Vec<_> = files.iter().map(|file| source(root, file)).collect();
    assert!(found.len() > 20, "the sources were not found");
    found
}

/// The path and the text of every file of code and of tests.
fn all_files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        collect(&root.join(folder), &mut files);
    }
    assert!(files.len() > 100, "the files were not found");
    files.sort();
    let name = |file: &Path| file.strip_prefix(root).unwrap().to_string_lossy().into_owned();
    files.iter().map(|file| (name(file), fs::read_to_string(file).unwrap())).collect()
}

/// The functions of a text as it is formatted, and how many lines each has.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some((before, name)) = line.trim_start().split_once("fn ") else { continue };
        let words = ["pub", "pub(super)", "pub(crate)", "const", "async", "unsafe", "extern"];
        let is_word = |word: &str| words.contains(&word) || word.starts_with('"');
        if !before.split_whitespace().all(is_word) {
            continue;
        }
        let begins = |line: &&str| line.len() - line.trim_start().len() == indent;
        let ends = |line: &&str| begins(line) && line.ends_with(['}', ';']);
        let Some(more) = lines.iter().skip(n).position(|line| ends(&line.trim_end())) else {
            continue;
        };
        found.push((name.split(['(', '<']).next().unwrap(), more + 1));
    }
    found
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn source(root: &Path, file: &Path) -> Source {
    let text = fs::read_to_string(file).unwrap();
    let path = file.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
    let first = path.split('/').nth(1).unwrap();
    let module = first.trim_end_matches(".rs").to_owned();
    // A file of tests, or the tests at the end of one.
    let tested = path.ends_with("/tests.rs") || path.contains("/tests/");
    let code = if tested { "" } else { text.split("#[cfg(test)]\nmod ").next().unwrap() };
    let code = code
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    Source { path, module, code }
}

/// The modules that a text names as `crate::name`, also within braces.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let names = match rest.strip_prefix('{') {
            Some(group) => top_level(group),
            None => vec![rest.to_owned()],
        };
        let word = |name: &String| -> String {
            name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        found.extend(names.iter().map(word).filter(|name| !name.is_empty()));
    }
    found
}

/// The parts of a group of imports, up to its closing brace.
fn top_level(group: &str) -> Vec<String> {
    let (mut depth, mut parts) = (0_usize, vec![String::new()]);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => parts.push(String::new()),
            c if depth == 0 => parts.last_mut().unwrap().push(c),
            _ => {}
        }
    }
    parts
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn may_import(from: &str, to: &str) -> bool {
    if from == to || SIDEWAYS.contains(&(from, to)) {
        return true;
    }
    match (layer(from), layer(to)) {
        (Some(from), Some(to)) => to < from,
        // An item of the crate's root is no module; `main` and `lib` stand above all.
        _ => true,
    }
}

#[test]
fn lower_modules_never_import_higher_ones() {
    let mut wrong = Vec::new();
    for source in sources() {
        for name in imports(&source.code) {
            if !may_import(&source.module, &name) {
                wrong.push(format!("{} imports {name}", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_has_its_layer() {
    for source in sources() {
        let root = ["main", "lib"].contains(&source.module.as_str());
        assert!(root || layer(&source.module).is_some(), "{} is in no layer", source.path);
    }
}

#[test]
fn pure_modules_have_no_clock_no_files_and_no_runtime() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| PURE.contains(&source.module.as_str())) {
        for name in IMPURE.iter().filter(|name| source.code.contains(**name)) {
            wrong.push(format!("{} names {name}", source.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_stay_short_enough_to_read() {
    let long: Vec<_> = all_files()
        .iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn functions_stay_short_enough_to_read() {
    let (mut long, mut seen) = (Vec::new(), 0);
    for (path, text) in all_files() {
        for (name, lines) in functions(&text) {
            seen += 1;
            if lines > MAX_FUNCTION_LINES {
                long.push(format!("{path}: {name} has {lines} lines"));
            }
        }
    }
    assert!(seen > 1_000, "the functions were not found");
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn unsafe_stands_only_where_it_is_allowed() {
    let allowed = |path: &str| UNSAFE.iter().any(|allowed| path.starts_with(allowed));
    let wrong: Vec<_> = sources()
        .iter()
        .filter(|source| !allowed(&source.path))
        .filter(|source| {
            ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "allow(unsafe_code)"]
                .iter()
                .any(|text| source.code.contains(text))
        })
        .map(|source| source.path.clone())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_stands_in_few_tests() {
    let allowed = |path: &str| {
        path == "tests/layering.rs" || UNSAFE_TESTS.iter().any(|allowed| path.starts_with(allowed))
    };
    let mut wrong = Vec::new();
    for (path, text) in all_files().into_iter().filter(|(path, _)| path.starts_with("tests/")) {
        if !allowed(&path) && (text.contains("allow(unsafe_code") || text.contains("unsafe {")) {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_referee_sees_a_foul() {
    let names =
        imports("use crate::{ui::Pane, sample::{Tick, Reading}, ids};\nlet a = crate::cmd::x;");
    assert_eq!(names, ["ui", "sample", "ids", "cmd"]);
    assert!(!may_import("analyze", "ui") && !may_import("source", "host"));
    assert!(may_import("ui", "analyze") && may_import("host", "allocator"));
    assert!(!may_import("allocator", "host") && may_import("main", "cli"));
    let text = "fn a() {}\ntrait T {\n    fn b(\n        x: u8,\n    ) -> u8;\n    pub(super) const fn \
                c() {\n        {\n        }\n    }\n}\n\npub extern \"C\" fn d<T>() {\n}\n";
    assert_eq!(functions(text), [("a", 1), ("b", 3), ("c", 4), ("d", 2)]);
}
