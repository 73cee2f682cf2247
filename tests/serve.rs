//! `vramlens serve` over the stand-in driver: what is exported, who gets it, and who can do harm.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/fake.rs"]
mod fake;
#[path = "serve/server.rs"]
mod server;

use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use fake::Fake;
use server::{Server, until, value};

const TWO: &str = "count_calls = true\n[[gpu]]\nutilization = [96, 51]\npower_mw = 612000\n\
                   process = [{ pid = 32761, bytes = 92449751040 }, \
                   { pid = 32762, bytes = 1073741824 }, { pid = 32763, bytes = 2147483648 }]\n\
                   [[gpu]]\n";

#[test]
fn the_figures_are_those_of_the_driver() {
    let fake = Fake::new(TWO);
    let server = Server::start(&fake, &["--holders", "1"]);
    let page = server.wait_for("vramlens_gpu_memory_total_bytes");
    let gpu = |name: &str| value(&page, name, &["gpu=\"0\""]);
    assert_eq!(gpu("vramlens_gpu_memory_total_bytes"), Some(140.0 * 1_073_741_824.0));
    assert_eq!(gpu("vramlens_gpu_memory_reserved_bytes"), Some(644_939_776.0));
    assert_eq!(gpu("vramlens_gpu_memory_used_bytes"), Some(95_670_976_512.0));
    assert_eq!(gpu("vramlens_gpu_utilization_percent"), Some(96.0));
    assert_eq!(gpu("vramlens_gpu_power_watts"), Some(612.0));
    assert_eq!(gpu("vramlens_gpu_sm_clock_hertz"), Some(345e6));
    assert_eq!(gpu("vramlens_gpu_fan_percent"), None, "a GPU without a fan has no 0");
    assert_eq!(gpu("vramlens_gpu_pcie_receive_bytes_per_second"), None, "it was not asked for");
    let holder = |pid: &str| value(&page, "vramlens_holder_memory_bytes", &[pid, "gpu=\"0\""]);
    assert_eq!(holder("pid=\"32761\""), Some(92_449_751_040.0));
    assert_eq!(holder("pid=\"rest\""), Some(3_221_225_472.0));
    assert_eq!(holder("pid=\"32762\""), None);
    assert_eq!(value(&page, "vramlens_holders_without_series", &["gpu=\"0\""]), Some(2.0));
    assert_eq!(value(&page, "vramlens_up", &[]), Some(1.0));
    assert!(value(&page, "vramlens_cpu_seconds_total", &[]) > Some(0.0));
    assert!(value(&page, "vramlens_resident_bytes", &[]) > Some(1e6));
}

#[test]
fn a_scrape_never_reaches_the_driver() {
    let fake = Fake::new(TWO);
    let server = Server::start(&fake, &["--interval", "1m"]);
    server.wait_for("vramlens_gpu_memory_total_bytes");
    let calls = fake.calls("nvmlDeviceGetMemoryInfo_v2");
    assert!(calls > 0);
    for _ in 0..100 {
        assert_eq!(server.get("/metrics", &[]).0, 200);
    }
    assert_eq!(fake.calls("nvmlDeviceGetMemoryInfo_v2"), calls);
}

#[test]
fn both_formats_are_spoken() {
    let fake = Fake::new(TWO);
    let server = Server::start(&fake, &[]);
    server.wait_for("vramlens_gpu_memory_total_bytes");
    let (code, head, page) = server.get("/metrics", &["Accept: application/openmetrics-text"]);
    assert_eq!(code, 200);
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(page.ends_with("# EOF\n"), "{page}");
    assert!(page.contains("# TYPE vramlens_looks counter\nvramlens_looks_total "), "{page}");
    assert!(page.contains("# UNIT vramlens_gpu_memory_free_bytes bytes\n"), "{page}");
    let (_, head, page) = server.get("/metrics", &["Accept: text/plain"]);
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(page.contains("# TYPE vramlens_looks_total counter\n"), "{page}");
    assert!(!page.contains("EOF") && !page.contains("# UNIT"), "{page}");
}

#[test]
fn a_driver_that_hangs_leaves_no_old_figures() {
    let fake = Fake::new("[[gpu]]\n");
    let server = Server::start(&fake, &[]);
    server.wait_for("vramlens_gpu_memory_total_bytes");
    let (code, _, text) = server.get("/healthz", &[]);
    assert_eq!((code, text.as_str()), (200, "ok\n"));
    fake.change("[[gpu]]\n[[stall]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\n");
    let page = until("the stall shows", || {
        let page = server.get("/metrics", &[]).2;
        (value(&page, "vramlens_up", &[]) == Some(0.0)).then_some(page)
    });
    assert!(!page.contains("vramlens_gpu_memory_"), "{page}");
    assert!(value(&page, "vramlens_stalled_seconds", &[]) > Some(0.0), "{page}");
    assert!(value(&page, "vramlens_gpus_age_seconds", &[]) > Some(1.0), "{page}");
    until("the call is named", || {
        let (code, _, why) = server.get("/healthz", &[]);
        (code == 503 && why.contains("nvmlDeviceGetMemoryInfo_v2")).then_some(())
    });
    fake.change("[[gpu]]\n");
    server.wait_for("vramlens_gpu_memory_total_bytes");
}

