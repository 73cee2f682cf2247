//! What of a text may be kept: words of fixed lists, numbers, and the shape around them.

/// Words by which workers and their launchers are known, wherever in an argument they stand.
const WORKERS: [&str; 10] = [
    "multiprocessing.spawn",
    "multiprocessing.forkserver",
    "multiprocessing.resource_t",
    "compile_worker",
    "torchrun",
    "accelerate",
    "vllm",
    "sglang",
    "ipykernel",
    "colab_kernel",
];

/// Variables that hold a setting and no name.
const SETTINGS: [&str; 22] = [
    "ACCELERATE_MIXED_PRECISION",
    "CUDA_DEVICE_ORDER",
    "CUDA_MEMORY_FRACTION",
    "CUDA_MODULE_LOADING",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_VISIBLE_DEVICES",
    "JPY_PARENT_PID",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "RANK",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "WORLD_SIZE",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
];

/// Words that stand in their values: keys, ways, answers.
const OPTIONS: [&str; 54] = [
    "backend",
    "expandable_segments",
    "expandable_segments_reserve",
    "expandable_segments_reserve_by_class",
    "garbage_collection_threshold",
    "graph_capture_record_stream_reuse",
    "large_segment_size_mb",
    "max_non_split_rounding_mb",
    "max_split_size_mb",
    "per_process_memory_fraction",
    "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb",
    "pinned_use_background_threads",
    "pinned_use_cuda_host_register",
    "release_lock_on_cudamalloc",
    "roundup_power2_divisions",
    "throw_on_cudamalloc_oom",
    "native",
    "cudaMallocAsync",
    "large",
    "small",
    "platform",
    "default",
    "bfc",
    "cuda_async",
    "cuda_malloc",
    "cuda_malloc_async",
    "vmm",
    "True",
    "False",
    "true",
    "false",
    "TRUE",
    "FALSE",
    "yes",
    "no",
    "on",
    "off",
    "PCI_BUS_ID",
    "FASTEST_FIRST",
    "LAZY",
    "EAGER",
    "DEFAULT",
    "NoDevFiles",
    "all",
    "none",
    "void",
    "fp8",
    "fp16",
    "bf16",
    "fp32",
    "float16",
    "bfloat16",
    "float32",
];
/// What stands for a word that is on no list.
const OTHER: &str = "other";

/// What runs containers.
const RUNTIMES: [&str; 22] = [
    "apptainer",
    "containerd",
    "cri-containerd",
    "crio",
    "docker",
    "ecs",
    "enroot",
    "flatpak",
    "kubepods",
    "kubernetes",
    "libpod",
    "lxc",
    "lxc-libvirt",
    "machine",
    "nspawn",
    "oci",
    "podman",
    "pyxis",
    "rkt",
    "singularity",
    "systemd-nspawn",
    "wsl",
];

/// How the weights of a model are stored, as its name tells it; a longer word before its beginning.
const FORMATS: [&str; 42] = [
    "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M",
    "IQ4_XS", "IQ4_NL", "Q2_K_S", "Q2_K_L", "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q3_K", "Q4_K_S",
    "Q4_K_M", "Q4_K_L", "Q4_K", "Q4_0", "Q4_1", "Q5_K_S", "Q5_K_M", "Q5_K", "Q5_0", "Q5_1", "Q6_K",
    "Q8_0", "Q8_K", "MXFP4", "NVFP4", "BF16", "FP16", "FP8", "FP4", "F16", "F32", "INT8",
];

/// Ends of the name of a script, which its author chose.
const SCRIPTS: [&str; 11] =
    [".py", ".pyc", ".pyw", ".ipynb", ".sh", ".bash", ".zsh", ".pl", ".rb", ".js", ".jl"];
/// Bytes of a process's short name at the most.
const SHORT_NAME: usize = 15;

/// What is kept of an argument behind the program's name: a word on the list, and nothing around it.
pub(super) fn argument(n: usize, text: &str) -> Option<String> {
    if n == 1 && text == "runner" {
        return Some(text.to_owned());
    }
    WORKERS.iter().find(|word| text.contains(*word)).map(|word| (*word).to_owned())
}

/// Whether a variable holds a setting.
pub(super) fn is_setting(name: &str) -> bool {
    SETTINGS.contains(&name)
}

/// The value of a setting: numbers and words on the list, anything else under another word. `gpu`
/// gives the name of a GPU. `None` of what is no such value at all.
pub(super) fn setting(value: &str, mut gpu: impl FnMut(&str) -> String) -> Option<String> {
    let separates = |c: char| ":,[]>%+".contains(c);
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.- ".contains(c) || separates(c);
    if !value.chars().all(plain) {
        return None;
    }
    let mut text = String::with_capacity(value.len());
    for piece in value.split_inclusive(separates) {
        let part = piece.trim_end_matches(separates);
        let word = part.trim();
        text += &if is_gpu(word) {
            gpu(word)
        } else if word.is_empty() || is_number(word) || OPTIONS.contains(&word) {
            part.to_owned()
        } else {
            OTHER.to_owned()
        };
        text += piece.get(part.len()..).unwrap_or_default();
    }
    Some(text)
}

