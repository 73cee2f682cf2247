//! A process that looks like one that runs PyTorch, for whoever looks at it from outside.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Once;

use tempfile::TempDir;

/// Where cargo puts examples; builds those that are needed.
pub fn examples() -> PathBuf {
    static BUILD: Once = Once::new();
    let exe = std::env::current_exe().unwrap();
    let profile = exe.parent().and_then(Path::parent).unwrap();
    BUILD.call_once(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--example", "fake_torch", "--example", "torch_host"]);
        cargo.args(["--example", "alloc_read"]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
    });
    profile.join("examples")
}

/// It ends with the test.
pub struct Torch {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub directory: TempDir,
}

impl Torch {
    /// Of this release of PyTorch, as another user where one is given.
    pub fn start(torch: &str, user: Option<u32>) -> Self {
        let (examples, directory) = (examples(), TempDir::new().unwrap());
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        // From there, since others may not reach the folder of the build.
        let (library, program) =
            (directory.path().join("libc10_cuda.so"), directory.path().join("torch_host"));
        std::fs::copy(examples.join("libfake_torch.so"), &library).unwrap();
        std::fs::copy(examples.join("torch_host"), &program).unwrap();
        let device = std::fs::File::create(directory.path().join("nvidia-uvm")).unwrap();
        let mut command = Command::new(program);
        command.arg(&library).arg(torch).stdin(Stdio::piped()).stdout(Stdio::piped());
        // It is open as long as the process lives.
        command.stderr(device);
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut torch = Self { child, input, output, directory };
        assert_eq!(torch.line(), "ready");
        torch
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// For `VRAMLENS_TEST_DEVICES`: the file that it has open, as NVIDIA's for unified memory.
    pub fn devices(&self) -> String {
        format!("{}=uvm", self.directory.path().join("nvidia-uvm").display())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Allocates and frees so often; gives what is allocated and reserved then, in bytes.
    pub fn step(&mut self, times: u32) -> (u64, u64) {
        writeln!(self.input, "step {times}").unwrap();
        let truth: serde_json::Value = serde_json::from_str(&self.line()).unwrap();
        let current = |array: usize| truth["arrays"][array][0][0].as_u64().unwrap();
        (current(4), current(5))
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
