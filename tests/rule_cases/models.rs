//! Cases of rules that need the model's arithmetic.

use crate::Expect::{CannotTell, Clear, Hit, NotYet};
use crate::build::*;
use crate::{Case, case};
use vramlens::analyze::View;

pub fn cases() -> Vec<Case> {
    let mut all = context();
    all.extend(context_untold());
    all.extend(four_bit());
    all.extend(four_bit_untold());
    all.extend(offload());
    all.extend(offload_untold());
    all.extend(does_not_fit());
    all
}

const FILE: &str = "/models/m.gguf";

fn server(more: &str) -> vramlens::sample::ProcSample {
    runs(&format!("llama-server -m {FILE} {more}"))
}

/// An 8B model with 32k tokens: 15 GiB of weights and 4 of cache.
fn long() -> View {
    knows(view(on(200), server("-c 32768")), FILE, model("8B"))
}

const CONTEXT: &str = "context";

fn context() -> Vec<Case> {
    vec![
        case(
            CONTEXT,
            "a long context",
            long,
            Hit("500 keeps 4.0 GiB for 32768 tokens", "-c 16384", [19, 22]),
        ),
        case(
            CONTEXT,
            "a cache in 8 bits: only the context is left",
            || {
                let process = server("-c 65536 -ctk q8_0 -ctv q8_0");
                knows(view(on(200), process), FILE, model("8B"))
            },
            Hit("500 keeps 4.2 GiB for 65536 tokens", "-c 32768", [19, 24]),
        ),
        case(
            CONTEXT,
            "four slots with a context each",
            || knows(view(on(200), server("-c 32768 -np 4")), FILE, model("8B")),
            Hit("500 keeps 4.0 GiB for 32768 tokens", "-np 1 -c 8192", [28, 33]),
        ),
        case(
            CONTEXT,
            "an Ollama runner: the variable is for one sequence",
            || {
                let command = format!("ollama runner --model {FILE} --ctx-size 32768 --parallel 2");
                knows(view(on(200), runs(&command)), FILE, model("8B"))
            },
            Hit("500 keeps 4.0 GiB for 32768 tokens", "OLLAMA_", [19, 22]),
        ),
        case(
            CONTEXT,
            "a short context",
            || knows(view(on(200), server("-c 2048")), FILE, model("8B")),
            Clear,
        ),
        case(
            CONTEXT,
            "the cache is in host memory",
            || knows(view(on(200), server("-c 32768 -nkvo")), FILE, model("8B")),
            Clear,
        ),
        case(CONTEXT, "a pool that is fixed", || view(on(200), runs("vllm serve /m/x")), Clear),
    ]
}

fn context_untold() -> Vec<Case> {
    vec![
        case(
            CONTEXT,
            "arguments that may not be read",
            || view(on(200), mute()),
            CannotTell("the command line of 500: no permission"),
        ),
        case(
            CONTEXT,
            "the model has not been read yet",
            || view(on(200), server("-c 32768")),
            NotYet("the model of 500 has not been read yet"),
        ),
        case(
            CONTEXT,
            "the model cannot be read",
            || cannot_read(view(on(200), server("-c 32768")), FILE),
            CannotTell("no permission"),
        ),
        case(
            CONTEXT,
            "no context was given",
            || knows(view(on(200), server("")), FILE, model("8B")),
            CannotTell("without a context"),
        ),
    ]
}

const FOLDER: &str = "/models/llama";
const CHAT: &str = "python chat.py --model_name_or_path /models/llama";

const FOUR_BIT: &str = "four_bit";

fn four_bit() -> Vec<Case> {
    vec![
        case(
            FOUR_BIT,
            "a 16-bit file of llama.cpp",
            long,
            Hit("500 holds 15.0 GiB of weights in 16 bits", "-m MODEL-Q4_K_M.gguf", [90, 105]),
        ),
        case(
            FOUR_BIT,
            "transformers in 16 bits",
            || knows(view(on(170), runs(CHAT)), FOLDER, model("8B")),
            Hit("500 holds 15.0 GiB of weights in 16 bits", "quantization_config=", [94, 99]),
        ),
        case(
            FOUR_BIT,
            "a name on a hub, and one of its parts open",
            || {
                let mut process = runs("python chat.py --model_name_or_path meta/llama");
                process.model_files = vec![format!("{FOLDER}/model-00002-of-00004.safetensors")];
                knows(view(on(170), process), FOLDER, model("8B"))
            },
            Hit("500 holds 15.0 GiB of weights in 16 bits", "quantization_config=", [94, 99]),
        ),
        case(
            FOUR_BIT,
            "loaded in float32 by accident",
            || {
                let process = allocator(runs(CHAT), torch(300, 310, 301));
                knows(view(on(315), process), FOLDER, model("8B"))
            },
            Hit(
                "500 holds 15.0 GiB of weights in 16 bits",
                "from_pretrained(..., dtype=torch.bfloat16)",
                [148, 151],
            ),
        ),
        case(
            FOUR_BIT,
            "a 4-bit file",
            || knows(view(on(200), server("-c 32768")), FILE, small("8B")),
            Clear,
        ),
        case(
            FOUR_BIT,
            "a name that says so",
            || view(on(170), runs("python chat.py --model_name_or_path /m/Llama-AWQ")),
            Clear,
        ),
        case(
            FOUR_BIT,
            "it holds less than its file",
            || knows(view(on(70), runs(CHAT)), FOLDER, model("8B")),
            Clear,
        ),
    ]
}

