//! What is advised can help, can be typed, and adds up.

use vramlens::oom::{self, Diagnosis};

use super::{MIB, all, file, folder, line, note, told, torch};

#[test]
fn a_fix_that_does_not_reach_what_is_short_says_so() {
    // Eight bits in the cache are half of 16 GiB, and there are 5.41.
    let vllm = file("082");
    assert_eq!(line(vllm, 1), Some("--max-model-len 44304"));
    assert!(note(vllm, 1).contains("besides"), "{}", note(vllm, 1));
    let enough = "ValueError: To serve at least one request with the models's max seq len (131072), \
                  (10.00 GiB KV cache is needed, which is larger than the available KV cache memory \
                  (5.41 GiB). Based on the available memory, the estimated maximum model length is \
                  70000.\n";
    let enough = oom::explain(enough.as_bytes());
    assert_eq!(note(&enough, 1), "or --kv-cache-dtype fp8 instead: 5.00 GiB is needed then");

    // 471 MiB of a browser; the compositor stays.
    let desktop = "  100 gnome-shell\n  101 Xwayland\n  102 firefox\n";
    let others = [(100, 900), (101, 600), (102, 471)];
    let some = torch([160, 6000, 85, 3900], &others, desktop);
    let closing = some.advice.iter().find(|advice| advice.fix == 8).unwrap();
    assert_eq!((closing.saves_bytes, closing.enough), (Some(471 * MIB), Some(true)));
    let more = torch([800, 6000, 85, 3900], &others, desktop);
    let closing = more.advice.iter().find(|advice| advice.fix == 8).unwrap();
    assert_eq!((closing.saves_bytes, closing.enough), (Some(471 * MIB), Some(false)));
    assert!(told(&more).contains("not enough alone: at least 715 MiB is short"));
    assert_eq!(more.advice.last().unwrap().fix, 8, "the weaker one comes last");
    // Nothing to close: only without a desktop.
    let screen = torch([160, 6000, 85, 4300], &others[..2], "  100 gnome-shell\n  101 Xwayland\n");
    let closing = screen.advice.iter().find(|advice| advice.fix == 8).unwrap();
    assert!(closing.line.contains("isolate multi-user.target"), "{}", closing.line);
    for (name, answer) in all() {
        for advice in &answer.advice {
            let reaches =
                advice.saves_bytes.zip(answer.short_bytes).map(|(saves, short)| saves >= short);
            assert_eq!(advice.enough, reaches, "{name}");
        }
    }
}

#[test]
fn a_fix_that_cannot_apply_is_not_offered() {
    // 18 GiB of 4-bit weights, 11.54 GiB free: a little less is not enough, and the cache comes later.
    let weights = file("069");
    assert_eq!(weights.fixes, [5, 2]);
    assert_eq!(line(weights, 2), Some("a smaller model"));
    assert!(note(weights, 2).contains("11.10 GiB"), "{}", note(weights, 2));
    assert_eq!(line(weights, 5), Some("-ngl N"));
    assert!(note(weights, 5).contains("about 59 %"), "{}", note(weights, 5));
    let fits = "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA X) - 17000 MiB free\n\
                print_info: file type   = Q4_K - Medium\n\
                ggml_backend_cuda_buffer_type_alloc_buffer: allocating 18508.35 MiB on device 0: \
                cudaMalloc failed: out of memory\n\
                alloc_tensor_range: failed to allocate CUDA0 buffer of size 19407412224\n\
                llama_model_load: error loading model: unable to allocate CUDA0 buffer\n";
    let fits = oom::explain(fits.as_bytes());
    assert_eq!(line(&fits, 2), Some("-m MODEL-Q3_K_M.gguf"), "{:?}", fits.advice);
    // It is a Q4_K_M, and its cache is what is large.
    assert_eq!(file("102").fixes, [1, 5]);
    assert_eq!(line(file("102"), 5), Some("lms load MODEL --gpu 0.55"));
    // A smaller share frees nothing: it stands for itself, and has no figure.
    let startup = file("083");
    assert_eq!(startup.fixes, [3, 1]);
    assert_eq!(line(startup, 3), Some("vramlens"));
    assert_eq!(line(startup, 1), Some("--gpu-memory-utilization 0.25"));
    assert!(startup.advice[1].saves_bytes.is_none());
    // No browser holds 23.64 GiB, and an X server is not closed.
    assert!(!file("108").fixes.contains(&8) && !file("054").fixes.contains(&8));
    // Weights are not in the pool that these would make smaller.
    assert_eq!(file("089").fixes, [2]);
    // A limit for one GPU leaves the other one out.
    assert_eq!(line(file("017"), 5), Some("from_pretrained(..., device_map=\"auto\")"));
    for (name, answer) in all() {
        let four_bit = answer.settings.contains(&"4-bit weights");
        let file = matches!(answer.software, "llama.cpp" | "ollama" | "lm-studio");
        assert!(!four_bit || file || !answer.fixes.contains(&2), "{name}");
    }
}

