//! The real binary on a real pseudo-terminal, read by a vt100 parser.

// A test that cannot go on fails.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long anything may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}

/// A program on a terminal.
pub struct Term {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    parser: Arc<Mutex<vt100::Parser>>,
    stalled: Arc<AtomicBool>,
    closed: Arc<AtomicBool>,
    read_bytes: Arc<AtomicU64>,
}

impl Term {
    /// Starts `vramlens` with `args` on a terminal of `rows` × `columns`.
    pub fn start(args: &[&str], env: &[(&str, &Path)], rows: u16, columns: u16) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_vramlens"));
        command.args(args);
        command.env("TERM", "xterm-256color");
        command.env("LC_ALL", "C.UTF-8");
        command.env("TZ", "UTC");
        command.env("RUST_BACKTRACE", "0");
        for variable in ["NO_COLOR", "COLORTERM", "XDG_CONFIG_HOME"] {
            command.env_remove(variable);
        }
        command.env("HOME", "/nonexistent");
        command.cwd(env!("CARGO_TARGET_TMPDIR"));
        for (name, value) in env {
            command.env(name, value);
        }
        Self::spawn(command, rows, columns)
    }

    /// Starts any command.
    pub fn spawn(command: CommandBuilder, rows: u16, columns: u16) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let parser = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(columns), 0)));
        let stalled = Arc::new(AtomicBool::new(false));
        let read_bytes = Arc::new(AtomicU64::new(0));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let closed = Arc::new(AtomicBool::new(false));
        let (to, stop, count, close) = (
            Arc::clone(&parser),
            Arc::clone(&stalled),
            Arc::clone(&read_bytes),
            Arc::clone(&closed),
        );
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !close.load(Ordering::SeqCst) {
                while stop.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                match reader.read(&mut bytes) {
                    Ok(0) | Err(_) => return,
                    Ok(n) => {
                        to.lock().unwrap().process(&bytes[..n]);
                        count.fetch_add(n as u64, Ordering::SeqCst);
                    }
                }
            }
        });
        let writer = Some(pair.master.take_writer().unwrap());
        Self { master: Some(pair.master), writer, child, parser, stalled, closed, read_bytes }
    }

    /// What the screen shows now.
    pub fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// Whether the program is on the other screen.
    pub fn on_alternate_screen(&self) -> bool {
        self.parser.lock().unwrap().screen().alternate_screen()
    }

    /// Whether the cursor is hidden.
    pub fn cursor_hidden(&self) -> bool {
        self.parser.lock().unwrap().screen().hide_cursor()
    }

    /// Waits until the screen is as wished; fails with the screen otherwise.
    pub fn wait(&self, what: &str, mut wished: impl FnMut(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if wished(&text) {
                return text;
            }
            assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}. The screen:\n{text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for a text.
    pub fn wait_for(&self, needle: &str) -> String {
        self.wait(needle, |text| text.contains(needle))
    }

    /// Types.
    pub fn send(&mut self, keys: &str) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// Another size.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.parser.lock().unwrap().screen_mut().set_size(cells(rows), cells(columns));
        self.master.as_ref().unwrap().resize(size).unwrap();
    }

    /// Stops or resumes reading what the program writes.
    pub fn stall(&self, stalled: bool) {
        self.stalled.store(stalled, Ordering::SeqCst);
    }

    /// Bytes read from the program so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::SeqCst)
    }

    /// Its pid.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().unwrap()).unwrap()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Takes the terminal away: at once for the program's writes that follow, and wholly as soon as
    /// the reader has seen its next bytes.
    pub fn hang_up(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        self.writer = None;
        self.master = None;
    }

    /// Waits for its end; gives the exit code.
    pub fn exit_code(&mut self) -> u32 {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            let text = self.text();
            assert!(Instant::now() < end, "it does not end. The screen:\n{text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The state letter of its process.
    pub fn state(&self) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).ok()?;
        stat.rsplit_once(')')?.1.trim().chars().next()
    }

    /// Whether the terminal's line settings are those of a shell: echo and line editing.
    pub fn is_cooked(&self) -> bool {
        // ICANON and ECHO, as Linux numbers them.
        let termios = self.master.as_ref().unwrap().get_termios().unwrap();
        termios.local_flags.bits() & 0o12 == 0o12
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.stalled.store(false, Ordering::SeqCst);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
