//! The terminal. What it takes at once is written at once, by an opening of its own that never
//! waits; the rest is left to a thread, so that a terminal that nobody reads never stops the loop.
//! The next frame is made only when the last has drained, which keeps the picture that is known and
//! the terminal's the same.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crossterm::{cursor, event, queue, terminal};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{
    OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, ttyname,
};

use crate::ui::grid::{Grid, difference};

/// What the terminal's thread reports.
#[derive(Debug)]
pub enum Drained {
    /// The last frame is out; the next may follow.
    Ready,
    /// The terminal is gone.
    Gone,
}

/// How the terminal was before, to put it back from anywhere, a panic included.
struct Before {
    tty: OwnedFd,
    termios: Termios,
    entered: AtomicBool,
    mouse: AtomicBool,
}

/// Terminals that put right-to-left text in order show the cells as they come (ECMA-48 BDSM): a name
/// in Hebrew would move the figures behind it otherwise. Others ignore it.
const IN_ORDER: &[u8] = b"\x1b[8l";
/// As a shell expects it.
const REORDERED: &[u8] = b"\x1b[8h";

/// A change of size is told by a signal. One that is not, as to a job in the background, is noticed
/// after so many frames.
const BELIEVED: u8 = 16;

static BEFORE: OnceLock<Before> = OnceLock::new();
/// The terminal is not taken again from here on.
static LEAVING: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode, on its other screen.
pub struct Screen {
    tty: OwnedFd,
    /// The same terminal, opened so that a write never waits; where that could be done.
    at_once: Option<File>,
    /// Its size, and for how many frames more that is believed; 0 where it has to be read.
    size: (Winsize, u8),
    /// What it shows, where that is known.
    shown: Option<Grid>,
    /// The next picture, kept for its room.
    next: Grid,
    bytes: Vec<u8>,
    frames: SyncSender<Vec<u8>>,
    acks: Receiver<()>,
    ready: Arc<AtomicBool>,
    /// When the last frame was left to the thread.
    left: Option<Instant>,
    written_bytes: u64,
}

impl Screen {
    /// Takes the terminal over. `drained` is called on the terminal's thread.
    ///
    /// # Errors
    /// Where standard output is no terminal, or cannot be put into raw mode.
    pub fn open(mouse: bool, drained: impl Fn(Drained) + Send + 'static) -> io::Result<Self> {
        let tty = io::stdout().as_fd().try_clone_to_owned()?;
        let termios = tcgetattr(&tty)?;
        let out = File::from(tty.try_clone()?);
        let own = tty.try_clone()?;
        let at_once = open_at_once(&tty);
        // A second screen in one process takes over what the first one remembered.
        let before = BEFORE.get_or_init(|| {
            let (entered, mouse) = (AtomicBool::new(false), AtomicBool::new(mouse));
            Before { tty, termios, entered, mouse }
        });
        raw(before)?;
        let (frames, frames_in) = sync_channel::<Vec<u8>>(1);
        let (acks_out, acks) = sync_channel(1);
        let ready = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&ready);
        std::thread::Builder::new()
            .name("tty-out".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || write_frames(out, &frames_in, &flag, &acks_out, &drained))?;
        let size = (tcgetwinsize(&own)?, 0);
        let mut screen = Self {
            tty: own,
            at_once,
            size,
            shown: None,
            next: Grid::default(),
            bytes: Vec::new(),
            frames,
            acks,
            ready,
            left: None,
            written_bytes: 0,
        };
        screen.enter(before)?;
        Ok(screen)
    }

    fn enter(&mut self, before: &Before) -> io::Result<()> {
        let bytes = &mut self.bytes;
        queue!(bytes, terminal::EnterAlternateScreen, cursor::Hide, event::EnableBracketedPaste)?;
        if before.mouse.load(Ordering::Relaxed) {
            queue!(bytes, event::EnableMouseCapture)?;
        }
        bytes.write_all(IN_ORDER)
    }

    /// Whether the last frame has drained.
    pub fn ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// For how long the terminal has not taken a frame.
    pub fn stuck_for(&self) -> Option<Duration> {
        if self.ready() { None } else { self.left.map(|left| left.elapsed()) }
    }

    /// Bytes handed to the terminal so far.
    pub const fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Draws one frame. Call only when [`Self::ready`].
    ///
    /// # Errors
    /// Where the terminal's size cannot be read.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Grid)) -> io::Result<()> {
        if self.size.1 == 0 {
            self.size = (tcgetwinsize(&self.tty)?, BELIEVED);
        }
        self.size.1 -= 1;
        self.next.clear(self.size.0.ws_col, self.size.0.ws_row);
        draw(&mut self.next);
        difference(self.shown.as_ref(), &self.next, &mut self.bytes);
        let mut before = self.shown.take().unwrap_or_default();
        before.number_as(&self.next);
        self.shown = Some(std::mem::replace(&mut self.next, before));
        self.hand_over();
        Ok(())
    }

    /// Sends bytes that are no part of the picture (a bell, a clipboard sequence).
    pub fn send(&mut self, bytes: &[u8]) {
        // They wait in the buffer for the next frame.
        self.bytes.extend_from_slice(bytes);
        if self.ready() {
            self.hand_over();
        }
    }

    /// Whether the mouse is reported from now on.
    pub fn set_mouse(&mut self, mouse: bool) {
        if let Some(before) = BEFORE.get()
            && before.mouse.swap(mouse, Ordering::Relaxed) != mouse
        {
            // Into a buffer: nothing can fail.
            let _ = if mouse {
                queue!(self.bytes, event::EnableMouseCapture)
            } else {
                queue!(self.bytes, event::DisableMouseCapture)
            };
        }
    }

    /// Forgets the picture, so that the next frame is drawn in full, and the size.
    pub fn invalidate(&mut self) {
        self.shown = None;
        self.size.1 = 0;
    }

    fn hand_over(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        self.written_bytes += self.bytes.len() as u64;
        let taken = self.at_once.as_mut().map_or(0, |tty| write_now(tty, &self.bytes));
        if taken == self.bytes.len() {
            self.bytes.clear();
            return;
        }
        let rest = self.bytes.split_off(taken);
        self.bytes.clear();
        self.ready.store(false, Ordering::Release);
        self.left = Some(Instant::now());
        // The thread takes one frame at a time and `ready` was true: there is room.
        let _ = self.frames.try_send(rest);
    }

    /// Gives the terminal back for a while (job control).
    pub fn suspend(&mut self) {
        self.wait_drained(Duration::from_millis(250));
        restore();
    }

    /// Takes it again.
    ///
    /// # Errors
    /// Where raw mode cannot be set.
    pub fn resume(&mut self) -> io::Result<()> {
        if let Some(before) = BEFORE.get() {
            raw(before)?;
            self.enter(before)?;
        }
        self.invalidate();
        Ok(())
    }

    /// Gives it back for good; a terminal that does not drain gets a quarter of a second.
    pub fn close(mut self) {
        self.wait_drained(Duration::from_millis(250));
        restore();
    }

    fn wait_drained(&mut self, limit: Duration) {
        let end = Instant::now() + limit;
        while !self.ready() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.acks.recv_timeout(left).is_err() {
                return;
            }
        }
    }
}

