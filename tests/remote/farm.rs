//! Machines for a test: a real `sshd` each, on loopback, with keys and a configuration of its own,
//! and a far end that has a stand-in driver.

// A test that cannot go on fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]
#![allow(dead_code, reason = "each test uses another part of it")]

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::fake::Fake;

const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until `condition` holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The machines.
pub struct Farm {
    dir: TempDir,
    boxes: Vec<Server>,
}

struct Server {
    name: String,
    port: u16,
    fake: Fake,
    child: Option<Child>,
}

/// Where `sshd` is. Without it a test says so and is done; where everything is installed, it fails.
pub fn sshd() -> Option<PathBuf> {
    let places = ["/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"];
    let found = places.iter().map(PathBuf::from).find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "openssh-server is not installed");
        let _ = writeln!(std::io::stderr(), "skipped: openssh-server is not installed");
    }
    found
}

impl Farm {
    /// A machine for each name, with a driver in its scenario.
    pub fn new(machines: &[(&str, &str)]) -> Option<Self> {
        sshd()?;
        // sshd wants to change into it, and a distribution makes it when the service starts.
        let _ = fs::create_dir("/run/sshd");
        let dir = TempDir::new().unwrap();
        for key in ["host_key", "user_key"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(dir.path().join(key))
                .status();
            assert!(made.unwrap().success());
        }
        fs::copy(dir.path().join("user_key.pub"), dir.path().join("authorized_keys")).unwrap();
        let boxes = machines.iter().map(|(name, scenario)| Server {
            name: (*name).to_owned(),
            port: free_port(),
            fake: Fake::new(scenario),
            child: None,
        });
        let mut farm = Self { boxes: boxes.collect(), dir };
        farm.write_client();
        farm.executable("far", "#!/bin/sh\nexec \"$0.$VRAMLENS_TEST_BOX\" \"$@\"\n");
        for (name, _) in machines {
            farm.records(name, "");
            farm.start(name);
        }
        Some(farm)
    }

    /// A file of this farm.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn executable(&self, name: &str, text: &str) {
        // A new file each time: the old one may be running.
        let fresh = self.path("fresh");
        fs::write(&fresh, text).unwrap();
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(fresh, self.path(name)).unwrap();
    }

    fn server(&mut self, name: &str) -> &mut Server {
        self.boxes.iter_mut().find(|one| one.name == name).unwrap()
    }

    /// The stand-in driver of a machine.
    pub fn fake(&self, name: &str) -> &Fake {
        &self.boxes.iter().find(|one| one.name == name).unwrap().fake
    }

    /// Has the real program record there, with more in its environment.
    pub fn records(&self, name: &str, environment: &str) {
        let library = self.fake(name).library();
        let text = format!(
            "#!/bin/sh\necho $$ >> {pids}\nexport HOME=/nonexistent VRAMLENS_NVML_LIB={library}\n\
             {environment}\nexec {program} \"$@\"\n",
            pids = self.path(&format!("pids.{name}")).display(),
            library = library.display(),
            program = env!("CARGO_BIN_EXE_vramlens"),
        );
        self.executable(&format!("far.{name}"), &text);
    }

    /// Has a script run there instead.
    pub fn runs(&self, name: &str, script: &str) {
        let pids = self.path(&format!("pids.{name}"));
        let text = format!("#!/bin/sh\necho $$ >> {}\n{script}\n", pids.display());
        self.executable(&format!("far.{name}"), &text);
    }

    /// Pids of all far ends that were started there.
    pub fn far_pids(&self, name: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.path(&format!("pids.{name}"))).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Starts a machine's sshd.
    pub fn start(&mut self, name: &str) {
        let at = |file: &str| self.path(file).display().to_string();
        let (port, config) = (self.server_port(name), self.path(&format!("sshd.{name}")));
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
             LogLevel ERROR\nSetEnv VRAMLENS_TEST_BOX={name}\n",
            at("host_key"),
            at("authorized_keys"),
        );
        fs::write(&config, text).unwrap();
        let log = fs::File::create(self.path(&format!("log.{name}"))).unwrap();
        let child = Command::new(sshd().unwrap())
            .args(["-D", "-e", "-f"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.server(name).child = Some(child);
        until("sshd listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    fn server_port(&self, name: &str) -> u16 {
        self.boxes.iter().find(|one| one.name == name).unwrap().port
    }

    /// Ends a machine's sshd with all its connections, as a machine that loses its network.
    pub fn stop(&mut self, name: &str) {
        if let Some(mut child) = self.server(name).child.take() {
            let sessions = descendants(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            sessions.into_iter().for_each(end);
        }
    }

    fn write_client(&self) {
        let mut text = String::new();
        for server in &self.boxes {
            text +=
                &format!("Host {}\n  HostName 127.0.0.1\n  Port {}\n", server.name, server.port);
        }
        let at = |file: &str| self.path(file).display().to_string();
        text += &format!(
            "Host *\n  User {}\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
             GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n  LogLevel ERROR\n",
            nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().unwrap().name,
            at("user_key"),
            at("known_hosts"),
        );
        fs::write(self.path("ssh_config"), text).unwrap();
    }

    /// What tells the program how to reach the machines.
    pub fn environment(&self) -> [(&'static str, PathBuf); 3] {
        let ssh = format!("ssh -F {}", self.path("ssh_config").display());
        [
            ("VRAMLENS_REMOTE_SSH", ssh.into()),
            ("VRAMLENS_REMOTE_COMMAND", self.path("far")),
            ("HOME", "/nonexistent".into()),
        ]
    }

    /// The program itself, without a terminal.
    pub fn vramlens(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
        command.args(args).envs(self.environment()).env_remove("XDG_CONFIG_HOME");
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        let names: Vec<String> = self.boxes.iter().map(|one| one.name.clone()).collect();
        for name in names {
            self.stop(&name);
            self.far_pids(&name).into_iter().filter(|pid| is_ours(*pid, &self.dir)).for_each(end);
        }
    }
}

/// Whether a pid that a far end had is still that far end: its environment names the test's box.
fn is_ours(pid: u32, dir: &TempDir) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let folder = dir.path().to_str().unwrap().as_bytes();
    let names = |text: &[u8]| text.windows(folder.len()).any(|part| part == folder);
    names(&command) || environment.windows(18).any(|part| part == b"VRAMLENS_TEST_BOX=")
}

fn end(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
}

fn descendants(of: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let pairs: Vec<(u32, u32)> = all.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let (mut found, mut next) = (Vec::new(), vec![of]);
    while let Some(one) = next.pop() {
        let children = pairs.iter().filter(|(_, parent)| *parent == one).map(|(pid, _)| *pid);
        let children: Vec<u32> = children.collect();
        next.extend(&children);
        found.extend(children);
    }
    // The program under test ends by itself, and has to.
    found.retain(|pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim().starts_with("sshd")
    });
    found
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Whether a process is there and not only waiting to be reaped.
pub fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|text| !text.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z")))
}

/// The most memory that a process has had, in bytes.
pub fn peak_bytes(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}
