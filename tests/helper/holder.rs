//! A process for tests: does what its arguments say, in order, prints `ready PID`, and waits until
//! it is ended.
//!
//! ```text
//! open FILE      opens a file and keeps it        ignore SIGNAL   ignores INT or TERM
//! setsid         leads a session of its own       catch TERM      ends with status 7 at TERM
//! setpgid        leads a group of its own         stop            stops itself
//! fork           prints `parent PID`; the child   leader-exits    its first thread ends, another
//!                goes on, the parent waits                        one keeps everything open
//! map FILE       maps a file and closes it        rename NAME     takes another short name
//! listen         listens on a TCP port            nobody          becomes user 65534
//! write FILE     writes to disk without end       look PID        a probe's look at a process
//! kill PID START SIGNAL                           carries out an order
//! deny CALL ERRNO                                 a system call that answers only that from now on
//! exec PROGRAM ARGUMENT…                          becomes another program
//! crowd N        has N children, which end with it
//! await          says that it is there and goes on once a line comes on standard input
//! ```
#![allow(unsafe_code, reason = "fork, and threads that outlive the first one")]
#![allow(clippy::panic, reason = "a helper of tests that cannot go on fails them")]

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal, raise, signal};
use nix::unistd::{ForkResult, Pid, fork, getpid, setpgid, setsid};
use vramlens::host::{KillContext, Options, Probe};
use vramlens::ids::{Pid as NamedPid, ProcId, Stamp};
use vramlens::sample::{KillOrder, KillPreset, KillTarget, Reading};

const STAMP: Stamp = Stamp { boot_ms: 1, wall_ms: 1 };

fn main() {
    let mut words = std::env::args().skip(1);
    let mut kept: Vec<Box<dyn Send>> = Vec::new();
    while let Some(word) = words.next() {
        let mut next = || words.next().expect("an argument is missing");
        match word.as_str() {
            "open" => kept.push(Box::new(open(&next()))),
            "map" => map(&next()),
            "ignore" => set(&next(), SigHandler::SigIgn),
            "catch" => set(&next(), SigHandler::Handler(leave)),
            "setsid" => drop(setsid().expect("setsid")),
            "setpgid" => setpgid(Pid::from_raw(0), Pid::from_raw(0)).expect("setpgid"),
            "stop" => {
                say("ready");
                raise(Signal::SIGSTOP).expect("stop");
            }
            "fork" => split(),
            "leader-exits" => leader_exits(),
            "listen" => kept.push(Box::new(listen())),
            "rename" => std::fs::write("/proc/self/comm", next()).expect("comm"),
            "write" => write_for_ever(next()),
            "nobody" => nix::unistd::setuid(65534.into()).expect("setuid"),
            "kill" => return kill(&next(), &next(), &next()),
            "deny" => deny(&next(), &next()),
            "exec" => {
                let program = next();
                let error = std::os::unix::process::CommandExt::exec(
                    std::process::Command::new(&program).args(words),
                );
                panic!("{program}: {error}");
            }
            "look" => return look(&next()),
            "crowd" => crowd(&next()),
            "await" => {
                say("ready");
                let _ = std::io::stdin().read_line(&mut String::new());
            }
            other => {
                let _ = writeln!(std::io::stderr(), "{other}?");
                std::process::exit(2);
            }
        }
    }
    say("ready");
    wait();
}

fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody may read any more; that is no reason to end.
    let _ = writeln!(out, "{word} {}", getpid());
    let _ = out.flush();
}

fn wait() -> ! {
    loop {
        nix::unistd::pause();
    }
}

fn open(path: &str) -> File {
    File::options().read(true).write(true).open(path).expect("open")
}

fn map(path: &str) {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let file = File::open(path).expect("open");
    // SAFETY: a new mapping that nobody reads.
    let mapped =
        unsafe { mmap(std::ptr::null_mut(), 4096, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) };
    mapped.expect("mmap");
}

fn set(name: &str, handler: SigHandler) {
    let which: Signal = format!("SIG{name}").parse().expect("a signal");
    // SAFETY: `leave` only exits, which a handler may.
    unsafe { signal(which, handler) }.expect("signal");
}

