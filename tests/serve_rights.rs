//! What `vramlens serve` gives up of the rights that it is started with, and that nothing that it
//! is asked for goes with them. Most of it takes root: others have nothing to give up.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
#[allow(dead_code)]
#[path = "serve/server.rs"]
mod server;
#[path = "allocator/torch.rs"]
mod torch;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use fake::Fake;
use server::{Server, signal, until, value};
use torch::Torch;

const NOBODY: u32 = 65_534;
/// `CAP_SYS_PTRACE` and `CAP_DAC_READ_SEARCH`.
const LOOK: u64 = 1 << 19 | 1 << 2;
const DAC_OVERRIDE: u64 = 1 << 1;

/// What a thread may do: effective, permitted, bound, inheritable, ambient; and whether programs
/// that it runs can have more.
#[derive(Debug, PartialEq, Eq)]
struct Rights([u64; 5], bool);

fn rights(status: &Path) -> Rights {
    let text = fs::read_to_string(status).unwrap();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
    };
    Rights(["CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"].map(of), of("NoNewPrivs") == 1)
}

/// Those of every thread of a process, by the thread's name.
fn of_threads(pid: u32) -> Vec<(String, Rights)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let one = |thread: PathBuf| {
        let name = fs::read_to_string(thread.join("comm")).unwrap();
        (name.trim().to_owned(), rights(&thread.join("status")))
    };
    threads.map(|thread| one(thread.unwrap().path())).collect()
}

#[track_caller]
fn all_have(pid: u32, kept: u64) {
    let threads = of_threads(pid);
    for name in ["nvml", "vramlens"] {
        assert!(threads.iter().any(|thread| thread.0 == name), "{name}: {threads:?}");
    }
    for (name, rights) in threads {
        assert_eq!(rights, Rights([kept, kept, kept, 0, 0], true), "{name}");
    }
}

/// Whether this is root with all that is given up here; says so where it is not.
fn is_root() -> bool {
    let Rights([effective, ..], _) = rights(Path::new("/proc/self/status"));
    let all = LOOK | DAC_OVERRIDE | 1 << 5 | 1 << 8;
    let root = nix::unistd::geteuid().is_root() && effective & all == all;
    if !root {
        let _ = writeln!(std::io::stderr(), "skipped: not root, nothing can be given up");
    }
    root
}

#[test]
fn root_keeps_what_looking_takes_and_still_sees_other_users() {
    if !is_root() {
        return;
    }
    let mut torch = Torch::start("2.11", Some(NOBODY));
    let (allocated, reserved) = torch.step(60);
    let fake = Fake::new(&format!(
        "[[gpu]]\nprocess = [{{ pid = {}, bytes = 9663676416 }}]\n",
        torch.pid()
    ));
    let log = fake.dir().join("log");
    let mut command = server::command(&fake, &["--listen", "127.0.0.1:0"]);
    command.arg("--log").arg(&log).env("VRAMLENS_TEST_DEVICES", torch.devices());
    let server = Server::of(command);
    let page = server.wait_for("vramlens_holder_allocator_allocated_bytes");
    // Its owner is for everybody to see, its memory and open files are not.
    let pid = format!("pid=\"{}\"", torch.pid());
    let of = |name: &str| value(&page, name, &[&pid]);
    assert_eq!(of("vramlens_holder_memory_bytes"), Some(9_663_676_416.0));
    assert_eq!(of("vramlens_holder_allocator_allocated_bytes"), Some(allocated as f64));
    assert_eq!(of("vramlens_holder_allocator_reserved_bytes"), Some(reserved as f64));
    assert_eq!(value(&page, "vramlens_unreadable_processes", &[]), Some(0.0));
    let nobody = nix::unistd::User::from_uid(NOBODY.into()).unwrap().map(|user| user.name);
    let user = format!("user=\"{}\"", nobody.unwrap_or_else(|| NOBODY.to_string()));
    assert!(page.lines().any(|line| line.contains(&pid) && line.contains(&user)), "{page}");
    let pid = server.pid();
    until("the log's thread has given up its own", || {
        of_threads(pid).iter().all(|thread| thread.1.1).then_some(())
    });
    all_have(pid, LOOK);
    assert!(fs::read_to_string(&log).unwrap().contains("serve"));
}

