//! A running `vramlens serve` and a plain client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::fake::Fake;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(40);

pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

/// `vramlens serve` over a stand-in driver.
pub fn command(fake: &Fake, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
    command.arg("serve").args(args).env("VRAMLENS_NVML_LIB", fake.library());
    command.env_remove("NOTIFY_SOCKET").stderr(Stdio::piped()).stdin(Stdio::null());
    command
}

pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// The value once there is one.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "never seen: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The value of the sample of this name whose labels hold all of these.
pub fn value(page: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let is = |line: &&str| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    };
    page.lines().find(is)?.rsplit(' ').next()?.parse().ok()
}

impl Server {
    /// On a free port; it is there once this returns.
    pub fn start(fake: &Fake, args: &[&str]) -> Self {
        Self::start_on(fake, "127.0.0.1:0", args)
    }

    /// On this address.
    pub fn start_on(fake: &Fake, listen: &str, args: &[&str]) -> Self {
        Self::of(command(fake, &[&["--listen", listen], args].concat()))
    }

    /// Started so.
    pub fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.ok()?;
            let rest = line.split_once("http://")?.1;
            rest.split('/').next()?.parse().ok()
        });
        // What it says further is read, so that it never waits for this test.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address: address.expect("an address on standard error") }
    }

    #[allow(dead_code, reason = "not every test looks at the process")]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(20))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(stream)
    }

    /// Status, head and body.
    pub fn get(&self, path: &str, headers: &[&str]) -> (u16, String, String) {
        let mut stream = self.connect().unwrap();
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
        for header in headers {
            request += &format!("{header}\r\n");
        }
        stream.write_all((request + "\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, head.to_owned(), body.to_owned())
    }

    /// The page, once it has this.
    pub fn wait_for(&self, text: &str) -> String {
        until(text, || Some(self.get("/metrics", &[]).2).filter(|page| page.contains(text)))
    }

    #[allow(dead_code, reason = "not every test that has a server sends it one")]
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
