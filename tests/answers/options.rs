//! Options that a command does not heed, and mistakes in what was typed or configured.

use super::{DEMO, TWO, out, said, vramlens};
use crate::fake::Fake;

#[test]
fn what_would_be_ignored_is_refused() {
    let fake = Fake::new(TWO);
    for (args, words) in [
        (&["serve", "--json"][..], "serve has no --json"),
        (&["gen", "--json", "man"], "gen has no --json"),
        (&["record", "x.vrt", "--json"], "record has no --json"),
        (&["config", "--example", "--json"], "vramlens config --json"),
        (&["record", "x.vrt", "--gpu", "0"], "a recording always has every GPU"),
        (&["--demo", "triage"], "it takes no command"),
        (&["--once", "triage"], "--once is for the view"),
        (&["--need", "1GiB", "doctor"], "--need is for"),
        (&["--need", "1GiB", "--once"], "vramlens triage --need"),
        (&["triage", "--theme", "nope"], "view.theme is \"nope\""),
        (&["--once", "--theme", "nope"], "view.theme is \"nope\""),
        (&["triage", "--theme", "mono"], "without colours: --color never"),
        (&["fixes", "99"], "there is no such fix"),
        (&["replay", DEMO, "--json", "--from", "+5m"], "--from is where a chart begins"),
        (&["replay", DEMO, "--once", "--from", "+5m"], "--to TIME with --once"),
        (&["replay", DEMO, "--from", "+5m"], "--from is where a chart begins"),
        (&["replay", DEMO, "--once", "--size", "800x400"], "--size is for a chart"),
        (&["replay", DEMO, "--to", "+5m"], "in the view @ goes to a time"),
        (&["replay", DEMO, "--json", "--speed", "2"], "--speed is for the view"),
        (&["replay", DEMO, "--svg", "-", "--speed", "2"], "--speed is for the view"),
    ] {
        let (code, text, error) = said(&fake, args);
        assert_eq!((code, text.as_str()), (2, ""), "{args:?}");
        assert!(error.contains(words), "{args:?}: {error}");
    }
    assert!(!std::path::Path::new("x.vrt").exists());
    for (command, lists) in [("serve", false), ("gen", false), ("record", false), ("triage", true)]
    {
        let (_, help, _) = said(&fake, &[command, "--help"]);
        assert_eq!(help.lines().any(|line| line.trim() == "--json"), lists, "{help}");
    }
}

#[test]
fn fixes_are_json_where_that_is_asked_for() {
    let fake = Fake::new(TWO);
    let (code, text, _) = said(&fake, &["fixes", "6", "--json"]);
    let one: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &one["number"], &one["key"]), (0, &6.into(), &"fragmentation".into()));
    assert!(one["text"].as_str().unwrap().starts_with("# Fix 6"));
    let (_, text, _) = said(&fake, &["--json", "fixes"]);
    let all: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(all.len(), 12);
    assert_eq!(all[5], one);
}

#[test]
fn a_log_in_a_folder_that_is_not_there_is_said_and_no_folder_is_made() {
    let fake = Fake::new(TWO);
    let log = fake.dir().join("typo/x.log");
    let (code, _, error) = said(&fake, &["triage", "--log", log.to_str().unwrap()]);
    assert_eq!(code, 0);
    let words = format!("no log is kept: {}: there is no folder", log.display());
    assert!(error.contains(&words) && error.contains("make it, or name another file"), "{error}");
    assert!(!fake.dir().join("typo").exists());
}

#[test]
fn every_mistake_of_a_configuration_is_named_in_its_order() {
    let fake = Fake::new(TWO);
    let file = fake.dir().join("config.toml");
    std::fs::write(&file, "[view]\nthem = 'x'\ncolor = 'blue'\n[alert]\nbell = 3\n").unwrap();
    let (code, _, error) = said(&fake, &["--config", file.to_str().unwrap(), "triage"]);
    assert_eq!(code, 2);
    let places: Vec<bool> = error
        .lines()
        .zip(["config.toml:2: ", "config.toml:3: ", "config.toml:5: "])
        .map(|(line, place)| line.contains(place))
        .collect();
    assert_eq!(places, [true; 3], "{error}");
}

#[test]
fn kill_says_both_ways_to_name_whom() {
    let fake = Fake::new(TWO);
    for args in [&["kill"][..], &["kill", "--zombies", "4027"]] {
        let (code, _, error) = said(&fake, args);
        assert_eq!(code, 2);
        assert!(error.contains("vramlens kill [OPTIONS] <PID>..."), "{error}");
        assert!(error.contains("vramlens kill [OPTIONS] --zombies"), "{error}");
    }
}

#[test]
fn what_cannot_be_drawn_or_sized_is_said_in_its_own_words() {
    let fake = Fake::new(TWO);
    let (code, _, error) = said(&fake, &["replay", DEMO, "--svg", "-", "--from", "09:00"]);
    assert!(code == 2 && error.contains("09:00 is not in what is kept: 2026-"), "{error}");
    assert!(!error.contains("is no recording"), "{error}");
    let (_, _, error) = said(&fake, &["replay", DEMO, "--svg", "-", "--size", "10x10"]);
    assert!(error.contains("too small for 1 GPU:"), "{error}");
    let (code, _, error) = said(&fake, &["fit", "meta-llama/Llama-3.1-8B"]);
    assert!(code == 2 && error.contains("vramlens fit 8B"), "{error}");
    let (_, _, error) = said(&fake, &["fit", "/nonexistent/x.gguf"]);
    assert_eq!(error.matches("/nonexistent/x.gguf").count(), 1, "{error}");
    // A file where a folder should be: the system's words, once.
    let (_, _, error) = said(&fake, &["record", "/dev/null/x.vrt", "--for", "1s"]);
    assert_eq!(error.matches("os error").count(), 1, "{error}");
}

#[test]
fn the_view_refuses_a_theme_as_every_command_does() {
    let fake = Fake::new(TWO);
    let config = fake.dir().join("config.toml");
    std::fs::write(&config, "[view]\ntheme = 'nope'\n").unwrap();
    // That of a file is the view's business: a report shows none.
    let (code, _, error) =
        out(vramlens(&fake).arg("--config").arg(&config).args(["triage", "--need", "1GiB"]));
    assert_eq!(code, 0, "{error}");
}
