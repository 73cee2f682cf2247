//! Tells the loop whether anybody is attached to the multiplexer around this program. A thread of
//! its own sleeps until the mode of the multiplexer's socket changes, since the socket may lie where
//! a look at it blocks.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::retry_on_intr;
use tokio::sync::mpsc::Sender;

use crate::host::Root;
use crate::host::multiplexer::{self, Multiplexer, Seat};
use crate::ids::Pid;
use crate::runtime::live::Answer;

/// Begins to tell. Outside of a multiplexer, and where it cannot be known, nothing is ever told:
/// somebody is taken to look.
pub fn watch(to: Sender<Answer>) {
    let named = multiplexer::named(&|name| std::env::var_os(name));
    if named.is_empty() {
        return;
    }
    let Ok(leader) = rustix::termios::tcgetsid(io::stdout().as_fd()) else { return };
    let leader = Pid(leader.as_raw_nonzero().get().unsigned_abs());
    let tell = move |attached| to.blocking_send(Answer::Attached(attached)).is_ok();
    let thread = std::thread::Builder::new().name("multiplexer".to_owned()).stack_size(64 * 1024);
    // Without a thread to be had it is not known.
    let _ = thread.spawn(move || {
        let around = multiplexer::around(&Root::machine(), leader, named);
        around.and_then(|Multiplexer { socket, .. }| follow(&socket, tell))
    });
}

/// Tells each change, beginning with that nobody is attached: until then somebody is taken to be.
/// Ends where the socket is no longer there, or another one is.
fn follow(socket: &Path, tell: impl Fn(bool) -> bool) -> Option<()> {
    let owner = rustix::process::geteuid().as_raw();
    let first = multiplexer::seat(socket, owner)?;
    let changes = inotify::init(CreateFlags::CLOEXEC).ok()?;
    let flags = WatchFlags::ATTRIB
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::DONT_FOLLOW;
    inotify::add_watch(&changes, socket, flags).ok()?;
    let mut told = true;
    // The first look comes after the watch: no change is missed.
    loop {
        let now = multiplexer::seat(socket, owner).filter(|now| now.file == first.file);
        let attached = now.is_none_or(|Seat { taken, .. }| taken);
        if attached != told && !tell(attached) {
            return None;
        }
        told = attached;
        now?;
        // What happened does not matter: the socket is looked at again.
        retry_on_intr(|| rustix::io::read(&changes, &mut [0; 512])).ok()?;
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::time::Duration;

    use super::*;

    fn mode(socket: &Path, mode: u32) {
        fs::set_permissions(socket, Permissions::from_mode(mode)).unwrap();
    }

    /// A socket that is watched, with nobody attached, and what is told of it.
    fn watched(dir: &Path) -> (std::path::PathBuf, UnixListener, Receiver<bool>) {
        let socket = dir.join("socket");
        let open = UnixListener::bind(&socket).unwrap();
        mode(&socket, 0o600);
        let ((to, told), path) = (channel(), socket.clone());
        std::thread::spawn(move || follow(&path, |attached| to.send(attached).is_ok()));
        assert_eq!(next(&told), Some(false));
        (socket, open, told)
    }

    /// What is told next; `None` where nothing will be any more.
    fn next(told: &Receiver<bool>) -> Option<bool> {
        match told.recv_timeout(Duration::from_secs(30)) {
            Ok(attached) => Some(attached),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing is told"),
        }
    }

    #[test]
    fn each_change_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let (socket, _open, told) = watched(dir.path());
        for _ in 0..3 {
            mode(&socket, 0o700);
            assert_eq!(next(&told), Some(true));
            // Still attached.
            mode(&socket, 0o770);
            mode(&socket, 0o600);
            assert_eq!(next(&told), Some(false));
        }
    }

    #[test]
    fn a_socket_that_is_gone_or_replaced_is_taken_for_seen_from_then_on() {
        let ways: [fn(&Path); 4] = [
            |socket| fs::remove_file(socket).unwrap(),
            |socket| fs::rename(socket, socket.with_extension("old")).unwrap(),
            |socket| {
                fs::rename(socket, socket.with_extension("old")).unwrap();
                drop(UnixListener::bind(socket).unwrap());
            },
            |socket| {
                fs::remove_file(socket).unwrap();
                fs::write(socket, "").unwrap();
            },
        ];
        for way in ways {
            let dir = tempfile::tempdir().unwrap();
            let (socket, _open, told) = watched(dir.path());
            way(&socket);
            assert_eq!(next(&told), Some(true));
            assert_eq!(next(&told), None, "it has ended");
        }
    }

    #[test]
    fn nothing_is_told_of_what_is_no_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(follow(&path, |_| panic!("told")), None);
        fs::write(&path, "").unwrap();
        assert_eq!(follow(&path, |_| panic!("told")), None);
    }
}