#[test]
fn the_effective_batch_is_kept() {
    let loops = file("012");
    assert_eq!(
        line(loops, 4),
        Some("batch_size=96; (loss / 2).backward(); optimizer.step() every 2 batches")
    );
    // What one step has of an effective batch is not known.
    assert!(line(file("008"), 4).unwrap().starts_with("half the batch_size; (loss / 2)"));
    let trainer = |accumulation: &str| {
        let before = format!(
            "***** Running training *****\n  Instantaneous batch size per device = 12\n{accumulation}\
             Traceback (most recent call last):\n  File \"/v/transformers/trainer.py\", line 9, in step\n    loss.backward()\n"
        );
        let message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 \
                       has a total capacity of 24.00 GiB of which 500.00 MiB is free. Including \
                       non-PyTorch memory, this process has 23.40 GiB memory in use. Of the allocated \
                       memory 22.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch \
                       but unallocated.\n";
        oom::explain([before.as_bytes(), message.as_bytes()].concat().as_slice())
    };
    let known = trainer("  Gradient Accumulation steps = 32\n");
    assert_eq!(
        line(&known, 4),
        Some("per_device_train_batch_size=6, gradient_accumulation_steps=64")
    );
    let unknown = trainer("");
    assert_eq!(line(&unknown, 4), Some("per_device_train_batch_size=6"));
    assert_eq!(note(&unknown, 4), "and gradient_accumulation_steps times 2");
    assert_eq!(line(&unknown, 7), Some("gradient_checkpointing=True"));
    assert!(line(file("021"), 4).is_none());
}

#[test]
fn arguments_of_transformers_are_for_logs_that_show_it() {
    const ITS_OWN: [&str; 8] = [
        "per_device_train",
        "gradient_checkpointing",
        "use_liger_kernel",
        "attn_implementation",
        "optim=",
        "from_pretrained",
        "cache_implementation",
        "BitsAndBytesConfig",
    ];
    for (name, answer) in all() {
        let log = std::fs::read(folder().join(name)).unwrap();
        let log = String::from_utf8_lossy(&log);
        let seen = log.contains("transformers/") || log.contains("from_pretrained");
        for advice in &answer.advice {
            let own = ITS_OWN.iter().any(|word| advice.line.contains(word));
            assert!(!own || seen, "{name}: {}", advice.line);
        }
    }
    assert!(line(file("007"), 2).unwrap().contains("BitsAndBytesConfig"));
    assert!(line(file("008"), 7).unwrap().starts_with("torch.utils.checkpoint"));
    assert!(line(file("067"), 7).unwrap().starts_with("paddle."));
}

#[test]
fn a_share_that_is_used_up_can_be_raised() {
    let share = file("005");
    assert_eq!(share.diagnosis, Diagnosis::BatchOrActivationTooBig);
    assert_eq!(share.fixes, [4, 6]);
    assert_eq!(line(share, 6), Some("torch.cuda.set_per_process_memory_fraction(0.30)"));
    // 9.85 GiB allowed, 9.50 reserved, 614 MiB asked for.
    assert_eq!(share.short_bytes.unwrap() / MIB, 255);
    assert_eq!(file("103").fixes, [4, 6]);
    assert_eq!(line(file("103"), 6), Some("nvidia.com/gpumem: 6656"));
    assert_eq!(line(file("029"), 6), Some("PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0"));
    let rejected = oom::explain(
        b"torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. Requested size: 512.00 MiB\n",
    );
    assert_eq!(rejected.fixes, [6, 4]);
    assert!(line(&rejected, 6).unwrap().contains("set_per_process_memory_fraction"));
    assert!(!told(&rejected).contains("does not tell"));
    // The page that is named has what is advised.
    let page = oom::fixes::find("6").unwrap().text;
    for word in [
        "expandable_segments_reserve",
        "vm.max_map_count",
        "set_per_process_memory_fraction",
        "gpumem",
    ] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn no_line_is_given_twice_and_none_has_a_value_left_out() {
    for (name, answer) in all() {
        let mut lines: Vec<&str> =
            answer.advice.iter().map(|advice| advice.line.as_str()).collect();
        let all = lines.len();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), all, "{name}");
        for advice in &answer.advice {
            let text = format!("{} {}", advice.line, advice.note.as_deref().unwrap_or_default());
            assert!(!text.contains("HALF") && !text.contains("DOUBLE"), "{name}: {text}");
            let names = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
            let left = names.map(|(name, _)| name).find(|name| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            });
            assert_eq!(left, None, "{name}: {text}");
        }
        // A command is whole on its line.
        for line in oom::report(answer).lines().filter(|line| line.starts_with("       # ")) {
            assert!(line.matches('`').count().is_multiple_of(2), "{name}: {line}");
        }
    }
    assert_eq!(file("088").fixes, [1, 4]);
}
