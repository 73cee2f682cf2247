//! `/proc/PID/stat`, read by hand: one bounded read, no allocation but the name. The `procfs`
//! crate was weighed and not taken, since it reads whole files of any length and costs several
//! times as much, a thousand times a look.

use std::ffi::CStr;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;

use crate::host::fds;
use crate::host::root::{self, Root};
use crate::ids::{Pid, ProcId};
use crate::sample::{ProcState, Why};

/// `PF_EXITING`.
#[cfg(test)]
pub(super) const EXITING: u64 = 0x4;
/// `PF_KTHREAD`.
pub(super) const KERNEL_THREAD: u64 = 0x20_0000;

/// Threads of a process whose state is read.
const MOST_THREADS: usize = 512;

/// The fields that are of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stat {
    pub pid: Pid,
    pub comm: String,
    pub state: ProcState,
    pub parent: Pid,
    pub group: Pid,
    pub session: Pid,
    pub tty: i32,
    pub flags: u64,
    /// User and system time in clock ticks.
    pub cpu_ticks: u64,
    pub threads: u32,
    pub start_ticks: u64,
    pub rss_pages: u64,
}

impl Stat {
    pub fn id(&self) -> ProcId {
        ProcId { pid: self.pid, start_ticks: self.start_ticks }
    }

    pub const fn kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }

    /// Dead and not reaped, with no thread left: holds nothing.
    pub fn defunct(&self) -> bool {
        matches!(self.state, ProcState::Zombie | ProcState::Dead) && self.threads <= 1
    }
}

/// `proc/PID/stat`.
pub(super) fn read(root: &Root, pid: Pid) -> Result<Stat, Why> {
    // The longest line that the kernel writes is below 1 KiB.
    let mut buffer = [0; 2048];
    let bytes = root::record(&root.of(pid, "stat"), &mut buffer)?;
    parse(bytes).ok_or(Why::Nonsense)
}

/// Opens `proc/PID/stat` for [`reread`].
pub(super) fn open(root: &Root, pid: Pid) -> Result<OwnedFd, Why> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(root.of(pid, "stat"), flags, Mode::empty()).map_err(root::why_errno)
}

/// What the file says now. It stays that of the process for which it was opened: when that is
/// reaped it is [`Why::Gone`], whoever has the number then.
pub(super) fn reread(file: &OwnedFd) -> Result<Stat, Why> {
    let mut buffer = [0; 2048];
    let length = retry_on_intr(|| rustix::io::pread(file, &mut buffer, 0));
    let length = length.map_err(root::why_errno)?;
    buffer.get(..length).and_then(parse).ok_or(Why::Nonsense)
}

/// Threads that wait without a chance to be interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Waiting {
    /// How many, at the least.
    pub count: u32,
    /// The number of one.
    pub one: Option<u32>,
}

/// Which threads wait. Those that were found count, whatever came after them; that there is none
/// holds only where all were looked at.
pub(super) fn waiting_threads(root: &Root, pid: Pid) -> Result<Waiting, Why> {
    let (mut found, mut left, mut unread) = (Waiting::default(), MOST_THREADS, None);
    let dir = fds::open_dir(&root.of(pid, "task"))?;
    let listed = fds::each_number(&dir, |tid, name, _| {
        if left == 0 {
            unread = unread.or(Some(Why::NotAsked));
            return false;
        }
        left -= 1;
        match thread_state(dir.as_fd(), name) {
            Ok(ProcState::Uninterruptible) => {
                found = Waiting { count: found.count + 1, one: found.one.or(Some(tid)) };
            }
            // One that has ended meanwhile waits no more.
            Ok(_) | Err(Why::Gone) => {}
            Err(why) => unread = Some(why),
        }
        true
    });
    match listed.err().or(unread) {
        Some(why) if found.count == 0 => Err(why),
        _ => Ok(found),
    }
}

/// State letter of one thread, by its name in `proc/PID/task`.
fn thread_state(tasks: BorrowedFd<'_>, tid: &CStr) -> Result<ProcState, Why> {
    let mut path = [0; 24];
    let name = tid.to_bytes().iter().chain(b"/stat");
    path.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
    let path = CStr::from_bytes_until_nul(&path).map_err(|_ignored| Why::Nonsense)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(tasks, path, flags, Mode::empty()).map_err(root::why_errno)?;
    reread(&file).map(|stat| stat.state)
}

