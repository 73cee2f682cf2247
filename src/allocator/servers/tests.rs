use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::ids::CudaOrdinal;
use crate::sample::{ServedDevice, ServedModel};
use crate::units::{Bytes, Percent};

const NOW: Stamp = Stamp { boot_ms: 7, wall_ms: 7 };

fn read(software: ServerSoftware, question: usize, body: &str) -> Option<ServerSample> {
    let mut sample = empty(software, 1, NOW);
    let row = TABLE.iter().find(|row| row.software == software).unwrap();
    (row.questions[question].1)(body.as_bytes(), &mut sample).then_some(sample)
}

#[test]
fn vllm_says_how_full_its_cache_is() {
    let page = "# HELP vllm:kv_cache_usage_perc KV-cache usage.\n\
        # TYPE vllm:kv_cache_usage_perc gauge\n\
        vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"a {odd} name\"} 0.25\n\
        vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.5\n\
        vllm:num_requests_running{engine=\"0\"} 3.0\n\
        vllm:num_requests_running{engine=\"1\"} 4.0\n\
        vllm:num_requests_waiting{engine=\"0\"} 1.0 1395066363000\n\
        vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1.0\n";
    let sample = read(ServerSoftware::Vllm, 0, page).unwrap();
    assert_eq!(sample.kv_used, Some(Percent(50.0)));
    assert_eq!((sample.running, sample.waiting), (Some(7), Some(1)));
    assert_eq!(sample.kv_tokens, Some(16_000));
    let old = read(ServerSoftware::Vllm, 0, "vllm:gpu_cache_usage_perc 0.125\n").unwrap();
    assert_eq!((old.kv_used, old.running), (Some(Percent(12.5)), None));
    for other in ["", "go_goroutines 12\n", "vllm:kv_cache_usage_perc NaN\n", "<html>"] {
        assert_eq!(read(ServerSoftware::Vllm, 0, other), None);
    }
}

#[test]
fn sglang_says_how_full_its_pool_is() {
    let page = "sglang:token_usage{model_name=\"q\"} 0.52\nsglang:num_running_reqs 8\n\
        sglang:num_queue_reqs 4\nsglang:max_total_num_tokens 400000\n";
    let sample = read(ServerSoftware::Sglang, 0, page).unwrap();
    assert_eq!(sample.kv_used, Some(Percent(52.0)));
    assert_eq!((sample.running, sample.waiting), (Some(8), Some(4)));
    assert_eq!(sample.kv_tokens, Some(400_000));
}

#[test]
fn llama_cpp_says_what_its_slots_do() {
    let props = r#"{"default_generation_settings":{"n_ctx":4096,"params":{}},"total_slots":4,
        "model_path":"/models/a.gguf"}"#;
    let sample = read(ServerSoftware::LlamaCpp, 0, props).unwrap();
    assert_eq!(sample.slots, Some(4));
    assert_eq!(
        (sample.models[0].name.as_str(), sample.models[0].context_tokens),
        ("a.gguf", Some(4096))
    );
    let slots = r#"[{"id":0,"n_ctx":4096,"is_processing":true,"prompt":"secret"},
        {"id":1,"n_ctx":4096,"is_processing":false}]"#;
    let sample = read(ServerSoftware::LlamaCpp, 1, slots).unwrap();
    assert_eq!((sample.kv_tokens, sample.running), (Some(8192), Some(1)));
    assert!(!format!("{sample:?}").contains("secret"));
    let metrics = "llamacpp:kv_cache_usage_ratio 0.75\nllamacpp:requests_processing 2\n";
    let sample = read(ServerSoftware::LlamaCpp, 2, metrics).unwrap();
    assert_eq!((sample.kv_used, sample.running), (Some(Percent(75.0)), Some(2)));
    assert_eq!(read(ServerSoftware::LlamaCpp, 0, r#"{"error":{"code":503}}"#), None);
    assert_eq!(read(ServerSoftware::LlamaCpp, 1, "[]"), None);
}

#[test]
fn ollama_says_which_models_are_loaded() {
    let body = r#"{"models":[{"name":"llama3:8b","model":"llama3:8b","size":6000000000,
        "size_vram":5000000000,"context_length":8192,"expires_at":"2026-01-01T00:00:00Z"}]}"#;
    let sample = read(ServerSoftware::Ollama, 0, body).unwrap();
    assert_eq!(
        sample.models,
        [ServedModel {
            name: "llama3:8b".to_owned(),
            size: Some(Bytes(6_000_000_000)),
            in_vram: Some(Bytes(5_000_000_000)),
            context_tokens: Some(8192),
            expires: Some("2026-01-01T00:00:00Z".to_owned()),
        }]
    );
    assert_eq!(read(ServerSoftware::Ollama, 0, r#"{"models":[]}"#).unwrap().models, []);
    let long = format!(r#"{{"models":[{{"name":"{}"}}]}}"#, "x".repeat(100_000));
    assert_eq!(read(ServerSoftware::Ollama, 0, &long).unwrap().models[0].name.len(), 256);
}

#[test]
fn comfyui_says_what_its_allocator_holds() {
    let body = r#"{"system":{"os":"posix"},"devices":[
        {"name":"cuda:0 NVIDIA","type":"cuda","index":0,"vram_total":100,"vram_free":50,
         "torch_vram_total":40,"torch_vram_free":15},
        {"name":"cpu","type":"cpu","index":null,"torch_vram_total":8,"torch_vram_free":7},
        {"type":"cuda","index":1,"torch_vram_total":1,"torch_vram_free":2}]}"#;
    let sample = read(ServerSoftware::ComfyUi, 0, body).unwrap();
    let (ordinal, reserved, cached) = (CudaOrdinal(0), Bytes(40), Bytes(15));
    assert_eq!(sample.devices, [ServedDevice { ordinal, reserved, cached }]);
}

