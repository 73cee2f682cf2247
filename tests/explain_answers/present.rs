//! What is advised goes on from what the log shows, and its figure, title and line are of one thing.

use super::{MIB, all, file, line, note, said, told, torch, useless};
use vramlens::oom::{self, Explanation};

/// The line of what is none of the nine fixes.
fn beyond(text: &str) -> String {
    line(&said(text), 0).map(str::to_owned).unwrap_or_default()
}

fn title(answer: &Explanation, fix: u8) -> &str {
    answer.advice.iter().find(|advice| advice.fix == fix).map_or("", |advice| advice.title)
}

fn saves(answer: &Explanation, fix: u8) -> Option<u64> {
    answer.advice.iter().find(|advice| advice.fix == fix)?.saves_bytes
}

const STEP: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 \
    has a total capacity of 24.00 GiB of which 100.00 MiB is free. Including non-PyTorch memory, this \
    process has 23.80 GiB memory in use. Of the allocated memory 23.00 GiB is allocated by PyTorch, \
    and 100.00 MiB is reserved by PyTorch but unallocated.\n";

#[test]
fn limits_of_the_host_are_raised_from_what_they_are() {
    let killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=4.0. Some of the step tasks \
                  have been OOM Killed.\n";
    assert_eq!(beyond(&format!("#SBATCH --mem=256G\n{killed}")), "#SBATCH --mem=512G");
    assert_eq!(beyond(&format!("=== job, 1 x H100, mem=64G ===\n{killed}")), "#SBATCH --mem=128G");
    assert_eq!(beyond(&format!("#SBATCH --mem=512000\n{killed}")), "#SBATCH --mem=1000G");
    assert_eq!(beyond(killed), "#SBATCH --mem=128G");
    let pod = |limit: &str| {
        let text = std::fs::read_to_string(super::folder().join("047-k8s-oomkilled.txt")).unwrap();
        beyond(&text.replace("16Gi", limit))
    };
    assert_eq!(pod("16Gi"), "resources.limits.memory: 32Gi");
    assert_eq!(pod("64Gi"), "resources.limits.memory: 128Gi");
    let bus = "RuntimeError: DataLoader worker (pid 417) is killed by signal: Bus error. It is \
               possible that dataloader's workers are out of shared memory. Please try to raise your \
               shared memory limit.\n";
    assert_eq!(beyond(bus), "docker run --shm-size=8g ...");
    let now = beyond(&format!("$ docker run --gpus all --shm-size=16g ct python train.py\n{bus}"));
    assert_eq!(now, "docker run --shm-size=32g ...");
}

#[test]
fn settings_of_a_server_are_lowered_from_what_they_are() {
    let capture = |seqs: &str| {
        let frame = "INFO vllm/engine non-default args: {SEQS}\nCapturing CUDA graphs: 48%\n  File \
                     \"/opt/vllm/v1/worker/gpu_model_runner.py\", line 4480, in _capture_cudagraphs\n";
        let text = format!("{}{STEP}", frame.replace("SEQS", seqs));
        let answer = oom::explain(text.as_bytes());
        line(&answer, 4).map(str::to_owned).unwrap_or_default()
    };
    assert!(capture("'max_num_seqs': 16").starts_with("--max-num-seqs 8 "));
    assert!(capture("'max_num_seqs': 256").starts_with("--max-num-seqs 64 "));
    assert!(capture("").starts_with("--max-num-seqs 64 "));
    assert!(!capture("'max_num_seqs': 1").contains("--max-num-seqs"), "there is no less");
    let studio = |length: &str| {
        let text = format!(
            "$ lms load merlin --context-length {length}\nError: Model loading was stopped due to \
             insufficient system resources. Under the current settings, this model requires \
             approximately 42.92 GB of memory\n"
        );
        line(&said(&text), 1).map(str::to_owned)
    };
    assert_eq!(studio("4096").as_deref(), Some("lms load MODEL --context-length 2048"));
    assert_eq!(studio("65536").as_deref(), Some("lms load MODEL --context-length 32768"));
}

#[test]
fn a_cache_of_eight_bits_is_not_made_one_of_eight_bits() {
    let eight = file("071");
    assert_eq!(line(eight, 1), Some("-c 32768 -fa on"));
    assert_eq!(saves(eight, 1), Some(1152 * MIB), "half of 2304 MiB");
    let text = std::fs::read_to_string(super::folder().join("071-llamacpp-compute-buffer.txt"));
    let wide = said(&text.unwrap().replace("q8_0", "f16"));
    assert_eq!(line(&wide, 1), Some("-c 32768 -fa on -ctk q8_0 -ctv q8_0"));
    assert!(saves(&wide, 1) > saves(eight, 1), "{:?}", wide.advice);
    let served = |name: &str| {
        let text = std::fs::read_to_string(super::folder().join(name)).unwrap();
        said(&format!("server_args=ServerArgs(kv_cache_dtype='fp8_e5m2')\n{text}"))
    };
    for (number, name) in [("088", "088-sglang-prefill.txt"), ("082", "082-vllm-kv-needed.txt")] {
        let fp8 = |answer: &Explanation| {
            let all = answer.advice.iter();
            let mut lines = all.map(|a| format!("{} {:?}", a.line, a.note));
            lines.any(|line| line.contains("fp8"))
        };
        assert!(fp8(file(number)), "{number}");
        assert!(!fp8(&served(name)), "{number}: {:?}", served(name).advice);
    }
}

