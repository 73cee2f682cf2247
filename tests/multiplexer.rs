//! A live view in a multiplexer to which nobody is attached: it draws nothing and looks less often,
//! goes on keeping time and telling alerts, and is back at once. By real tmux and GNU screen, where
//! they are to be had.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use fake::Fake;
use portable_pty::CommandBuilder;
use pty::Term;

const ONE: &str = include_str!("scenarios/one.toml");
const LOOK: &str = "nvmlDeviceGetMemoryInfo_v2";
/// What the last frame says.
const RESTS: &str = "rests while nobody is attached";

/// A multiplexer with a live view in it.
trait Within {
    /// Runs its program; `None` where that fails.
    fn run(&self, arguments: &[&str]) -> Option<String>;
    /// What it would show.
    fn shown(&self) -> String;
    /// Somebody comes.
    fn attach(&self) -> Term;
    /// Everybody leaves.
    fn detach(&self);
}

/// A tmux of its own, which ends with the test.
struct Tmux(tempfile::TempDir);

impl Tmux {
    fn start(program: &str) -> Option<Self> {
        Command::new("tmux").arg("-V").output().ok()?;
        let tmux = Self(tempfile::tempdir().unwrap());
        tmux.run(&["new-session", "-d", "-x", "110", "-y", "30", program]).unwrap();
        Some(tmux)
    }

    fn arguments(&self) -> [String; 5] {
        let socket = self.0.path().join("tmux");
        ["-f", "/dev/null", "-u", "-S", socket.to_str().unwrap()].map(ToOwned::to_owned)
    }
}

