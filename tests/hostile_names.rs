//! Names from outside that the program itself has to say (files, programs, themes, settings, devices'
//! programs in alerts): the real binary, through a pipe and on a terminal, sends nothing of them that
//! a terminal would obey, and they make no line of their own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use pty::Term;

/// An escape sequence, C1, the direction of text, separators of lines, a line that is a lie.
const NAMES: [&str; 6] = [
    "a\u{1b}[2Jb",
    "a\u{1b}]0;owned\u{7}b",
    "a\u{9b}31mb",
    "a\u{202e}gpj.b",
    "a\u{2028}b\u{85}c",
    "a\nvramlens: all is well\rb",
];

fn vramlens(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
    command.env_clear().env("HOME", home).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    // No driver: what is asked here needs none.
    command.env("VRAMLENS_NVML_LIB", home.join("no-driver.so")).current_dir(home);
    command
}

/// All that it says.
fn said(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    String::from_utf8(text).unwrap()
}

/// Nothing that a terminal obeys, and no more lines than with a name that means no harm.
fn assert_clean(text: &str, lines: usize, what: &str) {
    let bad = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2028}\u{85}".contains(c));
    assert!(!text.chars().any(bad), "{what}: {text:?}");
    assert_eq!(text.lines().count(), lines, "{what}: {text}");
    assert!(!text.lines().any(|line| line.starts_with("vramlens: all is well")), "{what}: {text}");
}

#[test]
fn what_is_wrong_with_a_name_is_said_cleanly() {
    let home = tempfile::tempdir().unwrap();
    let lines: [&[&str]; 17] = [
        &[],
        &["kill"],
        &["explain"],
        &["explain", "--recording"],
        &["replay"],
        &["replay", "--png", "out.png"],
        &["fit"],
        &["run", "--"],
        &["run", "--record"],
        &["serve", "--token-file"],
        &["serve", "--textfile"],
        &["serve", "--listen"],
        &["--interval"],
        &["--set"],
        &["--gpu"],
        &["--config"],
        &["config", "--themes"],
    ];
    for before in lines {
        // `NAME/x` is a file that is not there, whatever the name is.
        let tell = |name: &str| said(vramlens(home.path()).args(before).arg(format!("{name}/x")));
        let plain = tell("ab");
        for name in NAMES {
            assert_clean(&tell(name), plain.lines().count(), &format!("{before:?} {name:?}"));
        }
    }
}

#[test]
fn a_file_that_is_there_is_named_cleanly() {
    let home = tempfile::tempdir().unwrap();
    let lines: [(&[&str], &str); 6] = [
        (&["record"], "exists"),
        (&["replay"], "not a recording"),
        (&["fit"], ""),
        (&["--config"], ":1"),
        (&["run", "--"], "cannot run"),
        (&["explain", "--recording"], "not a recording"),
    ];
    for (before, says) in lines {
        let tell = |name: &str| {
            std::fs::write(home.path().join(name), "nonsense [\n").unwrap();
            let path = home.path().join(name);
            said(vramlens(home.path()).args(before).arg(path))
        };
        let plain = tell("ab");
        assert!(plain.contains(says), "{before:?}: {plain}");
        for name in NAMES {
            assert_clean(&tell(name), plain.lines().count(), &format!("{before:?} {name:?}"));
        }
    }
}

/// JSON escapes what a terminal obeys in ASCII; the rest is escaped too, and says the same.
#[test]
fn json_on_a_terminal_is_as_harmless() {
    let home = tempfile::tempdir().unwrap();
    let shape = r#"{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "vocab_size": 128256, "torch_dtype": "bfloat16"}"#;
    for name in NAMES {
        let model = home.path().join(name);
        std::fs::create_dir(&model).unwrap();
        std::fs::write(model.join("config.json"), shape).unwrap();
        let mut fit = vramlens(home.path());
        let text = said(fit.args(["fit", "--gpu", "24GiB", "--json"]).arg(&model));
        assert_clean(&text, text.lines().count(), name);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["model"]["name"], *name, "{text}");
        let mut config = vramlens(home.path());
        let set = format!("remote.command={name}");
        let text = said(config.args(["config", "--json", "--set", &set]));
        assert_clean(&text, text.lines().count(), name);
        let log = home.path().join(format!("{name}.log"));
        let error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 \
                     has a total capacity of 4.00 GiB of which 1.00 GiB is free. Process 7 has";
        std::fs::write(&log, format!("{error} {name}\n")).unwrap();
        let text = said(vramlens(home.path()).args(["explain", "--json"]).arg(&log));
        assert_clean(&text, text.lines().count(), name);
        let cat = ["run", "--json", "--", "sh", "-c", "cat \"$0\" >&2; exit 1"];
        let text = said(vramlens(home.path()).args(cat).arg(&log).env("PATH", "/usr/bin:/bin"));
        let last = text.lines().last().unwrap();
        assert_clean(last, 1, name);
        let json: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(json["explanation"]["requested_bytes"], 2_u64 << 30, "{last}");
        let mut triage = vramlens(home.path());
        triage.env("VRAMLENS_NVML_LIB", home.path().join(name));
        let text = said(triage.args(["triage", "--json"]));
        assert_clean(&text, text.lines().count(), name);
    }
}