#[test]
fn the_driver_in_a_process_of_its_own_has_no_more() {
    if !is_root() {
        return;
    }
    let fake = Fake::new("[[gpu]]\n");
    let server = Server::start(&fake, &["--isolate"]);
    server.wait_for("vramlens_gpu_memory_total_bytes");
    let children = format!("/proc/{0}/task", server.pid());
    let children = fs::read_dir(children).unwrap().flat_map(|thread| {
        let text = fs::read_to_string(thread.unwrap().path().join("children")).unwrap_or_default();
        text.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>()
    });
    let children: Vec<String> = children.collect();
    assert_eq!(children.len(), 1);
    let status = format!("/proc/{}/status", children[0]);
    let Rights([effective, permitted, bound, ..], fixed) = rights(Path::new(&status));
    assert!(effective & !LOOK == 0 && permitted & !LOOK == 0 && bound & !LOOK == 0 && fixed);
}

/// The port is taken before anything is given up.
#[test]
fn root_may_still_listen_on_a_port_of_the_system() {
    if !is_root() {
        return;
    }
    let fake = Fake::new("[[gpu]]\n");
    let server = Server::start_on(&fake, "127.83.64.7:83", &[]);
    server.wait_for("vramlens_gpu_memory_total_bytes");
    all_have(server.pid(), LOOK);
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_text_file_in_a_folder_of_another_user_is_kept_new() {
    if !is_root() {
        return;
    }
    for (owner, kept) in [(NOBODY, LOOK | DAC_OVERRIDE), (0, LOOK)] {
        let fake = Fake::new("[[gpu]]\n");
        let folder = fake.dir().join("collector");
        fs::create_dir(&folder).unwrap();
        mode(&folder, 0o755);
        chown(&folder, Some(owner), None).unwrap();
        let file = folder.join("vramlens.prom");
        let args = ["--textfile", file.to_str().unwrap()];
        let mut child = Running(server::command(&fake, &args).spawn().unwrap());
        until("metrics in the file", || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.contains("vramlens_gpu_memory_total_bytes").then_some(())
        });
        all_have(child.0.id(), kept);
        signal(&child.0, "TERM");
        assert!(child.0.wait().unwrap().success());
        assert!(!file.exists(), "it is taken away at the end");
    }
}

/// The program where everybody can run it.
fn program(fake: &Fake) -> PathBuf {
    mode(fake.dir(), 0o755);
    let program = fake.dir().join("vramlens");
    fs::copy(env!("CARGO_BIN_EXE_vramlens"), &program).unwrap();
    program
}

/// Runs one without rights, and gives its metrics.
fn without_rights(mut command: Command, file: &Path) -> (String, Vec<(String, Rights)>) {
    let child = Running(command.spawn().unwrap());
    let page = until("metrics in the file", || {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.contains("vramlens_gpu_memory_total_bytes").then_some(text)
    });
    (page, of_threads(child.0.id()))
}

#[test]
fn without_rights_there_is_nothing_to_give_up_and_it_serves() {
    let root = is_root();
    let fake = Fake::new("[[gpu]]\nprocess = [{ pid = 1, bytes = 1073741824 }]\n");
    let folder = fake.dir().join("out");
    fs::create_dir(&folder).unwrap();
    mode(&folder, 0o777);
    let program = program(&fake);
    let file = folder.join("x.prom");
    let args = ["serve", "--textfile", file.to_str().unwrap()];
    let mut ways = vec![];
    let mut plain = Command::new(&program);
    plain.args(args);
    if root {
        plain.uid(NOBODY).gid(NOBODY);
        // As `docker run --cap-drop ALL` does it.
        let mut bare = Command::new("setpriv");
        bare.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(&program).args(args);
        ways.push(bare);
    }
    ways.push(plain);
    for mut command in ways {
        command.env("VRAMLENS_NVML_LIB", fake.library()).env("HOME", fake.dir());
        command.env_remove("NOTIFY_SOCKET").env_remove("XDG_CONFIG_HOME");
        let (page, threads) = without_rights(command, &file);
        assert_eq!(value(&page, "vramlens_up", &[]), Some(1.0));
        for (name, Rights([effective, permitted, ..], fixed)) in threads {
            assert_eq!((effective, permitted, fixed), (0, 0, true), "{name}");
        }
        let _ = fs::remove_file(&file);
    }
}
