//! The pages: their blocks, flags, links, and the fields that they name.

use std::path::{Path, PathBuf};

use vramlens::cli::help;
use vramlens::fields::FIELDS;

/// Flags of other programs that the pages name.
const FOREIGN: &[&str] = &["--locked", "--release", "--example", "--gpus"];

/// A page in Markdown.
pub struct Page {
    pub name: String,
    pub path: PathBuf,
    pub text: String,
    pub blocks: Vec<Block>,
}

/// A fenced block.
pub struct Block {
    pub language: String,
    pub lines: Vec<String>,
}

impl Page {
    /// README.md, and what is beside the pictures.
    pub fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let docs = std::fs::read_dir(root.join("assets/docs")).unwrap();
        let mut paths: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.insert(0, root.join("README.md"));
        paths.into_iter().map(Self::read).collect()
    }

    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        let (mut blocks, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
        for line in text.lines() {
            match (line.strip_prefix("```"), &mut open) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(language), None) => {
                    open = Some(Block { language: language.trim().to_owned(), lines: Vec::new() });
                }
                (None, Some(block)) => block.lines.push(line.to_owned()),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{} has a block without an end", path.display());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Self { name, path, text, blocks }
    }

    /// Texts between backquotes, outside blocks.
    fn spans(&self) -> Vec<String> {
        let mut inside = false;
        let mut spans = Vec::new();
        for line in self.text.lines() {
            if line.starts_with("```") {
                inside = !inside;
            } else if !inside {
                spans.extend(line.split('`').skip(1).step_by(2).map(ToOwned::to_owned));
            }
        }
        spans
    }

    /// The names by which headings are linked to.
    fn anchors(&self) -> Vec<String> {
        let headings = self.text.lines().filter(|line| line.starts_with('#'));
        let anchor = |line: &str| {
            let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-');
            let text = line.trim_start_matches('#').trim().to_lowercase();
            text.chars().filter(kept).collect::<String>().replace(' ', "-")
        };
        headings.map(anchor).collect()
    }
}

impl Block {
    /// Lines to type, without comments.
    pub fn commands(&self) -> Vec<String> {
        let bare = |line: &String| line.split("  #").next().unwrap_or_default().trim().to_owned();
        self.lines
            .iter()
            .map(bare)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect()
    }

    /// What is typed in a session, and what is said to it.
    pub fn sessions(&self) -> Vec<(String, Vec<String>)> {
        let mut sessions: Vec<(String, Vec<String>)> = Vec::new();
        if self.language == "console" {
            for line in &self.lines {
                match (line.strip_prefix("$ "), sessions.last_mut()) {
                    (Some(typed), _) => sessions.push((typed.to_owned(), Vec::new())),
                    (None, Some(session)) => session.1.push(line.clone()),
                    (None, None) => panic!("{line}: nothing was typed before it"),
                }
            }
        }
        sessions
    }
}

/// Every long flag of every command.
fn flags() -> Vec<String> {
    let mut root = help::command();
    root.build();
    let long = |command: &clap::Command| {
        let names = command.get_arguments().filter_map(|arg| arg.get_long());
        names.map(|name| format!("--{name}")).collect::<Vec<_>>()
    };
    let mut all = long(&root);
    all.extend(root.get_subcommands().flat_map(long));
    all
}

#[test]
fn every_flag_that_a_page_names_exists() {
    let known = flags();
    let mut wrong = Vec::new();
    for page in Page::all() {
        let typed = page.blocks.iter().filter(|block| matches!(&*block.language, "sh" | "console"));
        let lines = typed.flat_map(|block| {
            block.lines.iter().map(|line| line.trim_start_matches("$ ").to_owned())
        });
        let own = |line: &String| line.contains("vramlens ") || line.starts_with("--");
        for line in lines.chain(page.spans()).filter(own) {
            let words = line.split(|c: char| !(c.is_alphanumeric() || c == '-'));
            let named = words.filter(|word| word.starts_with("--") && word.len() > 2);
            let strange = named.filter(|word| !FOREIGN.contains(word));
            wrong.extend(
                strange
                    .filter(|word| !known.iter().any(|flag| flag == word))
                    .map(|word| format!("{}: {word} in `{line}`", page.name)),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_within_the_repository_resolve() {
    let pages = Page::all();
    let mut wrong = Vec::new();
    for page in &pages {
        for link in page.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.path.clone()
            } else {
                page.path.parent().unwrap().join(file)
            };
            let there = match pages.iter().find(|other| other.path == target) {
                Some(other) if !anchor.is_empty() => {
                    other.anchors().iter().any(|name| name == anchor)
                }
                _ => target.exists(),
            };
            if !there {
                wrong.push(format!("{}: {link}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_field_has_its_source_named() {
    let pages = Page::all();
    let numbers = pages.iter().find(|page| page.name == "numbers.md").unwrap();
    let named = numbers.spans();
    for field in FIELDS {
        assert!(
            named.iter().any(|span| span == field.name),
            "numbers.md says nothing of {}",
            field.name
        );
    }
}

#[test]
fn every_command_has_its_place_in_the_readme() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    for (name, _) in help::EXAMPLES.iter().skip(1) {
        assert!(readme.contains(&format!("vramlens {name}")), "{name}");
    }
    for (code, _) in help::EXITS {
        assert!(readme.contains(&format!("{code} ")), "exit code {code}");
    }
}
