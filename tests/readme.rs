//! The README and the pages beside it: their commands run, what they show is what the program says,
//! their flags exist, their links resolve; and packages name files that are there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/fake.rs"]
mod fake;
#[path = "readme/packages.rs"]
mod packages;
#[path = "readme/pages.rs"]
mod pages;
#[path = "readme/stage.rs"]
mod stage;

use pages::{Block, Page};
use stage::Stage;

/// Commands that are not run here, by their beginning, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo ", "builds or installs; this test is run by one of them"),
    (".ci/run", "runs this test"),
    ("ssh ", "another machine"),
    ("vramlens --host", "another machine: tests/remote.rs has one"),
    ("vramlens --demo", "needs a terminal: tests/pty.rs has one"),
];

/// Commands that end otherwise than with 0, by their beginning.
const CODES: &[(&str, &[i32])] = &[
    ("vramlens triage", &[1]),
    ("vramlens explain", &[1]),
    ("vramlens fit 70B --gpu 24GiB", &[1]),
    ("vramlens triage --need", &[0]),
    // The last of a pipe counts.
    ("vramlens triage --json |", &[0]),
];

#[test]
fn every_command_of_the_pages_runs() {
    let stage = Stage::new();
    let mut wrong = Vec::new();
    for page in Page::all() {
        let shell = page.blocks.iter().filter(|block| block.language == "sh");
        for line in shell.flat_map(Block::commands) {
            if NOT_RUN.iter().any(|(start, _)| line.starts_with(start)) {
                continue;
            }
            let output = stage.run(&line);
            let code = output.status.code();
            let allowed = CODES
                .iter()
                .rev()
                .find(|(start, _)| line.starts_with(start))
                .map_or(&[0][..], |row| row.1);
            if !code.is_some_and(|code| allowed.contains(&code)) {
                let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                wrong.push(format!("{}: `{line}` ends with {code:?}: {errors}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_readme_shows_is_what_the_program_says() {
    let stage = Stage::new();
    let mut wrong = Vec::new();
    for block in Page::all().iter().flat_map(|page| &page.blocks) {
        for (line, expected) in block.sessions() {
            let output = stage.run(&line);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            if let Err(first) = shows(&expected, &said, stage.pids) {
                wrong.push(format!("$ {line}\nnot found: {first}\nin:\n{said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a text has these lines one after the other. `…` alone stands for any lines, at the end of
/// a line for the rest of it. Gives the line that is missing.
fn shows(expected: &[String], said: &str, pids: [u32; 3]) -> Result<(), String> {
    let mut said = said.lines().map(|line| plain(line, pids)).collect::<Vec<_>>().into_iter();
    let mut skips = false;
    for line in expected {
        if line.trim() == "…" {
            skips = true;
            continue;
        }
        let wanted = plain(line, [1471, 1472, 1752]);
        let fits = |line: &String| match wanted.strip_suffix('…') {
            Some(start) => line.starts_with(start.trim_end()),
            None => *line == wanted,
        };
        let found = if skips { said.find(fits) } else { said.next().filter(fits) };
        if found.is_none() {
            return Err(line.clone());
        }
        skips = false;
    }
    let rest: Vec<String> = said.collect();
    let done = skips || rest.iter().all(String::is_empty);
    if done { Ok(()) } else { Err(format!("more is said: {}", rest.join("\n"))) }
}

/// A line without what differs from run to run: pids, ages, the moment, the host, the user; and with
/// one blank where there are several.
fn plain(line: &str, pids: [u32; 3]) -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid());
    let user = user.unwrap().map_or_else(String::new, |user| user.name);
    let mut words: Vec<String> = Vec::new();
    for (n, word) in line.split_whitespace().enumerate() {
        let digits = word.trim_end_matches(['s', 'm', 'h']);
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
        let bare = word.trim_end_matches([',', ')']);
        let pid = pids.iter().position(|pid| *bare == pid.to_string());
        let after = words.last().is_some_and(|last| last == "after");
        words.push(match pid {
            Some(which) => word.replace(bare, ["DEAD", "KEEPS", "WORKS"][which]),
            None if is_number && digits.len() < word.len() => "AGE".to_owned(),
            None if after => "TIME".to_owned(),
            None if word == user || word == "ana" => "USER".to_owned(),
            None if n > 0 && word.len() == 8 && word.matches(':').count() == 2 => {
                "CLOCK".to_owned()
            }
            None if n == 2 && word.matches('-').count() == 2 => "DAY".to_owned(),
            None => word.to_owned(),
        });
    }
    // The first line of a report begins with the name of the host.
    if words.get(1).is_some_and(|word| word == "·") && words.contains(&"CLOCK".to_owned()) {
        "HOST".clone_into(&mut words[0]);
    }
    words.join(" ")
}

#[test]
fn the_comparison_sees_a_difference() {
    let lines = |text: &str| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>();
    let pids = [7, 8, 9];
    assert_eq!(shows(&lines("a  1471\n…\nend 5…"), "a 7\nb\nc\nend 5 x", pids), Ok(()));
    assert!(shows(&lines("a 1472"), "a 7", pids).is_err());
    assert!(shows(&lines("18.9 GiB"), "18.8 GiB", pids).is_err());
    assert!(shows(&lines("a"), "a\nb", pids).is_err());
    assert_eq!(shows(&lines("gone after 0.0 s"), "gone after 0.2 s", pids), Ok(()));
}