#[test]
fn memory_that_is_shared_has_no_layers_elsewhere() {
    let load = "  File \"/app/load.py\", line 3, in <module>\n    model.to(\"cuda\")\n";
    let board = said(&format!("Jetson Orin, JetPack 6\n{load}{STEP}"));
    assert!(!board.fixes.contains(&5) && !board.fixes.is_empty(), "{:?}", board.advice);
    let card = said(&format!("{load}{STEP}"));
    assert!(card.fixes.contains(&5), "{:?}", card.advice);
    for (name, answer) in all() {
        assert!(answer.platform != Some("jetson") || !answer.fixes.contains(&5), "{name}");
    }
}

const OPTIMIZER: &str = "  File \"/v/torch/optim/adamw.py\", line 176, in _init_group\n    \
    state[\"exp_avg_sq\"] = torch.zeros_like(p)\n";

#[test]
fn states_of_the_optimizer_are_as_wide_as_its_parameters() {
    let run = |before: &str, parameters: &str| {
        said(&format!("{before}Number of trainable parameters = {parameters}\n{OPTIMIZER}{STEP}"))
    };
    // 23 GiB for 2 G parameters are 12 bytes each, for 4 G 6.
    let wide = run("", "2,000,000,000");
    assert_eq!(saves(&wide, 2), Some(12_000_000_000), "{:?}", wide.advice);
    assert_eq!(note(&wide, 2), "6 bytes less a parameter; or LoRA on a 4-bit base");
    let half = run("", "4,000,000,000");
    assert_eq!(saves(&half, 2), Some(8_000_000_000));
    let zero = run("deepspeed train.py\n", "4,000,000,000");
    assert_eq!((zero.software, saves(&zero, 2)), ("deepspeed", None));
    assert!(line(&zero, 2).is_some_and(|line| line.contains("offload_optimizer")));
    let lora = run("python train_lora.py\n", "40,000,000");
    assert_eq!(saves(&lora, 2), None);
    assert!(!told(&lora).contains("LoRA on"), "{}", told(&lora));
    assert_eq!(title(&lora, 2), "Smaller optimizer state");
    let trainer = file("016");
    assert!(trainer.advice.iter().all(|advice| !advice.cost.contains("LoRA")));
}

#[test]
fn float32_weights_are_halved_in_title_figure_and_line() {
    let load = "dtype=torch.float32\n  File \"/app/load.py\", line 3, in <module>\n    \
                model.to(\"cuda\")\n";
    let plain = said(&format!("{load}{STEP}"));
    assert_eq!(title(&plain, 2), "Load the weights in 16 bits");
    assert_eq!(line(&plain, 2), Some("model.to(torch.bfloat16)"));
    assert_eq!(saves(&plain, 2), Some(23 * 512 * MIB), "half of 23 GiB");
}

#[test]
fn four_bits_are_made_on_the_device_and_only_where_it_is_one_of_cuda() {
    let load = "  File \"/app/load.py\", line 3, in <module>\n    model.to(\"cuda\")\n";
    let cuda = said(&format!("{load}{STEP}"));
    let typed = line(&cuda, 2).unwrap();
    assert!(typed.contains("torchao.quantization.Int4WeightOnlyConfig()"), "{typed}");
    assert!(typed.ends_with("device=\"cuda\")"), "{typed}");
    for (name, answer) in all() {
        let other = matches!(answer.software, "pytorch-mps" | "pytorch-xpu" | "pytorch-directml");
        let torchao = answer.advice.iter().any(|advice| advice.line.contains("torchao"));
        assert!(!(other && torchao), "{name}");
    }
}

#[test]
fn deepspeed_has_its_batch_in_its_own_config() {
    let text = format!(
        "deepspeed train.py\n{{\"train_micro_batch_size_per_gpu\": 8, \
         \"gradient_accumulation_steps\": 4}}\n    loss.backward()\n{STEP}"
    );
    let answer = said(&text);
    assert_eq!(
        line(&answer, 4),
        Some("\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 8")
    );
    let unknown = said(&format!("deepspeed train.py\n    loss.backward()\n{STEP}"));
    assert!(line(&unknown, 4).is_some_and(|line| line.contains("micro_batch_size_per_gpu")));
}

#[test]
fn the_batch_of_a_step_is_found_behind_the_global_one() {
    let answer = said(&format!(
        "train.py --global_batch_size=512 --micro_batch_size=4\n    loss.backward()\n{STEP}"
    ));
    assert!(line(&answer, 4).is_some_and(|line| line.starts_with("batch_size=2;")));
}

