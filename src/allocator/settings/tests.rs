use proptest::prelude::*;

use super::*;

fn env(pairs: &[(&str, &str)]) -> Vec<EnvVar> {
    pairs
        .iter()
        .map(|(name, value)| EnvVar { name: (*name).to_owned(), value: (*value).to_owned() })
        .collect()
}

fn one(name: &str, value: &str) -> Setting {
    let mut all = audit(&env(&[(name, value)]));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn what_a_program_takes_and_already_does() {
    let fixes: [(&str, &str, u8); 18] = [
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 6),
        ("PYTORCH_ALLOC_CONF", " expandable_segments : True ", 6),
        ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128", 6),
        ("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync", 6),
        ("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", 6),
        ("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:8", 6),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "false", 3),
        ("XLA_CLIENT_MEM_FRACTION", ".30", 3),
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "platform", 3),
        ("TF_FORCE_GPU_ALLOW_GROWTH", "true", 3),
        ("TF_GPU_ALLOCATOR", "cuda_malloc_async", 6),
        ("OLLAMA_CONTEXT_LENGTH", "4096", 1),
        ("OLLAMA_KV_CACHE_TYPE", "q8_0", 1),
        ("OLLAMA_NUM_PARALLEL", "1", 1),
        ("OLLAMA_MAX_LOADED_MODELS", "1", 3),
        ("OLLAMA_KEEP_ALIVE", "0", 3),
        ("GGML_CUDA_ENABLE_UNIFIED_MEMORY", "1", 5),
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "CUDA_ASYNC", 6),
    ];
    for (name, value, fix) in fixes {
        let setting = one(name, value);
        assert_eq!(setting.already_does, Some(fix), "{setting:?}");
        assert_eq!(setting.problem, None, "{setting:?}");
    }
}

#[test]
fn what_a_program_takes_and_no_fix_advises() {
    for (name, value) in [
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False"),
        ("PYTORCH_CUDA_ALLOC_CONF", "backend:native"),
        ("PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:0.8"),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "0"),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "true"),
        ("XLA_CLIENT_MEM_FRACTION", "0.95"),
        ("TF_FORCE_GPU_ALLOW_GROWTH", "false"),
        ("CUDA_VISIBLE_DEVICES", "1,0"),
        ("CUDA_VISIBLE_DEVICES", "GPU-1234,MIG-abcd"),
        ("CUDA_VISIBLE_DEVICES", ""),
        ("CUDA_VISIBLE_DEVICES", "-1"),
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        ("OLLAMA_KV_CACHE_TYPE", "f16"),
        ("OLLAMA_FLASH_ATTENTION", "1"),
        ("OLLAMA_KEEP_ALIVE", "-1"),
        ("OLLAMA_KEEP_ALIVE", "24h"),
        ("OLLAMA_GPU_OVERHEAD", "1073741824"),
        ("OLLAMA_CONTEXT_LENGTH", "131072"),
    ] {
        let setting = one(name, value);
        assert_eq!((setting.already_does, &setting.problem), (None, &None), "{setting:?}");
        assert!(!setting.effect.is_empty());
    }
}

#[test]
fn what_a_program_does_not_take_as_it_is_meant() {
    for (name, value) in [
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:true"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segment:True"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments=True"),
        ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:20"),
        ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128M"),
        ("PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:80"),
        ("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:3"),
        ("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:[256:3]"),
        ("PYTORCH_CUDA_ALLOC_CONF", "backend:async"),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "no"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "50%"),
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "fast"),
        ("TF_FORCE_GPU_ALLOW_GROWTH", "1"),
        ("TF_GPU_ALLOCATOR", "async"),
        ("CUDA_VISIBLE_DEVICES", "0,0"),
        ("CUDA_VISIBLE_DEVICES", "all"),
        ("CUDA_VISIBLE_DEVICES", "0;1"),
        ("CUDA_DEVICE_ORDER", "pci"),
        ("OLLAMA_CONTEXT_LENGTH", "8k"),
        ("OLLAMA_KV_CACHE_TYPE", "q8"),
        ("OLLAMA_FLASH_ATTENTION", "yes"),
        ("OLLAMA_NUM_PARALLEL", "auto"),
        ("OLLAMA_KEEP_ALIVE", "for ever"),
        ("OLLAMA_GPU_OVERHEAD", "1GiB"),
    ] {
        let setting = one(name, value);
        assert!(setting.problem.is_some(), "{setting:?}");
    }
}

#[test]
fn one_setting_changes_what_another_means() {
    let all = audit(&env(&[(
        "PYTORCH_CUDA_ALLOC_CONF",
        "backend:cudaMallocAsync,expandable_segments:True",
    )]));
    assert_eq!(all[1].already_does, None);
    assert!(all[1].problem.as_ref().is_some_and(|text| text.contains("ignored")));

    let all = audit(&env(&[
        ("PYTORCH_ALLOC_CONF", "expandable_segments:False"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
    ]));
    assert!(all.iter().all(|row| row.problem.as_ref().is_some_and(|text| text.contains("differ"))));

    let all = audit(&env(&[("OLLAMA_KV_CACHE_TYPE", "q4_0"), ("OLLAMA_FLASH_ATTENTION", "0")]));
    assert!(all[0].problem.is_some() && all[0].already_does.is_none());

    let all =
        audit(&env(&[("XLA_CLIENT_MEM_FRACTION", ".5"), ("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5")]));
    assert!(all[0].problem.is_none() && all[1].problem.is_some());

    let all = audit(&env(&[("PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:0.8")]));
    assert!(all[0].effect.contains("only if"));
}

#[test]
fn unknown_variables_are_left_alone() {
    assert_eq!(audit(&env(&[("HOME", "/root"), ("PYTORCH", "1")])), []);
    let mut names: Vec<_> = names().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

proptest! {
    #[test]
    fn any_value_is_judged(value in ".{0,80}", list in "[a-z_0-9:,\\[\\]> ]{0,60}") {
        for name in names() {
            for value in [&value, &list] {
                let _any = audit(&env(&[(name, value)]));
            }
        }
    }
}
