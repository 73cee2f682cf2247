//! `vramlens config` as a command: what it prints, and how it ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use assert_cmd::Command;

fn vramlens(home: &Path) -> Command {
    let mut command = Command::cargo_bin("vramlens").unwrap();
    command.env_clear().env("HOME", home).env("LC_ALL", "C.UTF-8").arg("config");
    command
}

fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = home.path().join(".config/vramlens").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    home
}

fn out(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn each_value_is_shown_with_where_it_comes_from() {
    let home = home(&[("config.toml", "[view]\ntheme = 'linen'\n[keys]\nkill = ['f9']\n")]);
    let mut command = vramlens(home.path());
    command.env("VRAMLENS_INTERVAL", "3s").args(["--set", "kill.confirm=false"]);
    let (code, text, _) = out(&mut command);
    assert_eq!(code, 0);
    let row = |key: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap_or_else(|| panic!("{key}:\n{text}")).to_owned()
    };
    assert!(row("view.theme").contains("linen") && row("view.theme").ends_with("config.toml:2"));
    assert!(row("view.interval").ends_with("environment VRAMLENS_INTERVAL"));
    assert!(row("kill.confirm").contains("false") && row("kill.confirm").ends_with("command line"));
    assert!(row("keys.kill").ends_with("config.toml:4"));
    assert!(row("view.mouse").ends_with("default"));
    let (_, json, _) = out(command.arg("--json"));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.len() + 2, text.lines().count(), "every setting, below the name of the file");
    let confirm = rows.iter().find(|row| row["key"] == "kill.confirm").unwrap();
    assert_eq!((&confirm["value"], &confirm["from"]), (&"false".into(), &"command line".into()));
}

#[test]
fn a_mistake_ends_with_2_and_one_line() {
    let broken = home(&[("config.toml", "[view]\nthem = 'linen'\n")]);
    let (code, text, error) = out(&mut vramlens(broken.path()));
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(error.contains("config.toml:2: ") && error.contains("view.theme"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    let bare = home(&[]);
    let (code, _, error) = out(vramlens(bare.path()).args(["--config", "/nonexistent.toml"]));
    assert!(code == 2 && error.contains("/nonexistent.toml"), "{error}");
    let (code, _, error) = out(vramlens(bare.path()).args(["--theme", "harbour"]));
    assert!(code == 2 && error.contains("did you mean harbor?"), "{error}");
    let (code, text, _) = out(&mut vramlens(bare.path()));
    assert!(code == 0 && text.contains("(does not exist)"), "{text}");
}

#[test]
fn themes_are_listed_with_what_is_wrong_with_them() {
    let home = home(&[
        ("themes/mine.toml", "about = 'my own'\n[roles]\ntext = 'green'\n"),
        ("themes/broken.toml", "[roles]\nacent = 'red'\n"),
    ]);
    let (code, text, _) = out(vramlens(home.path()).args(["--themes", "--theme", "mine"]));
    assert_eq!(code, 0);
    assert!(text.contains("* mine") && text.contains("my own"), "{text}");
    assert!(text.contains("broken.toml:2: there is no role \"acent\", did you mean accent?"));
    assert!(text.lines().any(|line| line.starts_with("  terminal")));
    assert!(!text.contains('\x1b'), "no colour in a pipe: {text}");
    let (_, forced, _) = out(vramlens(home.path())
        .arg("--themes")
        .env("CLICOLOR_FORCE", "1")
        .env("TERM", "xterm-kitty"));
    assert!(forced.contains("\x1b[48;2;23;27;34m"), "{forced}");
    // One to begin an own one with.
    let (code, file, _) = out(vramlens(home.path()).args(["--themes", "harbor"]));
    assert!(code == 0 && file.contains("[roles]") && file.contains("#   selected"), "{file}");
    assert_eq!(out(vramlens(home.path()).args(["--themes", "terminal"])).0, 2);
}

#[test]
fn the_example_is_the_committed_one_even_where_the_theme_is_wrong() {
    let home = home(&[("config.toml", "[view]\ntheme = 'gone'\n")]);
    let (code, text, _) = out(vramlens(home.path()).arg("--example"));
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example.toml");
    assert_eq!((code, text), (0, std::fs::read_to_string(committed).unwrap()));
}

/// Names and texts of theme files are somebody else's.
#[test]
fn nothing_in_a_folder_of_themes_reaches_the_terminal_as_an_order() {
    let evil = "themes/\u{1b}]0;x\u{7}\u{9b}2J.toml";
    let home = home(&[
        (evil, "background = '#000000'\n"),
        ("themes/mine.toml", "# \u{9b}2J \u{202e}\nbackground = '#000000'\n"),
        ("config.toml", "[view]\ntheme = 'nowhere'\n"),
    ]);
    for args in [&["--json"][..], &["--themes"], &["--themes", "mine"]] {
        let (_, text, error) = out(vramlens(home.path()).args(args));
        for said in [text, error] {
            let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!said.contains(obeyed), "{args:?}: {said:?}");
        }
    }
}