fn is_gpu(word: &str) -> bool {
    word.starts_with("GPU-") || word.starts_with("MIG-")
}

/// `-1`, `0.8`, `2G`, `512MB`.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let known = ["", "K", "M", "G", "k", "m", "g", "KB", "MB", "GB"].contains(&unit);
    known && digits.starts_with(|c: char| c.is_ascii_digit()) && digits.len() <= 20
}

/// What runs a container.
pub(super) fn runtime(name: &str) -> String {
    if RUNTIMES.contains(&name) { name.to_owned() } else { OTHER.to_owned() }
}

/// How a model's weights are stored, as far as its name tells it.
pub(super) fn format(model: &str) -> Option<&'static str> {
    let outside = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let mut words = model.split(outside);
    words.find_map(|word| {
        let word = word.to_ascii_uppercase();
        FORMATS.into_iter().find(|format| {
            word.strip_suffix(format).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
        })
    })
}

/// The last part of a path. A process may write anything at all over its arguments: what does not
/// look like a program's name is cut at the first blank.
pub(super) fn base_name(program: &str) -> &str {
    let word = program.split_whitespace().next().unwrap_or_default();
    word.rsplit('/').next().unwrap_or_default()
}

/// Whether that is the name of a script.
pub(super) fn is_script(name: &str) -> bool {
    SCRIPTS.iter().any(|end| name.ends_with(end))
}

/// Whether a short name is that of the script which the arguments name, cut where it is too long.
pub(super) fn names_script(comm: &str, arguments: &[String]) -> bool {
    let named = |argument: &String| {
        let base = base_name(argument);
        is_script(base) && (base == comm || (comm.len() >= SHORT_NAME && base.starts_with(comm)))
    };
    is_script(comm) || arguments.iter().take(4).any(named)
}

/// As much of a name as the kernel keeps.
pub(super) fn short(name: &str) -> &str {
    let mut end = name.len().min(SHORT_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or(name)
}

/// A Ray worker's title without what it works on.
pub(super) fn title(name: &str) -> &str {
    match name.strip_prefix("ray::") {
        Some("IDLE") | None => name,
        Some(_) => "ray::task",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_arguments_and_settings_only_what_is_on_a_list_is_kept() {
        assert_eq!(argument(2, "/home/ana/vllm/secret.py").as_deref(), Some("vllm"));
        assert_eq!(argument(1, "train.py"), None);
        let of = |value| setting(value, |uuid| format!("GPU-{}", uuid.len()));
        for kept in [
            "expandable_segments:True,roundup_power2_divisions:[256:1,>:4],backend:native",
            "max_split_size_mb:128, garbage_collection_threshold:0.8",
            "0,1",
            "-1",
            "2G",
            "",
            ",",
        ] {
            assert_eq!(of(kept).as_deref(), Some(kept));
        }
        assert_eq!(of("GPU-8f3a1b2c,1,anas-gpu").as_deref(), Some("GPU-12,1,other"));
        assert_eq!(of("anas_key:1").as_deref(), Some("other:1"));
        assert_eq!(of("12secret"), Some("other".to_owned()));
        assert_eq!(of("/home/ana"), None);
        assert_eq!((runtime("docker"), runtime("anas")), ("docker".into(), "other".into()));
    }

    #[test]
    fn of_a_models_name_its_format_is_kept() {
        for (name, found) in [
            ("ana/secret-model:8b-instruct-q4_K_M", Some("Q4_K_M")),
            ("secret.Q8_0.gguf", Some("Q8_0")),
            ("secret_IQ2_XXS.gguf", Some("IQ2_XXS")),
            ("secret-bf16-00001-of-00002.gguf", Some("BF16")),
            ("ana/secret:latest", None),
            ("myq4_0thing", None),
            ("", None),
        ] {
            assert_eq!(format(name), found, "{name}");
        }
    }

    #[test]
    fn a_script_is_known_by_its_end_and_by_the_arguments() {
        let of = |comm: &str, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
            names_script(comm, &arguments)
        };
        assert!(
            of("secret.py", &[]) && of("secret_training", &["python3", "/a/secret_training_2.py"])
        );
        assert!(
            !of("python", &["python", "python_secret.py"]) && !of("gpustat", &["/usr/bin/gpustat"])
        );
        assert_eq!(
            [short("secret_training_2.py"), short("ééééééééé")],
            ["secret_training", "ééééééé"]
        );
        assert_eq!(
            [title("ray::IDLE"), title("ray::Ana.run"), title("bash")],
            ["ray::IDLE", "ray::task", "bash"]
        );
    }
}
