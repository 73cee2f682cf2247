//! The terminal multiplexer around this program, and whether anybody is attached to it, by one
//! `stat(2)` of its socket.
//!
//! tmux takes the execute bits of its socket away while no client is attached to any session of the
//! server (`server_update_socket` in its `server.c`); GNU screen does so per session, as `screen -ls`
//! tells it. zellij and dtach name no socket in the environment whose mode says so.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, RawMode};

use crate::host::root::Root;
use crate::host::stat;
use crate::ids::Pid;

/// `sun_path` of `unix(7)` has no room for more bytes.
const LONGEST_PATH: usize = 107;
/// Where GNU screen was built to keep its sockets, with `S-USER` below.
const SCREEN_DIRS: [&str; 4] = ["/run/screen", "/var/run/screen", "/run/screens", "/tmp/screens"];

/// `S_IRUSR`: without it, tmux sets no execute bit.
const READABLE: RawMode = 0o400;
/// `S_IXUSR`.
const ATTACHED: RawMode = 0o100;

/// A variable of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A socket of a multiplexer, as the environment names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multiplexer {
    /// Where it is. Hostile text.
    pub socket: PathBuf,
    /// The process that has the other end of the terminals.
    pub server: Pid,
}

/// What a socket says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// Device and inode: those of another socket under the same name differ.
    pub file: (u64, u64),
    /// Whether anybody is attached.
    pub taken: bool,
}

/// Every socket that the environment names, also of a multiplexer further outside.
pub fn named(get: Environment<'_>) -> Vec<Multiplexer> {
    tmux(get).into_iter().chain(screen(get)).collect()
}

/// `TMUX` is `SOCKET,SERVER,SESSION`.
fn tmux(get: Environment<'_>) -> Option<Multiplexer> {
    let value = get("TMUX")?;
    let mut parts = value.as_bytes().rsplitn(3, |byte| *byte == b',');
    let (_session, server, socket) = (parts.next()?, parts.next()?, parts.next()?);
    at(PathBuf::from(OsStr::from_bytes(socket)), server)
}

/// `STY` is `SERVER.NAME`, which is the socket's name too.
fn screen(get: Environment<'_>) -> Vec<Multiplexer> {
    let Some(name) = get("STY").filter(|name| is_one_name(name)) else { return Vec::new() };
    let server = name.as_bytes().split(|byte| *byte == b'.').next().unwrap_or_default();
    let mut dirs: Vec<PathBuf> = get("SCREENDIR").map(PathBuf::from).into_iter().collect();
    if let Some(user) = get("USER").filter(|user| is_one_name(user)) {
        let own = OsString::from_vec([b"S-", user.as_bytes()].concat());
        dirs.extend(SCREEN_DIRS.iter().map(|dir| Path::new(dir).join(&own)));
    }
    dirs.extend(get("HOME").map(|home| Path::new(&home).join(".screen")));
    dirs.iter().filter_map(|dir| at(dir.join(&name), server)).collect()
}

/// Whether it stays in its directory.
fn is_one_name(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_bytes().contains(&b'/')
}

fn at(socket: PathBuf, server: &[u8]) -> Option<Multiplexer> {
    let server = std::str::from_utf8(server).ok()?;
    // No sign, no blank: it is written by a program.
    let server =
        server.bytes().all(|byte| byte.is_ascii_digit()).then(|| server.parse().ok())??;
    let plain = socket.is_absolute() && socket.as_os_str().len() <= LONGEST_PATH;
    (plain && server > 1).then_some(Multiplexer { socket, server: Pid(server) })
}

/// The one of these whose terminal it is: that started the leader of the terminal's session. The
/// environment alone does not tell it. A terminal window that was opened out of tmux has inherited
/// `TMUX`, and is seen by somebody all the same.
pub fn around(root: &Root, leader: Pid, named: Vec<Multiplexer>) -> Option<Multiplexer> {
    // Numbers of another PID namespace mean nothing here.
    root.own_pid().filter(|own| own.0 == std::process::id())?;
    let leader = stat::read(root, leader).ok()?;
    let mut of_server = named.into_iter().filter(|one| one.server == leader.parent);
    of_server.find(|one| seat(&one.socket, rustix::process::geteuid().as_raw()).is_some())
}