fn four_bit_untold() -> Vec<Case> {
    vec![
        case(
            FOUR_BIT,
            "the model has not been read yet",
            || view(on(170), runs(CHAT)),
            NotYet("has not been read yet"),
        ),
        case(
            FOUR_BIT,
            "whether it holds less than its file is not told",
            || bytes_untold(knows(view(on(170), runs(CHAT)), FOLDER, model("8B"))),
            CannotTell("does not tell what 500 holds"),
        ),
        case(
            FOUR_BIT,
            "a name on a hub",
            || view(on(170), runs("python chat.py --model_name_or_path meta/llama")),
            CannotTell("which model 500 runs is not known"),
        ),
    ]
}

const OFFLOAD: &str = "offload";

fn offload() -> Vec<Case> {
    vec![
        case(
            OFFLOAD,
            "a full GPU",
            || knows(view(tight(200, 2), server("-c 32768")), FILE, model("8B")),
            Hit("500 has 33 of 33 layers on the GPU", "-ngl 3", [12, 40]),
        ),
        case(
            OFFLOAD,
            "a full GPU, and experts",
            || knows(view(tight(650, 2), server("-c 8192")), FILE, model("30B-A3B")),
            Hit("500 has 49 of 49 layers on the GPU", "-ncmoe 2", [12, 40]),
        ),
        case(
            OFFLOAD,
            "layers on the CPU although there is room",
            || knows(view(on(100), server("-c 8192 -ngl 20")), FILE, model("8B")),
            Hit("500 has room for 13 layers more", "-ngl 33", [0, 0]),
        ),
        case(
            OFFLOAD,
            "a pipeline of diffusers on a full GPU",
            || {
                let command = "python make.py --pretrained_vae_model_name_or_path m/x";
                view(tight(200, 2), runs(command))
            },
            Hit("500 keeps all of its parts on the GPU", "pipe.enable_model_cpu_offload()", [0, 0]),
        ),
        case(OFFLOAD, "everything on a GPU with room", long, Clear),
    ]
}

fn offload_untold() -> Vec<Case> {
    vec![
        case(
            OFFLOAD,
            "the model has not been read yet",
            || view(tight(200, 2), server("-c 32768")),
            NotYet("has not been read yet"),
        ),
        case(
            OFFLOAD,
            "the GPU does not tell its memory",
            || knows(view(untold(on(200)), server("-c 32768")), FILE, model("8B")),
            CannotTell("the memory of GPU 0 is not known"),
        ),
        case(
            OFFLOAD,
            "a pipeline on a GPU that does not tell its memory",
            || {
                view(
                    untold(on(200)),
                    runs("python make.py --pretrained_vae_model_name_or_path m/x"),
                )
            },
            CannotTell("the memory of GPU 0 is not known"),
        ),
        case(
            OFFLOAD,
            "a pipeline on a full GPU that does not tell what it holds",
            || {
                let command = "python make.py --pretrained_vae_model_name_or_path m/x";
                bytes_untold(view(tight(200, 2), runs(command)))
            },
            CannotTell("does not tell what 500 holds"),
        ),
        case(
            OFFLOAD,
            "layers on the CPU, and whether they are on one GPU is not told",
            || {
                let view = view(on(100), server("-c 8192 -ngl 20"));
                bytes_untold(knows(view, FILE, model("8B")))
            },
            CannotTell("does not tell what 500 holds"),
        ),
    ]
}

fn does_not_fit() -> Vec<Case> {
    const RULE: &str = "does_not_fit";
    vec![
        case(
            RULE,
            "405 billion parameters on one card",
            || knows(view(on(700), server("-c 4096 -ngl 20")), FILE, model("405B")),
            Hit("500 needs 228.6 GiB, all GPUs have 80.0 GiB", "vramlens fit MODEL", [0, 0]),
        ),
        case(RULE, "8 billion", long, Clear),
        case(
            RULE,
            "405 billion beside a GPU that does not tell its memory",
            || {
                let process = server("-c 4096 -ngl 20");
                let gpus = [on(700), untold(crate::verdict_support::gpu(1))];
                let procs = [crate::verdict_support::init(), process];
                let host = crate::verdict_support::host();
                let view = crate::verdict_support::watched(3, &gpus, &host, &procs).1;
                knows(view, FILE, model("405B"))
            },
            CannotTell("1 of the GPUs do not tell their memory"),
        ),
        case(RULE, "no model", || view(on(100), runs("python train.py --lr 1")), Clear),
        case(
            RULE,
            "the model has not been read yet",
            || view(on(700), server("-c 4096")),
            NotYet("has not been read yet"),
        ),
        case(
            RULE,
            "the model cannot be read",
            || cannot_read(view(on(700), server("-c 4096")), FILE),
            CannotTell("no permission"),
        ),
    ]
}
