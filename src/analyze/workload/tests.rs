use super::*;
use crate::ids::{Pid, ProcId};
use crate::sample::{EnvVar, NvidiaFds, ProcState};
use proptest::prelude::*;

fn process(words: &[&str]) -> ProcSample {
    let comm = words.first().map_or("x", |w| w.rsplit('/').next().unwrap());
    ProcSample {
        id: ProcId { pid: Pid(100), start_ticks: 1 },
        comm: comm.chars().take(15).collect(),
        cmdline: Reading::Value(words.iter().map(|w| (*w).to_owned()).collect()),
        uid: Reading::Value(1000),
        user: Reading::Absent(Why::NotAsked),
        state: ProcState::Sleeping,
        parent: Pid(1),
        group: Pid(100),
        session: Pid(100),
        tty: 0,
        flags: 0,
        threads: 1,
        threads_in_d: 0,
        threads_unread: None,
        read_boot_ms: None,
        cpu_ticks: 0,
        cpu: Reading::Absent(Why::NotYet),
        rss: Reading::Absent(Why::NotAsked),
        started_boot_ms: 0,
        cgroup: Reading::Absent(Why::NotAsked),
        unit: None,
        container: None,
        slurm_job: None,
        frozen: false,
        namespace_pids: Vec::new(),
        tracer: Pid(0),
        signals: None,
        devices: Reading::Value(NvidiaFds::default()),
        wait_channel: None,
        written: None,
        listens: Vec::new(),
        stdio_deleted: false,
        environment: None,
        model_files: Vec::new(),
        allocator: None,
        server: None,
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn known(line: &str) -> Workload {
    match recognise(&process(&words(line)), &[]) {
        Recognition::Known(workload) => workload,
        other => panic!("{line}: {other:?}"),
    }
}

fn with_variable(mut p: ProcSample, name: &str, value: &str) -> ProcSample {
    let variable = EnvVar { name: name.to_owned(), value: value.to_owned() };
    p.environment = Some(Reading::Value(vec![variable]));
    p
}

#[test]
fn every_software_has_a_hit() {
    use Software::*;
    let cases = [
        ("/opt/llama.cpp/llama-server -m a.gguf -c 8192 -ngl 33", LlamaCpp),
        ("python3 koboldcpp.py --model a.gguf --contextsize 4096", LlamaCpp),
        ("python -m llama_cpp.server --model a.gguf", LlamaCpp),
        ("/usr/bin/ollama runner --model /x/sha256-1 --ctx-size 4096 --parallel 4", Ollama),
        ("/usr/local/bin/ollama serve", Ollama),
        ("/usr/lib/ollama/llama-server -m /x/sha256-1 -c 4096", Ollama),
        ("/venv/bin/python3 /venv/bin/vllm serve org/model --max-model-len 32k", Vllm),
        ("python -m vllm.entrypoints.openai.api_server --model org/model", Vllm),
        ("VLLM::EngineCore", Vllm),
        ("python3.11 -m sglang.launch_server --model-path org/model --tp 2", Sglang),
        ("sglang::scheduler_TP0", Sglang),
        ("text-generation-launcher --model-id org/model", Tgi),
        ("/opt/conda/bin/python3.11 /opt/conda/bin/text-generation-server serve org/model", Tgi),
        ("python /srv/tabbyAPI/main.py --model-dir /m", Exllama),
        ("python3 /root/exllamav2/test_inference.py -m /m", Exllama),
        ("trtllm-serve org/model --tp_size 2", TensorRtLlm),
        ("/opt/tritonserver/bin/tritonserver --model-repository /m", TensorRtLlm),
        ("python3 /home/ana/ComfyUI/main.py --listen", ComfyUi),
        ("python main.py --highvram", ComfyUi),
        ("python launch.py --xformers --medvram", A1111),
        ("python3 /opt/stable-diffusion-webui/webui.py", A1111),
        ("whisper-server -m ggml-large-v3.bin", WhisperCpp),
        ("/usr/bin/python3 -m ipykernel_launcher -f /run/kernel-1.json", Jupyter),
        ("/usr/bin/python3 /usr/local/bin/jupyter-lab --no-browser", Jupyter),
        (
            "python train_dreambooth.py --pretrained_model_name_or_path x --resolution 1024",
            Diffusers,
        ),
        ("python run_clm.py --model_name_or_path x --per_device_train_batch_size 4", Transformers),
        ("accelerate launch sft.py --model_name_or_path x --bs 2", Transformers),
        ("torchrun --nproc_per_node 8 train.py", Torch),
        ("python -m torch.distributed.run train.py", Torch),
        ("python -m MaxText.train config.yml", Jax),
        ("tensorflow_model_server --port=8500", TensorFlow),
    ];
    for (line, software) in cases {
        assert_eq!(known(line).software, software, "{line}");
    }
    let seen: std::collections::BTreeSet<_> = cases.iter().map(|case| case.1).collect();
    assert_eq!(seen.len(), SIGNATURES.len(), "a signature without a case");
}

#[test]
fn other_programs_are_clear() {
    for line in [
        "/usr/bin/Xorg :0",
        "python3 main.py",
        "python server.py --port 80",
        "bash -c llama-server",
        "/usr/bin/ollama list",
        "vim llama-server.log",
        "python -c import_vllm",
        "/usr/lib/firefox/firefox",
        "nvidia-smi -l 1",
    ] {
        assert_eq!(recognise(&process(&words(line)), &[]), Recognition::Clear, "{line}");
    }
}

#[test]
fn what_cannot_be_read_cannot_be_told() {
    let mut hidden = process(&["python"]);
    hidden.cmdline = Reading::Absent(Why::NoPermission);
    assert_eq!(recognise(&hidden, &[]), Recognition::CannotTell(Why::NoPermission));
    hidden.cmdline = Reading::Value(Vec::new());
    assert_eq!(recognise(&hidden, &[]), Recognition::CannotTell(Why::Gone));
    // A name alone is enough where it is a telling one.
    hidden.cmdline = Reading::Absent(Why::NoPermission);
    hidden.comm = "VLLM::Worker_TP".to_owned();
    assert_eq!(recognise(&hidden, &[]).known().unwrap().software, Software::Vllm);
}

#[test]
fn settings_of_llama_cpp() {
    let line = "llama-server --model=/m/a.gguf -c 32k --n-gpu-layers 20 -ctk q8_0 --cache-type-v q4_0 \
                -np 4 -ub 256 -b 2048 -fa off --n-cpu-moe 10 --swa-full --api-key secret";
    let found = known(line);
    assert_eq!(found.model(), Some("/m/a.gguf"));
    assert_eq!(found.number(Setting::Context), Some(32_768));
    assert_eq!(found.number(Setting::GpuLayers), Some(20));
    assert_eq!(found.get(Setting::FlashAttention).unwrap().value, "off");
    assert_eq!(found.get(Setting::Context).unwrap().origin, Origin::Argument("-c".to_owned()));
    assert!(!format!("{found:?}").contains("secret"));
    let s = found.llama_settings().unwrap();
    assert_eq!((s.cache.keys, s.cache.values), (CacheType::Q8_0, CacheType::Q4_0));
    assert_eq!((s.cache.slots, s.cache.ubatch, s.gpu_layers, s.cpu_experts), (4, 256, 20, 10));
    assert!(!s.compute.flash && s.cache.full_window);
    assert_eq!(known("llama-server -m a.gguf").llama_settings(), None, "no context, no figures");
}

#[test]
fn a_running_server_tells_what_cuda_takes() {
    let (_, shape, weights) = crate::model::template::of_size("8B").unwrap();
    let found = known("llama-server -m a.gguf -c 8192 -np 1");
    let buffers = place(&shape, &weights, &found.llama_settings().unwrap()).on_gpus();
    let listed = Bytes(buffers + (300 << 20));
    let cuda = calibrate(&found, &shape, &weights, listed).unwrap();
    assert_eq!((cuda.bytes, cuda.measured), (300 << 20, true));
    assert_eq!(calibrate(&found, &shape, &weights, Bytes(buffers / 2)), None);
    let unknown = known("llama-server -m a.gguf");
    assert_eq!(calibrate(&unknown, &shape, &weights, listed), None);
}

#[test]
fn the_environment_and_the_parent_speak_too() {
    let p = with_variable(process(&["llama-server", "-m", "a.gguf"]), "LLAMA_ARG_CTX_SIZE", "4096");
    let found = recognise(&p, &[]);
    let context = found.known().unwrap().get(Setting::Context).unwrap();
    assert_eq!(context.origin, Origin::Environment("LLAMA_ARG_CTX_SIZE".to_owned()));

    let serve = with_variable(process(&["ollama", "serve"]), "OLLAMA_KV_CACHE_TYPE", "q8_0");
    let runner = process(&["/usr/lib/x/llama-server", "-m", "/x/sha256-1", "-c", "8192"]);
    let found = recognise(&runner, &[&serve]);
    let found = found.known().unwrap();
    assert_eq!(found.software, Software::Ollama);
    assert_eq!(found.llama_settings().unwrap().cache.values, CacheType::Q8_0);

    let parent = process(&words("python /v/bin/vllm serve org/m --gpu-memory-utilization 0.8"));
    let worker = process(&["VLLM::Worker_TP1"]);
    let found = recognise(&worker, &[&parent]);
    let found = found.known().unwrap();
    assert_eq!(found.model(), Some("org/m"));
    let fraction = found.get(Setting::MemoryFraction).unwrap();
    let expected = Origin::ParentArgument("--gpu-memory-utilization".to_owned());
    assert_eq!((fraction.value.as_str(), &fraction.origin), ("0.8", &expected));
}

#[test]
fn weak_signs_count_for_python_only() {
    let jax = with_variable(process(&["python", "x.py"]), "XLA_PYTHON_CLIENT_PREALLOCATE", "false");
    assert_eq!(recognise(&jax, &[]).known().unwrap().software, Software::Jax);
    let tf = with_variable(process(&["python", "x.py"]), "TF_GPU_ALLOCATOR", "cuda_malloc_async");
    assert_eq!(recognise(&tf, &[]).known().unwrap().software, Software::TensorFlow);
    let shell = with_variable(process(&["bash"]), "XLA_PYTHON_CLIENT_PREALLOCATE", "false");
    assert_eq!(recognise(&shell, &[]), Recognition::Clear);
    let mut script = process(&["python", "infer.py"]);
    script.model_files = vec!["/m/model-00001-of-00004.safetensors".to_owned()];
    let found = recognise(&script, &[]);
    let found = found.known().unwrap();
    assert_eq!(found.software, Software::Torch);
    assert!(matches!(found.get(Setting::Model).unwrap().origin, Origin::OpenFile(_)));
    let mut comfy = process(&["python", "main.py"]);
    comfy.model_files = vec!["/srv/ComfyUI/models/unet/flux.safetensors".to_owned()];
    assert_eq!(recognise(&comfy, &[]).known().unwrap().software, Software::ComfyUi);
}

proptest! {
    #[test]
    fn any_command_line_is_survived(
        words in proptest::collection::vec("(-{0,2}[a-z=\\-_0-9.]{0,12}|python|vllm|serve|-m|llama-server|\\PC{0,8})", 0..12),
        comm in "\\PC{0,15}",
    ) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut p = process(&words);
        p.comm = comm;
        if let Recognition::Known(found) = recognise(&p, &[&process(&words)]) {
            found.llama_settings();
            for setting in &found.settings {
                prop_assert!(setting.value.chars().count() <= KEPT);
            }
        }
    }
}