impl Within for Tmux {
    fn run(&self, arguments: &[&str]) -> Option<String> {
        let mut tmux = Command::new("tmux");
        tmux.args(self.arguments()).args(arguments).env_remove("TMUX").env_remove("STY");
        let out = tmux.env("LC_ALL", "C.UTF-8").env("HOME", "/nonexistent").output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn shown(&self) -> String {
        self.run(&["capture-pane", "-p"]).unwrap_or_default()
    }

    fn attach(&self) -> Term {
        let mut client = CommandBuilder::new("tmux");
        client.args(self.arguments());
        client.arg("attach-session");
        client.env_remove("TMUX");
        client.env("TERM", "xterm-256color");
        client.env("LC_ALL", "C.UTF-8");
        Term::spawn(client, 31, 110)
    }

    fn detach(&self) {
        self.run(&["detach-client", "-a"]);
        self.run(&["detach-client"]);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// A GNU screen of its own, which ends with the test.
struct Screen(tempfile::TempDir);

impl Screen {
    fn start(program: &str) -> Option<Self> {
        Command::new("screen").arg("--version").output().ok()?;
        let screen = Self(tempfile::tempdir().unwrap());
        // It takes no directory that others can read.
        fs::set_permissions(screen.0.path(), Permissions::from_mode(0o700)).unwrap();
        screen.run(&["-U", "-d", "-m", "-S", "test", "sh", "-c", program]).unwrap();
        Some(screen)
    }

    fn environment(&self) -> [(&str, PathBuf); 4] {
        [
            ("SCREENDIR", self.0.path().to_owned()),
            ("LC_ALL", "C.UTF-8".into()),
            ("TERM", "xterm-256color".into()),
            ("SCREENRC", "/dev/null".into()),
        ]
    }
}

impl Within for Screen {
    fn run(&self, arguments: &[&str]) -> Option<String> {
        let mut screen = Command::new("screen");
        screen.args(arguments).env_remove("TMUX").env_remove("STY").envs(self.environment());
        let out = screen.output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn shown(&self) -> String {
        let file = self.0.path().join("hardcopy");
        self.run(&["-S", "test", "-p", "0", "-X", "hardcopy", file.to_str().unwrap()]);
        // A question is answered when what was said before is done.
        self.run(&["-S", "test", "-p", "0", "-Q", "number"]);
        fs::read(file).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    fn attach(&self) -> Term {
        let mut client = CommandBuilder::new("screen");
        client.args(["-U", "-x", "test"]);
        client.env_remove("TMUX");
        client.env_remove("STY");
        self.environment().iter().for_each(|(name, value)| client.env(name, value));
        Term::spawn(client, 30, 110)
    }

    fn detach(&self) {
        // Not `-D`, which hangs up who started the client: this test.
        self.run(&["-d", "test"]);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.run(&["-S", "test", "-X", "quit"]);
    }
}

/// The live view on the stand-in driver, as a shell begins it.
fn program(fake: &Fake, more: &str) -> String {
    let (binary, library) = (env!("CARGO_BIN_EXE_vramlens"), fake.library());
    let clean = "XDG_CONFIG_HOME=/nonexistent HOME=/nonexistent";
    let library = library.display();
    format!("{clean} VRAMLENS_NVML_LIB='{library}' exec '{binary}' --interval 100ms {more}")
}

fn until(what: &str, mut wished: impl FnMut() -> bool, shown: impl Fn() -> String) {
    let end = Instant::now() + Duration::from_mins(1);
    while !wished() {
        assert!(Instant::now() < end, "{what}: not within a minute. The screen:\n{}", shown());
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// Waits for a text in what the multiplexer would show.
fn wait(within: &dyn Within, text: &str) {
    until(text, || within.shown().contains(text), || within.shown());
}

fn set(fake: &Fake, temperature: u32) {
    let now = ONE.replace("temperature = 54", &format!("temperature = {temperature}"));
    fake.change(&format!("count_calls = true\n{now}"));
}

/// Detached twice, attached twice.
fn rests_and_is_back(fake: &Fake, within: &dyn Within) {
    for (hot, text) in [(88, "88°C"), (99, "99°C")] {
        wait(within, RESTS);
        let (last, looks) = (within.shown(), fake.calls(LOOK));
        let began = Instant::now();
        set(fake, hot);
        until("three looks", || fake.calls(LOOK) >= looks + 3, || within.shown());
        // Ten a second are wished for; at rest there is one as it begins, and one in four seconds.
        let (looks, took) = (fake.calls(LOOK) - looks, began.elapsed());
        assert!(looks <= took.as_secs() / 4 + 2, "{looks} looks in {took:?}");
        assert_eq!(within.shown(), last, "nothing is drawn");

        let mut term = within.attach();
        term.wait_for("● live");
        let shown = term.wait_for(text);
        assert!(!shown.contains(RESTS), "{shown}");
        let looks = fake.calls(LOOK);
        term.wait("many looks", |_| fake.calls(LOOK) > looks + 20);
        within.detach();
        term.exit_code();
    }
}

#[test]
fn detached_from_tmux_it_rests_and_is_back_at_once() {
    let fake = Fake::new(&format!("count_calls = true\n{ONE}"));
    let Some(tmux) = Tmux::start(&program(&fake, "")) else {
        return println!("there is no tmux here");
    };
    wait(&tmux, "NVIDIA H200");
    rests_and_is_back(&fake, &tmux);
    // A program that presses keys and reads what is shown counts as somebody.
    wait(&tmux, RESTS);
    tmux.run(&["send-keys", "?"]).unwrap();
    wait(&tmux, "esc leave");
    assert!(tmux.shown().contains("● live"), "{}", tmux.shown());
    wait(&tmux, RESTS);
    tmux.run(&["send-keys", "q"]).unwrap();
    wait(&tmux, "COMMAND");
    tmux.run(&["send-keys", "q"]).unwrap();
    until("its end", || tmux.run(&["has-session"]).is_none(), || tmux.shown());
}

#[test]
fn detached_from_screen_it_rests_and_is_back_at_once() {
    let fake = Fake::new(&format!("count_calls = true\n{ONE}"));
    let Some(screen) = Screen::start(&program(&fake, "")) else {
        return println!("there is no GNU screen here");
    };
    rests_and_is_back(&fake, &screen);
}

#[test]
fn alerts_and_the_log_go_on_at_rest() {
    let fake = Fake::new(&format!("count_calls = true\n{ONE}"));
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let config = format!(
        "[alert]\nvram_above = \"90%\"\ncommand = [\"sh\", \"-c\", \"echo $0 > {}\"]\n",
        at("told")
    );
    fs::write(at("config"), config).unwrap();
    let more = format!("--config '{}' --log '{}'", at("config"), at("log"));
    let Some(tmux) = Tmux::start(&program(&fake, &more)) else {
        return println!("there is no tmux here");
    };
    wait(&tmux, RESTS);
    let last = tmux.shown();
    let full = ONE.replace("bytes = 23729274880", "bytes = 46000000000");
    fake.change(&format!("count_calls = true\n{full}"));
    let read = |name: &str| fs::read_to_string(at(name)).unwrap_or_default();
    until("the alert", || read("told").contains("GPU 0: "), || tmux.shown());
    fake.change("count_calls = true\n[[gpu]]\nlost = true\n");
    until("the log", || read("log").contains("is lost"), || read("log"));
    assert_eq!(tmux.shown(), last, "nothing is drawn");
}

#[test]
fn what_came_at_rest_was_judged() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id().to_string();
    child.wait().unwrap();
    let fake = Fake::new(&format!("count_calls = true\n{ONE}"));
    let Some(tmux) = Tmux::start(&program(&fake, "")) else {
        return println!("there is no tmux here");
    };
    wait(&tmux, RESTS);
    let dead = ONE.replace("pid = 20011", &format!("pid = {pid}"));
    fake.change(&format!("count_calls = true\n{dead}"));
    let looks = fake.calls(LOOK);
    // Four seconds apart.
    until("five looks", || fake.calls(LOOK) >= looks + 5, || tmux.shown());
    let mut term = tmux.attach();
    let is_row = |line: &&str| line.contains(&pid) && line.contains("22.1G");
    let row = |text: &str| text.lines().find(is_row).map(str::to_owned);
    term.wait("the present", |text| text.contains("● live") && row(text).is_some());
    term.send("p");
    let clock = |text: &str| {
        let line = text.lines().find(|line| line.starts_with(" ‖ "))?;
        line.split_whitespace().nth(1).map(str::to_owned)
    };
    let held = clock(&term.wait("the moment", |text| clock(text).is_some()));
    term.send("@-9s\r");
    let text = term.wait("nine seconds before", |text| {
        clock(text).is_some_and(|clock| Some(clock) != held) && row(text).is_some()
    });
    assert!(row(&text).unwrap().contains("ghost"), "{text}");
    tmux.detach();
    term.exit_code();
}

/// A terminal that was opened by a program in tmux has inherited its variables.
#[test]
fn a_terminal_that_is_not_the_multiplexers_is_seen() {
    let fake = Fake::new(&format!("count_calls = true\n{ONE}"));
    let Some(tmux) = Tmux::start("exec sleep 1000") else {
        return println!("there is no tmux here");
    };
    let names = "#{socket_path},#{pid},0";
    let value = tmux.run(&["display-message", "-p", names]).unwrap();
    let library = fake.library();
    let env = [("VRAMLENS_NVML_LIB", library.as_path()), ("TMUX", value.trim().as_ref())];
    let term = Term::start(&["--interval", "100ms"], &env, 30, 110);
    term.wait_for("NVIDIA H200");
    let looks = fake.calls(LOOK);
    // More than ten seconds of them.
    term.wait("many looks", |_| fake.calls(LOOK) > looks + 130);
    set(&fake, 99);
    assert!(!term.wait_for("99°C").contains(RESTS));
}
