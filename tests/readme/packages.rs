//! What packages and templates name is there.

use std::path::Path;

use toml::{Table, Value};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn metadata(tool: &str) -> Table {
    let cargo: Table = toml::from_str(&read("Cargo.toml")).unwrap();
    cargo["package"]["metadata"][tool].as_table().unwrap().clone()
}

/// Files that a pattern such as `assets/man/*.1` means.
fn files(pattern: &str) -> Vec<String> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let Some((start, end)) = name.split_once('*') else {
        let there = root().join(pattern).is_file();
        return there.then(|| pattern.to_owned()).into_iter().collect();
    };
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(start) && name.ends_with(end)).collect()
}

/// Sources and destinations of a package's files.
fn assets(tool: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = metadata(tool)["assets"].as_array().unwrap().clone();
    list.iter()
        .map(|asset| match asset {
            Value::Array(parts) => (text(&parts[0]), text(&parts[1])),
            other => (text(&other["source"]), text(&other["dest"])),
        })
        .collect()
}

#[test]
fn packages_name_files_that_are_there_and_leave_nothing_out() {
    for tool in ["deb", "generate-rpm"] {
        let assets = assets(tool);
        for (source, _) in &assets {
            // Made by `cargo build --release`.
            if source != "target/release/vramlens" {
                assert!(!files(source).is_empty(), "{tool}: {source} is not there");
            }
        }
        let to = |end: &str| assets.iter().any(|(_, to)| to.contains(end));
        for place in ["usr/bin/", "man1/", "bash-completion/completions/vramlens", "zsh/", "fish/"]
        {
            assert!(to(place), "{tool}: nothing goes to {place}");
        }
        for source in ["assets/vramlens.service", "config.example.toml", "CHANGELOG.md"] {
            assert!(assets.iter().any(|(from, _)| from == source), "{tool}: {source}");
        }
    }
    assert_eq!(metadata("deb")["license-file"][0].as_str(), Some("LICENSE"));
    assert!(assets("generate-rpm").iter().any(|(from, _)| from == "LICENSE"));
}

#[test]
fn the_address_of_a_release_has_only_parts_that_binstall_knows() {
    let table = metadata("binstall");
    for key in ["pkg-url", "bin-dir"] {
        let text = table[key].as_str().unwrap();
        for part in text.split('{').skip(1).map(|rest| rest.split('}').next().unwrap().trim()) {
            let known = ["repo", "name", "version", "target", "bin", "binary-ext"];
            assert!(known.contains(&part), "{key}: {part}");
        }
    }
    assert_eq!(table["pkg-fmt"].as_str(), Some("tgz"));
}

#[test]
fn what_cargo_install_needs_is_in_the_package() {
    let cargo: Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let excluded = cargo["package"]["exclude"].as_array().unwrap();
    for file in
        ["assets/demo.vrt", "assets/fixes/1-context.md", "LICENSE", "README.md", "Cargo.lock"]
    {
        assert!(root().join(file).exists(), "{file}");
        let out = |path: &Value| file.starts_with(path.as_str().unwrap());
        assert!(!excluded.iter().any(out), "{file} is left out of the package");
    }
}

#[test]
fn templates_ask_for_what_helps_and_the_workflow_runs_everything() {
    for name in ["bug", "wrong-number"] {
        let text = read(&format!(".github/ISSUE_TEMPLATE/{name}.yml"));
        assert!(text.contains("vramlens --version --verbose") && text.contains("vramlens doctor"));
    }
    assert!(read(".github/ISSUE_TEMPLATE/message.yml").contains("vramlens explain"));
    assert!(read(".github/ISSUE_TEMPLATE/feature.yml").contains("label:"));
    assert!(read(".github/DISCUSSION_TEMPLATE/q-a.yml").contains("body:"));
    assert!(read(".github/PULL_REQUEST_TEMPLATE.md").contains(".ci/run"));
    let workflow = read(".github/workflows/ci.yml");
    assert!(workflow.lines().any(|line| line.trim() == "- run: .ci/run"));
}
