//! Settings that are read again while the program runs: by HUP and by key.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;
#[allow(dead_code)]
#[path = "serve/server.rs"]
mod server;

use std::path::{Path, PathBuf};

use fake::Fake;
use nix::sys::signal::Signal;
use pty::Term;
use server::Server;

const ONE: &str = include_str!("scenarios/one.toml");

/// A configuration that is written anew.
struct Config(tempfile::TempDir);

impl Config {
    fn new(text: &str) -> Self {
        let config = Self(tempfile::tempdir().unwrap());
        config.write(text);
        config
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("config.toml")
    }

    fn write(&self, text: &str) {
        let new = self.0.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.path()).unwrap();
    }
}

fn shown(fake: &Fake, config: &Config) -> Term {
    let (library, path) = (fake.library(), config.path());
    let env: [(&str, &Path); 2] = [("VRAMLENS_NVML_LIB", &library), ("VRAMLENS_CONFIG", &path)];
    let term = Term::start(&[], &env, 24, 100);
    term.wait_for("NVIDIA H200");
    term
}

#[test]
fn a_hup_from_outside_reads_the_configuration_again() {
    let fake = Fake::new(ONE);
    let config = Config::new("");
    let mut term = shown(&fake, &config);
    config.write(
        "[view]\ninterval = '7s'\n[keys]\nhelp = ['f4']\n[table]\ncolumns = ['vram', 'pid']\n",
    );
    term.signal(Signal::SIGHUP);
    let text = term.wait_for("the configuration was read again");
    assert!(text.lines().next().unwrap().contains(" 7s "), "{text}");
    assert!(!text.contains("COMMAND"), "{text}");
    // The footer and the keys are the new ones.
    term.send("j");
    term.wait_for("F4");
    term.send("\x1bOS");
    term.wait_for("select the row above");
    term.send("q");
    term.wait("back on the main page", |text| text.contains("VRAM"));
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn a_mistake_keeps_the_old_settings_and_is_shown_with_its_line() {
    let fake = Fake::new(ONE);
    let config = Config::new("[view]\ninterval = '5s'\n");
    let mut term = shown(&fake, &config);
    config.write("[view]\ninterval = '9s'\n\nthem = 'linen'\n");
    term.send("\x12");
    let text = term.wait_for("config.toml:4: there is no setting");
    assert!(text.lines().next().unwrap().contains(" 5s "), "{text}");
    config.write(
        "[view]\ninterval = '9s'\n[driver]\nlibrary = 'elsewhere.so'\n[allocator]\nread = false\n",
    );
    term.send("\x12");
    let text = term.wait_for("with the next start: allocator.read");
    assert!(text.lines().next().unwrap().contains(" 9s "), "{text}");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn what_a_key_has_changed_stays_unless_its_setting_changes() {
    let fake = Fake::new(ONE);
    let config = Config::new("[view]\ninterval = '2s'\n");
    let mut term = shown(&fake, &config);
    term.send("-");
    term.wait("slower", |text| text.lines().next().unwrap().contains(" 5s "));
    term.send("T");
    term.wait_for("theme harbor");
    config.write("[view]\ninterval = '2s'\nmouse = false\n");
    term.send("\x12");
    let text = term.wait_for("the configuration was read again");
    assert!(text.lines().next().unwrap().contains(" 5s "), "{text}");
    term.send("T");
    term.wait_for("theme ember");
    config.write("[view]\ninterval = '10s'\ntheme = 'noon'\n");
    term.send("\x12");
    term.wait("the new interval", |text| text.lines().next().unwrap().contains(" 10s "));
    term.send("jT");
    term.wait_for("theme terminal");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn a_service_reads_it_again_and_goes_on_after_a_mistake() {
    let fake = Fake::new("[[gpu]]\n[[gpu]]\n");
    let config = Config::new("");
    let path = config.path().display().to_string();
    let server = Server::start(&fake, &["--config", &path, "--interval", "100ms"]);
    server.wait_for("gpu=\"1\"");
    config.write("[view]\ngpus = ['0']\n");
    server.signal("HUP");
    config.write("[view]\ngpus = '0'\n");
    server.signal("HUP");
    server::until("only one GPU", || {
        let page = server.get("/metrics", &[]).2;
        // A signal that comes while it reads is one with the other.
        server.signal("HUP");
        (page.contains("gpu=\"0\"") && !page.contains("gpu=\"1\"")).then_some(())
    });
}
