//! A real Prometheus scrapes a real `vramlens serve`, evaluates the rules of `assets/`, and answers
//! queries. Where `prometheus` and `promtool` are not installed there is nothing to try.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::float_cmp)]

#[path = "support/fake.rs"]
mod fake;
#[path = "serve/server.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod server;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fake::Fake;
use serde_json::Value;
use server::{Server, until};

/// The alerts wait for minutes; a test does not.
const HASTY: &str = "        for: 1s";

/// A program of the search path.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|p| p.is_file());
    if found.is_none() {
        eprintln!("{name} is not installed: not tried");
    }
    found
}

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/prometheus")
}

struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    fn start(program: &Path, folder: &Path, target: SocketAddr) -> Self {
        for file in ["recording.yml", "alerts.yml"] {
            let rules = std::fs::read_to_string(assets().join(file)).unwrap();
            let is_wait = |line: &&str| line.trim_start().starts_with("for: ");
            let hasty = rules.lines().map(|line| if is_wait(&line) { HASTY } else { line });
            let hasty: Vec<&str> = hasty.collect();
            std::fs::write(folder.join(file), hasty.join("\n") + "\n").unwrap();
        }
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
             rule_files: [recording.yml, alerts.yml]\n\
             scrape_configs:\n  - job_name: vramlens\n    static_configs: [{{ targets: ['{target}'] }}]\n"
        );
        std::fs::write(folder.join("prometheus.yml"), config).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let child = Command::new(program)
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, address }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        Some(answer["data"].clone())
    }

    /// The value of the first series that a query finds.
    fn query(&self, query: &str) -> Option<f64> {
        let escaped = query.bytes().fold(String::new(), |all, byte| all + &format!("%{byte:02x}"));
        let found = self.get(&format!("/api/v1/query?query={escaped}"))?;
        found["result"][0]["value"][1].as_str()?.parse().ok()
    }

    fn fires(&self, alert: &str) -> bool {
        let alerts = self.get("/api/v1/alerts").unwrap_or_default();
        let is = |one: &Value| one["labels"]["alertname"] == alert && one["state"] == "firing";
        alerts["alerts"].as_array().is_some_and(|all| all.iter().any(is))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_real_prometheus_reads_it_and_its_rules_fire() {
    let Some(program) = program("prometheus") else { return };
    let gpu =
        "[[gpu]]\nunaccounted = 4294967296\nprocess = [{ pid = 32761, bytes = 1073741824 }]\n";
    let fake = Fake::new(gpu);
    let server = Server::start(&fake, &[]);
    server.wait_for("vramlens_gpu_memory_total_bytes");
    let folder = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(&program, folder.path(), server.address);

    let free = f64::from(140 - 4 - 1) * 1_073_741_824.0 - 644_939_776.0;
    until("the free memory", || {
        let found = prometheus.query("vramlens_gpu_memory_free_bytes{gpu=\"0\"}")?;
        (found == free).then_some(())
    });
    until("the recorded rule", || {
        let found = prometheus.query("instance:vramlens_gpu_memory_free_bytes:max >= 24 * 2^30")?;
        (found == free).then_some(())
    });
    until("the holder", || {
        let found = prometheus.query("vramlens_holder_memory_bytes{pid=\"32761\"}")?;
        (found == 1_073_741_824.0).then_some(())
    });
    until("unaccounted memory", || prometheus.fires("VramUnaccounted").then_some(()));
    assert!(!prometheus.fires("VramDriverDoesNotAnswer"));

    fake.change(&format!("{gpu}[[stall]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\n"));
    until("the alert", || prometheus.fires("VramDriverDoesNotAnswer").then_some(()));
    until("figures that are gone", || {
        prometheus.query("vramlens_gpu_memory_free_bytes").is_none().then_some(())
    });
    load(&server);
    assert_eq!(prometheus.query("up"), Some(1.0));
}

/// Many clients at once while the driver hangs, where `wrk` is installed.
fn load(server: &Server) {
    let Some(wrk) = program("wrk") else { return };
    let output = Command::new(wrk)
        .args(["-t2", "-c100", "-d3s"])
        .arg(format!("http://{}/metrics", server.address))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("Non-2xx"), "{text}{error}");
    assert_eq!(server.get("/metrics", &[]).0, 200);
}

#[test]
fn promtool_has_nothing_to_object() {
    let Some(promtool) = program("promtool") else { return };
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&promtool);
        command.args(arguments).current_dir(assets());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["check", "rules", "recording.yml", "alerts.yml"]);
    run(&["check", "config", "scrape.yml"]);
    run(&["test", "rules", "tests.yml"]);

    let fake = Fake::new(include_str!("scenarios/one.toml"));
    let server = Server::start(&fake, &[]);
    let page = server.wait_for("vramlens_gpu_memory_total_bytes");
    let mut lint = Command::new(&promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    lint.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = lint.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
