//! Few file descriptors: what cannot be opened is said, and the rest goes on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;

use crate::fake::Fake;
use crate::pty::Term;

const BIN: &str = env!("CARGO_BIN_EXE_vramlens");
const MACHINE: &str = "[[gpu]]\nprocess = [{ pid = 1, bytes = 1073741824 }]\n[[gpu]]\n";

/// The program with no more than so many open files.
fn limited(fake: &Fake, files: u32, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -n {files} && exec \"$@\"")).args(["sh", BIN]).args(args);
    command.env("VRAMLENS_NVML_LIB", fake.library()).stdin(Stdio::null());
    command
}

fn text(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{error}")
}

#[test]
fn with_sixty_four_files_nothing_is_missing() {
    let fake = Fake::new(MACHINE);
    let output = limited(&fake, 64, &["triage"]).output().unwrap();
    assert!(text(&output).contains("GPU 1"), "{}", text(&output));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output));
    let mut command = CommandBuilder::new("/bin/sh");
    command.args(["-c", "ulimit -n 64 && exec \"$@\"", "sh", BIN, "--interval", "100ms"]);
    command.env("VRAMLENS_NVML_LIB", fake.library());
    command.env("TERM", "xterm-256color");
    command.env("LC_ALL", "C.UTF-8");
    command.env("HOME", "/nonexistent");
    command.cwd(env!("CARGO_TARGET_TMPDIR"));
    let mut term = Term::spawn(command, 30, 100);
    term.wait_for("NVIDIA H200");
    term.send("?");
    term.wait_for("select the row above");
    term.send("q");
    term.wait("the main page", |text| text.contains("COMMAND"));
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn with_hardly_any_files_it_says_what_is_missing() {
    let fake = Fake::new(MACHINE);
    for files in 3..24 {
        let output = limited(&fake, files, &["--once"]).output().unwrap();
        let said = text(&output);
        assert!(!said.contains("panicked"), "{files}: {said}");
        match output.status.code() {
            Some(0) => assert!(said.contains("GPU 1") || said.contains("open files"), "{said}"),
            // The loader itself finds no room for a library.
            Some(127) => {}
            Some(1..=4) => assert!(!said.trim().is_empty(), "{files}: silent"),
            other => panic!("{files}: {other:?} {said}"),
        }
    }
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
}

#[test]
fn two_hundred_connections_with_sixty_four_files_are_survived() {
    let fake = Fake::new(MACHINE);
    let mut command = limited(&fake, 64, &["serve", "--listen", "127.0.0.1:0"]);
    let mut server = Server(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let address: SocketAddr = lines
        .find_map(|line| line.ok()?.split_once("http://")?.1.split('/').next()?.parse().ok())
        .expect("an address");
    std::thread::spawn(move || lines.for_each(drop));
    let end = Instant::now() + Duration::from_mins(1);
    let until_answered = |what: &str| loop {
        if get(address).is_some_and(|page| page.contains("vramlens_gpu_memory_used")) {
            return;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    };
    until_answered("no page at first");
    // They say nothing and stay.
    let silent: Vec<TcpStream> = (0..200)
        .filter_map(|_| TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok())
        .collect();
    assert!(silent.len() > 100);
    // Their time for the head of a request runs out, and others are answered again.
    until_answered("no page any more");
    assert!(server.0.try_wait().unwrap().is_none(), "it has ended");
    drop(silent);
    until_answered("no page afterwards");
}