/// What the socket says; `None` where it is not one, is not `owner`'s, or cannot tell. It is not
/// opened.
pub fn seat(socket: &Path, owner: u32) -> Option<Seat> {
    let file = rustix::fs::lstat(socket).ok()?;
    let tells = FileType::from_raw_mode(file.st_mode) == FileType::Socket
        && file.st_uid == owner
        && file.st_mode & READABLE != 0;
    let taken = file.st_mode & ATTACHED != 0;
    tells.then_some(Seat { file: (file.st_dev, file.st_ino), taken })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn of(variables: &[(&str, &str)]) -> Vec<(String, u32)> {
        let get = |name: &str| {
            variables.iter().find(|row| row.0 == name).map(|row| OsString::from(row.1))
        };
        let text = |one: Multiplexer| (one.socket.display().to_string(), one.server.0);
        named(&get).into_iter().map(text).collect()
    }

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn tmux_names_its_socket_and_server() {
        let found = of(&[("TMUX", "/tmp/tmux-1000/default,4321,7")]);
        assert_eq!(found, [("/tmp/tmux-1000/default".to_owned(), 4321)]);
        // Only the last two commas are tmux's own.
        let found = of(&[("TMUX", "/tmp/a,b,c,4321,0")]);
        assert_eq!(found, [("/tmp/a,b,c".to_owned(), 4321)]);
    }

    #[test]
    fn screen_names_a_socket_in_one_of_its_directories() {
        let found = of(&[("STY", "77.pts-0.box"), ("USER", "ana"), ("HOME", "/home/ana")]);
        let paths: Vec<&str> = found.iter().map(|one| one.0.as_str()).collect();
        let expected = [
            "/run/screen/S-ana/77.pts-0.box",
            "/var/run/screen/S-ana/77.pts-0.box",
            "/run/screens/S-ana/77.pts-0.box",
            "/tmp/screens/S-ana/77.pts-0.box",
            "/home/ana/.screen/77.pts-0.box",
        ];
        assert_eq!(paths, expected);
        assert!(found.iter().all(|one| one.1 == 77));
        let found = of(&[("STY", "77.pts-0.box"), ("SCREENDIR", "/srv/s")]);
        assert_eq!(found, [("/srv/s/77.pts-0.box".to_owned(), 77)]);
    }

    #[test]
    fn what_is_not_so_is_no_multiplexer() {
        let long = format!("/{},4321,0", "a".repeat(LONGEST_PATH));
        let huge = "9".repeat(1 << 20);
        let huge_pid = format!("/tmp/x,{huge},0");
        for value in [
            "",
            ",",
            ",,",
            ",1,",
            "/tmp/x",
            "/tmp/x,4321",
            "x,4321,0",
            "../x,4321,0",
            "/tmp/x,,0",
            "/tmp/x,-3,0",
            "/tmp/x,+3,0",
            "/tmp/x, 3,0",
            "/tmp/x,0,0",
            "/tmp/x,1,0",
            "/tmp/x,4294967296,0",
            "/tmp/x,٣,0",
            &long,
            &huge_pid,
            &huge,
        ] {
            assert_eq!(
                of(&[("TMUX", value)]),
                [],
                "{}",
                value.chars().take(40).collect::<String>()
            );
        }
        for value in ["", ".", ".x", "x.y", "77/../x", "/77.x", "1.x", "-7.x", &huge] {
            let variables = [("STY", value), ("USER", "ana"), ("HOME", "/home/ana")];
            assert_eq!(of(&variables), [], "{}", value.chars().take(40).collect::<String>());
        }
        for user in ["", "../../tmp", "a/b"] {
            assert_eq!(of(&[("STY", "77.x"), ("USER", user), ("HOME", "relative")]), [], "{user}");
        }
    }

    #[test]
    fn the_mode_of_the_socket_says_whether_anybody_is_attached() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let _open = UnixListener::bind(&socket).unwrap();
        let told = |mode: u32| {
            fs::set_permissions(&socket, Permissions::from_mode(mode)).unwrap();
            seat(&socket, own()).map(|seat| seat.taken)
        };
        assert_eq!(told(0o600), Some(false));
        assert_eq!(told(0o660), Some(false));
        assert_eq!(told(0o700), Some(true));
        assert_eq!(told(0o770), Some(true));
        // Those of others say nothing of it.
        assert_eq!(told(0o677), Some(false));
        assert_eq!(told(0o200), None, "tmux sets no bit then");
        assert_eq!(told(0), None);
    }

    #[test]
    fn anything_but_an_own_socket_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let _open = UnixListener::bind(at("socket")).unwrap();
        fs::set_permissions(at("socket"), Permissions::from_mode(0o600)).unwrap();
        assert!(seat(&at("socket"), own()).is_some());
        assert_eq!(seat(&at("socket"), own() + 1), None, "somebody else's");
        symlink(at("socket"), at("link")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        fs::write(at("file"), "").unwrap();
        for name in ["link", "loop", "file", "missing", "file/below", "."] {
            assert_eq!(seat(&at(name), own()), None, "{name}");
        }
        assert_eq!(seat(Path::new("/dev/null"), 0), None);
        assert_eq!(seat(Path::new(OsStr::from_bytes(b"/tmp/\0x")), own()), None);
    }

    #[test]
    fn it_is_the_one_that_started_the_leader_of_the_session() {
        let dir = tempfile::tempdir().unwrap();
        let put = |pid: u32, parent: u32| {
            let place = dir.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&place).unwrap();
            let rest = "0 ".repeat(45);
            fs::write(place.join("stat"), format!("{pid} (a) b) S {parent} {rest}\n")).unwrap();
        };
        put(500, 400);
        put(600, 599);
        symlink(std::process::id().to_string(), dir.path().join("proc/self")).unwrap();
        let root = Root::new(dir.path());
        let sockets: Vec<_> = ["outer", "inner"].map(|name| dir.path().join(name)).into();
        let _open =
            sockets.iter().map(|path| UnixListener::bind(path).unwrap()).collect::<Vec<_>>();
        let named = || {
            let servers = [300, 400].map(Pid);
            let each = sockets.iter().zip(servers);
            each.map(|(socket, server)| Multiplexer { socket: socket.clone(), server }).collect()
        };
        let found = around(&root, Pid(500), named()).map(|one| one.socket);
        assert_eq!(found.as_ref(), Some(&sockets[1]));
        // A window of a terminal that was started within.
        assert_eq!(around(&root, Pid(600), named()), None);
        assert_eq!(around(&root, Pid(700), named()), None, "no such process");
        fs::remove_file(&sockets[1]).unwrap();
        assert_eq!(around(&root, Pid(500), named()), None, "its socket is gone");
    }
}