#[test]
fn themes_are_listed_cleanly() {
    let home = tempfile::tempdir().unwrap();
    let themes = home.path().join(".config/vramlens/themes");
    std::fs::create_dir_all(&themes).unwrap();
    let list = || said(vramlens(home.path()).args(["config", "--themes"]));
    let before = list().lines().count();
    for (n, name) in NAMES.iter().enumerate() {
        // One with a description that is hostile, one that cannot be read and quotes what is wrong.
        let about = name.escape_unicode().to_string().replace("\\u{", "\\U{");
        let about: String = about.split("\\U{").skip(1).fold(String::new(), |text, part| {
            text + &format!("\\U{:0>8}", part.trim_end_matches('}'))
        });
        let text = if n % 2 == 0 {
            format!("about = \"{about}\"\n")
        } else {
            format!("about = \"x\"\n\"{about}\" = 1\n")
        };
        std::fs::write(themes.join(format!("{name}.toml")), text).unwrap();
    }
    let text = list();
    assert_clean(&text, before + NAMES.len(), "themes");
    assert!(text.contains("a␛[2Jb") && text.contains("a\u{fffd}31mb"), "{text}");
    for name in NAMES {
        let one = said(vramlens(home.path()).args(["config", "--theme", name]));
        assert_clean(&one, one.lines().count(), name);
    }
}

#[test]
fn the_log_and_the_report_without_a_driver_are_clean() {
    let home = tempfile::tempdir().unwrap();
    let plain = said(vramlens(home.path()).arg("triage"));
    assert!(plain.contains("driver library"), "{plain}");
    for name in NAMES {
        let mut command = vramlens(home.path());
        command.env("VRAMLENS_NVML_LIB", home.path().join(name));
        command.args(["triage", "--log"]).arg(home.path().join(format!("log{name}")));
        assert_clean(&said(&mut command), plain.lines().count(), name);
        let log = std::fs::read_to_string(home.path().join(format!("log{name}"))).unwrap();
        assert_clean(&log, log.lines().count(), name);
        assert!(!log.contains("\nvramlens:"), "{log}");
    }
    // A log that cannot be kept is said with its name.
    let file = home.path().join("no\u{1b}[2J\nfolder");
    std::fs::write(&file, "").unwrap();
    let text = said(vramlens(home.path()).args(["triage", "--log"]).arg(file.join("log")));
    assert_clean(&text, plain.lines().count() + 1, "no log");
}

#[test]
fn a_name_that_is_no_text_is_said_all_the_same() {
    let home = tempfile::tempdir().unwrap();
    for before in [&["replay"][..], &["explain"], &["run", "--"]] {
        let text = said(vramlens(home.path()).args(before).arg(OsStr::from_bytes(b"a\xff\x1bb")));
        assert_clean(&text, 1, "no text");
        assert!(text.contains("a\u{fffd}␛b"), "{before:?}: {text}");
    }
}

#[test]
fn on_a_terminal_as_well() {
    let home = tempfile::tempdir().unwrap();
    let at = [("HOME", home.path())];
    for (before, name, shown) in [
        (&["replay"][..], NAMES[0], "a␛[2Jb"),
        (&["run", "--"], NAMES[5], "a␊vramlens: all is well␍b"),
        (&["replay"], NAMES[1], "a␛]0;owned␇b"),
        (&[], NAMES[5], "a␊vramlens: all is well␍b"),
    ] {
        let mut term = Term::start(&[before, &[name]].concat(), &at, 24, 120);
        term.wait_for(shown);
        assert_ne!(term.exit_code(), 0);
    }
}
