//! What the page's commands are run on: a stand-in driver, a dead run whose worker lives on, a
//! recording, a message, and a machine made of files for `doctor`.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::fake::Fake;
use tempfile::TempDir;

/// Longer than any command takes on a loaded machine.
const PATIENCE: Duration = Duration::from_mins(2);

const MESSAGE: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 \
has a total capacity of 23.69 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this \
process has 22.50 GiB memory in use. Of the allocated memory 17.80 GiB is allocated by PyTorch, and \
4.21 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try \
setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for \
Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)\n";

/// A folder to run commands in.
pub struct Stage {
    dir: TempDir,
    fake: Fake,
    children: Vec<Child>,
    /// The dead process, who keeps its memory, and one that works.
    pub pids: [u32; 3],
}

impl Stage {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["bin", "dev", "home", "work", "out"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for name in ["uvm", "control", "gpu"] {
            std::fs::write(dir.path().join("dev").join(name), "").unwrap();
        }
        let mut stage =
            Self { dir, fake: Fake::new("[[gpu]]\n"), children: Vec::new(), pids: [0; 3] };
        stage.programs();
        stage.holders();
        stage.machine();
        stage
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn programs(&self) {
        let put = |name: &str, text: &str| {
            let path = self.path("bin").join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        };
        symlink(env!("CARGO_BIN_EXE_vramlens"), self.path("bin/vramlens")).unwrap();
        put("python", "#!/bin/sh\nexit 0\n");
        // Only that it can be read is asked here.
        put("jq", "#!/bin/sh\nexec cat\n");
        for name in ["finetune", "train"] {
            std::fs::copy(example("holder"), self.path("bin").join(name)).unwrap();
        }
    }

    /// Starts a process that has the devices open; gives the lines that it says.
    fn start(&mut self, name: &str, words: &[&str]) -> BufReader<std::process::ChildStdout> {
        let mut command = Command::new(self.path("bin").join(name));
        std::os::unix::process::CommandExt::arg0(&mut command, name);
        for device in ["uvm", "control", "gpu"] {
            command.arg("open").arg(self.path("dev").join(device));
        }
        let mut child = command.args(words).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        self.children.push(child);
        said
    }

    fn holders(&mut self) {
        let mut said = self.start("finetune", &["setsid", "fork"]);
        let (dead, survivor) = (pid_after(&mut said, "parent "), pid_after(&mut said, "ready "));
        let parent = &mut self.children[0];
        parent.kill().unwrap();
        parent.wait().unwrap();
        let mut said = self.start("train", &["setsid"]);
        let busy = pid_after(&mut said, "ready ");
        self.pids = [dead, survivor, busy];
        self.fake.change(&format!(
            "follow_pids = true\nfree_after_ms = 100\n[[gpu]]\n\
             [[gpu.process]]\npid = {busy}\nbytes = {}\nsm = 40\n\
             [[gpu.process]]\npid = {dead}\nbytes = 20293094400\nsticky = true\n\
             survivors = [{survivor}]\n",
            8_u64 << 30
        ));
    }

    /// A machine with one GPU and every right, for `doctor`.
    fn machine(&self) {
        let put = |name: &str, text: &str| {
            let path = self.path("machine").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/modules", "nvidia 1 2 nvidia_uvm, Live 0x0\nnvidia_uvm 1 0 - Live 0x0\n");
        put("proc/self/mounts", "proc /proc proc rw,relatime 0 0\n");
        put("proc/self/cgroup", "0::/user.slice\n");
        put("proc/self/status", "CapEff:\t0000000000000000\n");
        put("proc/sys/kernel/yama/ptrace_scope", "1\n");
        put("sys/module/nvidia/version", "580.159.04\n");
        put("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04", "");
        for name in ["nvidiactl", "nvidia-uvm", "nvidia0"] {
            put(&format!("dev/{name}"), "");
        }
        let gpu = "sys/bus/pci/devices/0000:1b:00.0";
        put(&format!("{gpu}/vendor"), "0x10de\n");
        put(&format!("{gpu}/class"), "0x030200\n");
        put(&format!("{gpu}/power/control"), "on\n");
        put(&format!("{gpu}/power/runtime_status"), "active\n");
        let link = |to: &str, name: &str| {
            let path = self.path("machine").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(to, path).unwrap();
        };
        link("/sys/bus/pci/drivers/nvidia", &format!("{gpu}/driver"));
        link("pid:[4026531836]", "proc/self/ns/pid");
    }

    /// A fresh folder with what commands read in it.
    fn lay_out(&self, line: &str) {
        let work = self.path("work");
        std::fs::remove_dir_all(&work).unwrap();
        std::fs::create_dir(&work).unwrap();
        let assets = Path::new(env!("CARGO_MANIFEST_DIR"));
        if !line.contains("record day.vrt") {
            std::fs::copy(assets.join("assets/demo.vrt"), work.join("day.vrt")).unwrap();
        }
        std::fs::copy(assets.join("config.example.toml"), work.join("config.toml")).unwrap();
        std::fs::write(work.join("error.txt"), MESSAGE).unwrap();
        let script = work.join("train.sh");
        std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
        std::fs::set_permissions(script, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Runs a line of the page as a shell does.
    pub fn run(&self, line: &str) -> Output {
        self.lay_out(line);
        // Nobody waits for ten minutes.
        let line = line.replace("--for 10m", "--for 1s");
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let roles = [("uvm", "uvm"), ("control", "control"), ("gpu", "0")];
        let role = |(name, role): &(&str, &str)| {
            format!("{}={role}", self.path("dev").join(name).display())
        };
        let devices = roles.iter().map(role).collect::<Vec<_>>().join(",");
        let (out, errors) = (self.path("out/out"), self.path("out/errors"));
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(self.path("work")).env("PATH", path);
        command.env("HOME", self.path("home")).env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
        command.env("VRAMLENS_NVML_LIB", self.fake.library()).env_remove("XDG_CONFIG_HOME");
        command.env("VRAMLENS_TEST_DEVICES", devices).env_remove("NO_COLOR").env_remove("COLUMNS");
        if line.starts_with("vramlens doctor") {
            command.env("VRAMLENS_TEST_ROOT", self.path("machine"));
        }
        // Into files: a pipe would stay open as long as anybody who was started.
        command.stdin(Stdio::null());
        command.stdout(std::fs::File::create(&out).unwrap());
        command.stderr(std::fs::File::create(&errors).unwrap());
        let mut child = command.spawn().unwrap();
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                let _ = child.kill();
                panic!("{line}: not done within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let read = |path: &Path| std::fs::read(path).unwrap();
        Output { status, stdout: read(&out), stderr: read(&errors) }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Ok(survivor) = i32::try_from(self.pids[1]) {
            let pid = nix::unistd::Pid::from_raw(survivor);
            // It may be gone: then only if it is still what was started.
            let comm = std::fs::read_to_string(format!("/proc/{survivor}/comm"));
            if comm.is_ok_and(|name| name.trim() == "finetune") {
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
        }
    }
}

fn pid_after(said: &mut impl BufRead, word: &str) -> u32 {
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it said nothing of {word}");
        if let Some(pid) = line.strip_prefix(word) {
            return pid.trim().parse().unwrap();
        }
    }
}

fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    if !path.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "--example", name]).status();
        assert!(built.unwrap().success());
    }
    path
}