#[test]
fn without_a_driver_it_waits_for_one() {
    let fake = Fake::new("[[gpu]]\n[[error]]\ncall = \"nvmlInit*\"\ncode = 9\n");
    let server = Server::start(&fake, &[]);
    until("the failure is counted", || {
        let page = server.get("/metrics", &[]).2;
        (value(&page, "vramlens_failed_looks_total", &[]) > Some(0.0)).then_some(())
    });
    let (code, _, why) = server.get("/healthz", &[]);
    assert_eq!(code, 503);
    assert!(why.contains("kernel module is not loaded"), "{why}");
    fake.change("[[gpu]]\n");
    server.wait_for("vramlens_gpu_memory_total_bytes");
    assert_eq!(server.get("/healthz", &[]).0, 200);
}

#[test]
fn a_token_keeps_strangers_out() {
    let fake = Fake::new("[[gpu]]\n");
    let file = fake.dir().join("token");
    std::fs::write(&file, "s3cret\n").unwrap();
    let server = Server::start(&fake, &["--token-file", file.to_str().unwrap()]);
    let (code, head, page) = server.get("/metrics", &[]);
    assert_eq!(code, 401);
    assert!(
        head.contains("www-authenticate: Bearer") && !page.contains("vramlens_"),
        "{head}{page}"
    );
    assert_eq!(server.get("/metrics", &["Authorization: Bearer s3creT"]).0, 401);
    assert_eq!(server.get("/metrics", &["Authorization: Bearer s3cret"]).0, 200);
    assert_ne!(server.get("/healthz", &[]).0, 401);
}

#[test]
fn slow_readers_and_thousands_of_connections_do_no_harm() {
    let fake = Fake::new(TWO);
    let server = Server::start(&fake, &[]);
    server.wait_for("vramlens_gpu_memory_total_bytes");
    let mut idle = Vec::new();
    for n in 0..2000 {
        let Ok(mut stream) = server.connect() else { continue };
        // Half of them begin a request and never end it.
        if n % 2 == 0 {
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ");
        }
        idle.push(stream);
        // The limit of this test's own files.
        if idle.len() > 300 {
            idle.remove(0);
        }
        if n % 500 == 0 {
            assert_eq!(server.get("/metrics", &[]).0, 200, "after {n}");
        }
    }
    let page = server.get("/metrics", &[]).2;
    assert!(page.contains("vramlens_gpu_memory_total_bytes"));
    until("the idle ones are counted", || {
        let page = server.get("/metrics", &[]).2;
        (value(&page, "vramlens_http_cut_connections_total", &[]) > Some(1000.0)).then_some(())
    });
    assert!(server.open_files() < 200, "{} files are open", server.open_files());
    drop(idle);
}

#[test]
fn nonsense_is_refused() {
    let fake = Fake::new(TWO);
    let server = Server::start(&fake, &[]);
    for request in [
        "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
        "GET /etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01",
        "GET  HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = server.connect().unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 40"), "{request:?}: {answer}");
    }
    let mut stream = server.connect().unwrap();
    let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n");
    let _ = stream.write_all("X: y\r\n".repeat(50_000).as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    assert_eq!(server.get("/metrics", &[]).0, 200);
}

#[test]
fn other_machines_are_not_let_in_by_mistake() {
    let fake = Fake::new("[[gpu]]\n");
    let output = server::command(&fake, &["--listen", "0.0.0.0:0"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--allow-remote"), "{text}");
}

#[test]
fn a_file_for_the_textfile_collector_is_kept_and_taken_away() {
    let fake = Fake::new(TWO);
    let file = fake.dir().join("vramlens.prom");
    let mut child =
        server::command(&fake, &["--textfile", file.to_str().unwrap()]).spawn().unwrap();
    until("the file is written", || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.contains("vramlens_gpu_memory_total_bytes{").then_some(())
    });
    server::signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!file.exists());
}

#[test]
fn systemd_hears_when_it_is_ready() {
    let fake = Fake::new("[[gpu]]\n");
    let socket = fake.dir().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut command = server::command(&fake, &["--listen", "127.0.0.1:0"]);
    let mut child = command.env("NOTIFY_SOCKET", &socket).spawn().unwrap();
    let hear = || {
        let mut message = [0; 64];
        let length = manager.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    };
    assert_eq!(hear(), "READY=1");
    server::signal(&child, "TERM");
    assert_eq!(hear(), "STOPPING=1");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