/// Opens a terminal anew: the flag that writes do not wait belongs to an opening, and the shell's own
/// must keep waiting.
fn open_at_once(tty: &OwnedFd) -> Option<File> {
    let path = ttyname(tty, Vec::new()).ok()?;
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let device = |fd: &OwnedFd| rustix::fs::fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_rdev));
    (device(&opened)? == device(tty)?).then(|| File::from(opened))
}

/// Writes what is taken without waiting; gives how much that was. An error shows again when the
/// rest is written.
fn write_now(tty: &mut File, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
        match tty.write(rest) {
            Ok(n) if n > 0 => taken += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    taken
}

fn write_frames(
    mut out: File,
    frames: &Receiver<Vec<u8>>,
    ready: &AtomicBool,
    acks: &SyncSender<()>,
    drained: &dyn Fn(Drained),
) {
    while let Ok(frame) = frames.recv() {
        if write_all(&mut out, &frame).is_err() {
            drained(Drained::Gone);
            return;
        }
        ready.store(true, Ordering::Release);
        let _ = acks.try_send(());
        drained(Drained::Ready);
    }
}

/// Also where somebody else made the terminal non-blocking.
fn write_all(out: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_writable(out.as_fd(), PollTimeout::NONE);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_writable(fd: BorrowedFd<'_>, limit: PollTimeout) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLOUT)];
    matches!(nix::poll::poll(&mut fds, limit), Ok(n) if n > 0)
        && fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLOUT))
}

fn raw(before: &Before) -> io::Result<()> {
    let mut wanted = before.termios.clone();
    wanted.make_raw();
    // Marked first and checked last: a panic on another thread may restore at any point between.
    before.entered.store(true, Ordering::SeqCst);
    tcsetattr(&before.tty, OptionalActions::Now, &wanted)?;
    if LEAVING.load(Ordering::SeqCst) {
        tcsetattr(&before.tty, OptionalActions::Now, &before.termios)?;
        return Err(io::Error::other("the program is ending"));
    }
    Ok(())
}

/// Puts the terminal back as it was. Safe to call from any thread, at any time, more than once; it
/// never waits: a terminal that takes no bytes gets none.
pub fn restore() {
    let Some(before) = BEFORE.get() else { return };
    if !before.entered.swap(false, Ordering::SeqCst) {
        return;
    }
    if wait_writable(before.tty.as_fd(), PollTimeout::ZERO) {
        let mut bytes = Vec::new();
        if before.mouse.load(Ordering::Relaxed) {
            let _ = queue!(bytes, event::DisableMouseCapture);
        }
        bytes.extend_from_slice(REORDERED);
        let _ = queue!(
            bytes,
            event::DisableBracketedPaste,
            terminal::LeaveAlternateScreen,
            cursor::Show
        );
        let _ = nix::unistd::write(&before.tty, &bytes);
    }
    let _ = tcsetattr(&before.tty, OptionalActions::Now, &before.termios);
}

/// From here on a panic in any thread gives the terminal back before it is reported, and ends the
/// program: half of it would show old figures as if they were live.
pub fn guard_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        LEAVING.store(true, Ordering::SeqCst);
        restore();
        report(info);
        std::process::exit(101);
    }));
}

/// Panics in debug builds where the first word of `VRAMLENS_TEST_PANIC` is this place: the only way
/// to try what a panic does to a real terminal.
pub fn test_panic(place: &str) {
    #[cfg(debug_assertions)]
    {
        let words = std::env::var("VRAMLENS_TEST_PANIC").unwrap_or_default();
        assert!(words.split(' ').next() != Some(place), "a panic for the test in {words}");
    }
    let _ = place;
}