#[test]
fn vllm_chooses_its_length_itself_only_where_the_version_can() {
    let blocks = |version: &str| {
        let answer =
            said(&format!("{version}\nValueError: No available memory for the cache blocks.\n"));
        line(&answer, 1).map(str::to_owned).unwrap_or_default()
    };
    assert!(!blocks("").contains("auto"));
    assert!(!blocks("vLLM API server version 0.11.0").contains("auto"));
    assert_eq!(
        blocks("vLLM API server version 0.14.1"),
        "--gpu-memory-utilization 0.95 --max-model-len auto"
    );
}

#[test]
fn a_larger_device_helps_where_the_limit_is_a_part_of_it() {
    let larger = |number: &str| {
        let lines = &file(number).will_not_help;
        lines.iter().any(|line| line.contains("a larger GPU") && line.starts_with("Ending"))
    };
    assert!(!larger("005") && larger("103"));
    assert!(useless(file("005"), "Ending"));
}

#[test]
fn a_limit_of_cupy_can_be_raised_without_knowing_what_the_device_had() {
    let cupy = said(
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000,000,000 bytes (allocated so far: 4,000,000,000 bytes, limit set to: 10,000,000,000 bytes).",
    );
    assert_eq!(cupy.fixes, [4, 6], "{:?}", cupy.advice);
    assert_eq!(cupy.short_bytes, Some(2_000_000_000));
    let page = oom::fixes::find("6").unwrap().text;
    for word in ["CUPY_GPU_MEMORY_LIMIT", "maximum_pool_size"] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn a_smaller_batch_is_not_advised_while_weights_load() {
    let load = "  File \"/app/load.py\", line 3, in <module>\n    model.to(\"cuda\")\n";
    let message = |after: &str| torch([500, 24_000, 100, 9000], &[(77, 14_800)], after);
    assert!(message("").fixes.contains(&4), "{:?}", message("").advice);
    let text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a \
                total capacity of 24000.00 MiB of which 100.00 MiB is free. Process 77 has 14800.00 MiB \
                memory in use. Including non-PyTorch memory, this process has 9000.00 MiB memory in \
                use. Of the allocated memory 8700.00 MiB is allocated by PyTorch, and 20.00 MiB is \
                reserved by PyTorch but unallocated.\n";
    let loading = said(&format!("{load}{text}"));
    assert!(!loading.fixes.contains(&4), "{:?}", loading.advice);
}

#[test]
fn giving_up_stays_last() {
    let load = "  File \"/app/load.py\", line 3, in <module>\n    model.to(\"cuda\")\n";
    let little = said(&format!("{load}{}", STEP.replace("512.00 MiB", "30.00 GiB")));
    assert_eq!(little.fixes, [5, 2, 9], "{:?}", little.advice);
    let weights = little.advice.iter().find(|advice| advice.fix == 2).unwrap();
    assert_eq!(weights.enough, Some(false));
}

#[test]
fn what_is_said_of_the_cpu_part_stands_in_the_config() {
    let typed = line(file("094"), 5).unwrap();
    assert!(typed.starts_with("BitsAndBytesConfig(") && typed.ends_with(')'), "{typed}");
}

#[test]
fn a_line_on_windows_is_one_of_its_shells() {
    let message = "RuntimeError: CUDA out of memory. Tried to allocate 1.37 GiB (GPU 0; 15.78 GiB total capacity; 6.02 GiB already allocated; 388.75 MiB free; 13.95 GiB reserved in total by PyTorch)";
    let power = said(&format!("PS D:\\asr> python train.py\n{message}"));
    assert_eq!(line(&power, 6), Some("$env:PYTORCH_CUDA_ALLOC_CONF=\"max_split_size_mb:256\""));
    let old = said(&format!("D:\\asr> python train.py\n{message}"));
    assert_eq!(line(&old, 6), Some("set \"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256\""));
    assert_eq!(line(file("003"), 6), Some("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256"));
    for (name, answer) in all() {
        for advice in &answer.advice {
            let text = advice.line.as_str();
            for prose in ["leave ", "remove ", "a new session", "-ngl for"] {
                assert!(!text.starts_with(prose), "{name}: {text}");
            }
        }
    }
}

#[test]
fn a_card_on_windows_is_its_own_and_who_else_is_on_it_is_not_known() {
    let text = told(file("032"));
    assert!(
        text.contains("not told by the message") && !text.contains("(shared memory)"),
        "{text}"
    );
    assert!(!useless(file("032"), "Ending other processes"));
}

#[test]
fn what_is_told_of_one_thing_agrees() {
    let managed = told(file("060"));
    assert!(managed.contains("managed_memory=True") && !managed.contains("only a smaller tensor"));
    assert!(!managed.contains("More system RAM"), "{managed}");
    assert!(told(file("004")).contains("others hold about 22.25 GiB"));
    assert!(told(file("063")).contains("short by at least 1.48 MiB"));
    let budget = told(file("104"));
    assert!(!budget.contains("not told") && budget.contains("7091"), "{budget}");
    let mxnet = file("068").decisive.as_ref().unwrap();
    assert!(mxnet.text.starts_with("MXNetError: cudaMalloc"), "{}", mxnet.text);
    assert!(!told(file("068")).contains("a third more time"));
    assert!(told(file("098")).starts_with("GPU memory ran out: Blender 4.5.3"));
    assert!(!told(file("035")).contains("before it"));
}