/// A name may hold anything, `) R 1` and newlines too: it ends at the last bracket, since only
/// numbers follow.
pub(super) fn parse(bytes: &[u8]) -> Option<Stat> {
    let open = memchr::memchr(b'(', bytes)?;
    let close = memchr::memrchr(b')', bytes)?;
    let pid = number(bytes.get(..open)?.trim_ascii())?;
    let comm = root::lossy(bytes.get(open + 1..close)?);
    let rest = bytes.get(close + 1..)?;
    let mut fields = [0_i64; 22];
    let mut words = rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let state = state(*words.next()?.first()?);
    let mut count = 1;
    for (field, word) in fields.iter_mut().skip(1).zip(&mut words) {
        *field = integer(word)?;
        count += 1;
    }
    // Fields 3 to 24 of the manual are 0 to 21 here.
    let [_, parent, group, session, tty, _, flags, _, _, _, _, user, system, ..] = fields;
    let pid_of = |n: i64| Pid(u32::try_from(n).unwrap_or(0));
    let size = |n: i64| u64::try_from(n).unwrap_or(0);
    (count == fields.len()).then_some(Stat {
        pid: Pid(pid),
        comm,
        state,
        parent: pid_of(parent),
        group: pid_of(group),
        session: pid_of(session),
        tty: i32::try_from(tty).unwrap_or(0),
        flags: size(flags),
        cpu_ticks: size(user).saturating_add(size(system)),
        threads: u32::try_from(fields[17]).unwrap_or(0),
        start_ticks: size(fields[19]),
        rss_pages: size(fields[21]),
    })
}

/// A decimal number with or without a sign; what is larger than any that is of use becomes the
/// largest.
fn integer(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let add = |sum: i64, digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        Some(sum.saturating_mul(10).saturating_add(digit))
    };
    let size = (!digits.is_empty()).then(|| digits.iter().try_fold(0, add))??;
    Some(if negative { -size } else { size })
}

/// A decimal number.
pub(super) fn number(bytes: &[u8]) -> Option<u32> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

const fn state(letter: u8) -> ProcState {
    match letter {
        b'R' => ProcState::Running,
        b'S' | b'I' => ProcState::Sleeping,
        b'D' => ProcState::Uninterruptible,
        b'T' => ProcState::Stopped,
        b't' => ProcState::Traced,
        b'Z' => ProcState::Zombie,
        b'X' | b'x' => ProcState::Dead,
        _ => ProcState::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TAIL: &str = "S 1 42 43 34816 42 4194560 9 0 0 0 120 30 0 0 20 0 7 0 98765 1000 25 18446744073709551615 1";

    #[test]
    fn a_line_is_read() {
        let stat = parse(format!("42 (python3) {TAIL}\n").as_bytes()).unwrap();
        assert_eq!(stat.id(), ProcId { pid: Pid(42), start_ticks: 98765 });
        assert_eq!((stat.parent, stat.group, stat.session), (Pid(1), Pid(42), Pid(43)));
        assert_eq!((stat.tty, stat.threads, stat.cpu_ticks, stat.rss_pages), (34816, 7, 150, 25));
        assert_eq!(stat.state, ProcState::Sleeping);
        assert_eq!(stat.flags & EXITING, 0);
    }

    #[test]
    fn a_name_cannot_pass_for_fields() {
        let line = format!("42 (a) R 1 1\n(b) {TAIL}");
        let stat = parse(line.as_bytes()).unwrap();
        assert_eq!(stat.comm, "a) R 1 1\n(b");
        assert_eq!(stat.parent, Pid(1));
        assert_eq!(stat.start_ticks, 98765);
    }

    #[test]
    fn a_dead_group_is_no_pid() {
        let line = format!("42 (x) {}", TAIL.replace("S 1 42 43", "Z 1 -1 -1"));
        let stat = parse(line.as_bytes()).unwrap();
        assert_eq!((stat.group, stat.session), (Pid(0), Pid(0)));
    }

    #[test]
    fn the_kernel_s_own_line_is_read() {
        let own = Pid(std::process::id());
        let stat = read(&Root::machine(), own).unwrap();
        assert_eq!(stat.pid, own);
        assert!(stat.start_ticks > 0 && stat.rss_pages > 0 && stat.threads > 0);
        assert_eq!(read(&Root::machine(), Pid(u32::MAX >> 1)), Err(Why::Gone));
    }

    #[test]
    fn a_file_that_stays_open_is_that_of_its_process_and_of_nobody_after_it() {
        let root = Root::machine();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid(child.id());
        let file = open(&root, pid).unwrap();
        assert_eq!(reread(&file).map(|stat| stat.id()), read(&root, pid).map(|stat| stat.id()));
        child.kill().unwrap();
        // It ends in its own time; a zombie is still it.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let mut state = reread(&file).unwrap().state;
        while state != ProcState::Zombie && std::time::Instant::now() < deadline {
            state = reread(&file).unwrap().state;
        }
        assert_eq!(state, ProcState::Zombie);
        child.wait().unwrap();
        assert_eq!(reread(&file), Err(Why::Gone));
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_name_is_kept_apart(name in "[ -~\\n]{0,15}") {
            let stat = parse(format!("42 ({name}) {TAIL}").as_bytes()).unwrap();
            prop_assert_eq!(stat.comm, name);
            prop_assert_eq!(stat.start_ticks, 98765);
        }

        #[test]
        fn a_line_cut_short_is_no_line(cut in 0_usize..80) {
            let line = format!("42 (python3) {TAIL}");
            let short = line.as_bytes().get(..cut).unwrap();
            prop_assert_eq!(parse(short), None);
        }
    }
}