extern "C" fn leave(_: i32) {
    // SAFETY: ends the process without running anything.
    unsafe { nix::libc::_exit(7) };
}

fn split() {
    // Before the fork, so that it always comes before what the child says.
    say("parent");
    // SAFETY: the process has one thread, so the child may do anything.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {}
        ForkResult::Parent { .. } => wait(),
    }
}

fn crowd(count: &str) {
    let parent = getpid();
    for _ in 0..count.parse().expect("a number") {
        // SAFETY: the process has one thread, so the child may do anything.
        if unsafe { fork() }.expect("fork").is_child() {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).expect("pdeathsig");
            // It may have ended before it could be said.
            if nix::unistd::getppid() == parent {
                wait();
            }
            std::process::exit(0);
        }
    }
}

fn leader_exits() {
    std::thread::spawn(|| {
        let zombie =
            || std::fs::read_to_string("/proc/self/stat").is_ok_and(|stat| stat.contains(") Z "));
        while !zombie() {
            std::thread::yield_now();
        }
        say("ready");
        loop {
            std::thread::sleep(Duration::from_mins(1));
        }
    });
    // SAFETY: ends this thread only; what it owns lives on, since nothing is unwound.
    unsafe { nix::libc::syscall(nix::libc::SYS_exit, 0) };
}

fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("listen")
}

fn write_for_ever(path: String) {
    std::thread::spawn(move || {
        let mut file = File::create(path).expect("create");
        loop {
            let _ = file.write_all(&[7; 4096]);
            let _ = file.sync_data();
            let _ = file.set_len(0);
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

/// As a sandbox or an old kernel does it; for this process and whatever it starts.
fn deny(call: &str, errno: &str) {
    use nix::libc;
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};
    let number = match call {
        "pidfd_open" => libc::SYS_pidfd_open,
        "pidfd_send_signal" => libc::SYS_pidfd_send_signal,
        "process_vm_readv" => libc::SYS_process_vm_readv,
        other => panic!("{other}?"),
    };
    let arch: TargetArch = std::env::consts::ARCH.try_into().expect("an architecture");
    let refusal = SeccompAction::Errno(errno.parse().expect("a number"));
    let rules = [(number, Vec::new())].into_iter().collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch).expect("a filter");
    let program: seccompiler::BpfProgram = filter.try_into().expect("a filter");
    apply_filter(&program).expect("seccomp");
}

/// Prints what became of an order, one step a line.
fn kill(pid: &str, start: &str, signal: &str) {
    let target = KillTarget {
        id: ProcId {
            pid: NamedPid(pid.parse().expect("a pid")),
            start_ticks: start.parse().expect("ticks"),
        },
        uid: Reading::Absent(vramlens::sample::Why::NotAsked),
        comm: String::new(),
        must_hold_device: false,
    };
    let preset = KillPreset::Signal(signal.parse().expect("a signal"));
    let order = KillOrder { targets: vec![target], preset };
    let mut context = KillContext::new(&[]);
    context.in_container = false;
    let mut out = std::io::stdout().lock();
    let cancel = AtomicBool::new(false);
    let mut print = |event: vramlens::sample::KillEvent| {
        let _ = writeln!(out, "{:?}", event.what);
    };
    vramlens::host::signals::execute(&order, &context, &|| STAMP, &mut print, &cancel);
}

/// Prints what a probe sees of a process and how many it could not see.
fn look(pid: &str) {
    let pid = NamedPid(pid.parse().expect("a pid"));
    let tick = Probe::new("/", Options::default()).look(STAMP, &[pid]);
    let sample = tick.procs.iter().find(|sample| sample.id.pid == pid);
    let devices = sample.map(|sample| &sample.devices);
    let mut out = std::io::stdout().lock();
    let first = &tick.host.host_pid_namespace;
    let unreadable = tick.scan.unreadable;
    let _ = writeln!(out, "first namespace {first:?} unreadable {unreadable} devices {devices:?}");
}