#[test]
fn software_is_told_by_its_arguments() {
    for (line, expected) in [
        ("/usr/bin/python3 /opt/bin/vllm serve model", Some(ServerSoftware::Vllm)),
        ("python -m vllm.entrypoints.openai.api_server", Some(ServerSoftware::Vllm)),
        ("python3 -m sglang.launch_server --model x", Some(ServerSoftware::Sglang)),
        ("/opt/llama.cpp/llama-server -m a.gguf", Some(ServerSoftware::LlamaCpp)),
        ("/usr/local/bin/ollama serve", Some(ServerSoftware::Ollama)),
        ("ollama run llama3", None),
        ("python /home/me/ComfyUI/main.py --listen", Some(ServerSoftware::ComfyUi)),
        ("python main.py", None),
        ("python train.py --note vllm", None),
        ("jupyter-lab", None),
        ("", None),
    ] {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(software(&arguments), expected, "{line}");
    }
}

/// A server that answers each connection with these bytes, and the request that it got.
fn serve(answers: Vec<Vec<u8>>) -> (u16, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        answers
            .into_iter()
            .map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let count = stream.read(&mut request).unwrap();
                // The client may have had enough of it.
                let _enough = stream.write_all(&answer);
                String::from_utf8_lossy(&request[..count]).into_owned()
            })
            .collect()
    });
    (port, server)
}

const PATIENT: AskLimits = AskLimits { time: Duration::from_secs(20), bytes: 1 << 20 };

#[test]
fn a_server_is_asked_with_nothing_but_a_get() {
    let body = r#"{"models":[]}"#;
    let answer = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (port, server) = serve(vec![answer.into_bytes()]);
    let pid = Pid(std::process::id());
    let sample = ask(ServerSoftware::Ollama, pid, &[port], NOW, &PATIENT);
    assert_eq!(sample.value().map(|sample| (sample.port, sample.at)), Some((port, NOW)));
    let expected = format!("GET /api/ps HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n\r\n");
    assert_eq!(server.join().unwrap(), [expected]);
}

#[test]
fn answers_that_are_none_are_absent_with_their_reason() {
    let cases: [(&str, Why); 7] = [
        ("HTTP/1.1 401 Unauthorized\r\n\r\n", Why::NoPermission),
        ("HTTP/1.1 404 Not Found\r\n\r\n", Why::NotSupported),
        ("HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n\r\n", Why::Failed(302)),
        ("HTTP/1.1 503 Busy\r\n\r\n", Why::Failed(503)),
        ("SSH-2.0-OpenSSH_9.6\r\n", Why::Nonsense),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Why::Nonsense),
        ("HTTP/1.1 200 OK\r\n\r\nnot json", Why::NotSupported),
    ];
    for (answer, why) in cases {
        let (port, server) = serve(vec![answer.as_bytes().to_vec()]);
        let sample = ask_here(ServerSoftware::Ollama, &[port], NOW, &PATIENT);
        assert_eq!(sample, Reading::Absent(why), "{answer}");
        server.join().unwrap();
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        4\r\n{\"mo\r\n9;x=y\r\ndels\":[]}\r\n0\r\n\r\n";
    let (port, server) = serve(vec![chunked.as_bytes().to_vec()]);
    assert!(ask_here(ServerSoftware::Ollama, &[port], NOW, &PATIENT).value().is_some());
    server.join().unwrap();
}

#[test]
fn an_endless_answer_is_cut_off() {
    let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    answer.resize(4 << 20, b'x');
    let (port, server) = serve(vec![answer]);
    let sample = ask_here(ServerSoftware::Ollama, &[port], NOW, &PATIENT);
    assert_eq!(sample, Reading::Absent(Why::Nonsense));
    server.join().unwrap();
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let limits = AskLimits { time: Duration::from_millis(50), ..PATIENT };
    let silent = ask_here(ServerSoftware::LlamaCpp, &[port], NOW, &limits);
    assert_eq!(silent, Reading::Absent(Why::TimedOut));
    drop(listener);
    let closed = ask_here(ServerSoftware::LlamaCpp, &[port], NOW, &PATIENT);
    assert_eq!(closed, Reading::Absent(Why::NotSupported));
}

#[test]
fn another_network_is_not_asked() {
    let root = tempfile::TempDir::new().unwrap();
    for (pid, namespace) in [("self", "net:[1]"), ("5", "net:[1]"), ("6", "net:[2]")] {
        let folder = root.path().join(pid).join("ns");
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(namespace, folder.join("net")).unwrap();
    }
    assert_eq!(same_network(root.path(), Pid(5)), Ok(true));
    assert_eq!(same_network(root.path(), Pid(6)), Ok(false));
    assert_eq!(same_network(root.path(), Pid(7)), Err(Why::Gone));
}

proptest! {
    #[test]
    fn any_answer_is_survived(body: Vec<u8>, head in "HTTP/1.[01] 200 [a-z:\r\n ]{0,40}\r\n\r\n[0-9a-f\r\n]{0,30}") {
        for row in &TABLE {
            for (_, read) in row.questions {
                read(&body, &mut empty(row.software, 1, NOW));
            }
        }
        let _any = http::body(&body, 100);
        let _any = http::body(head.as_bytes(), 100);
    }

    #[test]
    fn any_page_of_metrics_is_survived(page in "([a-z:{}=\" 0-9.#\n]|vllm:kv_cache_usage_perc| [0-9]\n){0,60}") {
        answers::vllm(page.as_bytes(), &mut empty(ServerSoftware::Vllm, 1, NOW));
    }
}
