//! Where a Python program was when it failed, from its traceback.

use super::lines::Line;
use super::signatures::Stage;

/// How far back a traceback is looked for, in lines.
const WINDOW: usize = 80;
/// Some programs print the traceback after the message.
const AFTER: usize = 40;

/// What a frame says, the more telling one first.
static FRAMES: &[(Stage, &[&str])] = &[
    (
        Stage::Kv,
        &[
            "cache_utils",
            "past_key_value",
            "key_states], dim",
            "value_states], dim",
            "kv_cache",
            "paged_cache",
            "self.key_cache",
            "dynamiccache",
            "cache.update(",
        ],
    ),
    (
        Stage::Optimizer,
        &[
            "optimizer.step",
            "torch/optim/",
            "torch\\optim\\",
            "_init_group",
            "exp_avg",
            "optim.step(",
        ],
    ),
    (
        Stage::Decode,
        &[
            "vae.decode",
            "vaedecode",
            "decode_latents",
            "decode_first_stage",
            "autoencoder_kl",
            "vae_decode",
            "first_stage_model",
        ],
    ),
    (
        Stage::Loss,
        &["cross_entropy", "log_softmax", "criterion(", "logits.float()", "lm_head(", "nll_loss"],
    ),
    (Stage::Backward, &[".backward(", "autograd.backward", "run_backward", "autograd.grad("]),
    (
        Stage::Capture,
        &["_capture_cudagraphs", "capture_model", "cuda_graph_runner", "torch.cuda.graph("],
    ),
    (
        Stage::Startup,
        &[
            "_lazy_init",
            "_cuda_init",
            "cuctxcreate",
            "primaryctxretain",
            "create_context",
            "torch.cuda.set_device(",
            "cuda.init()",
            "cublascreate",
        ],
    ),
    (
        Stage::Weights,
        &[
            "from_pretrained",
            "load_state_dict",
            "load_checkpoint",
            "load_model(",
            "in load_model",
            "load_tensors",
            "load_weights",
            "torch.load(",
            "safe_open(",
            "self._apply(",
            "param_applied",
            "module.to(device",
            "pipe.to(",
            "pipeline.to(",
            "model.to(",
            "net.to(",
            "().to(",
            "model.cuda(",
            "net.cuda(",
            "().cuda(",
            "initialize_model",
            "dispatch_model",
            "set_module_tensor_to_device",
            "super().to(",
            "in create_weights",
            "load_pretrained",
        ],
    ),
    (
        Stage::Attention,
        &["softmax(", "scaled_dot_product", "k.transpose(", "baddbmm", "attn_weights", "sdpa"],
    ),
];

/// Frames of a forward pass: taken where nothing else tells more.
static FORWARD: &[&str] = &[
    "in forward",
    "forward(",
    "_call_impl",
    "in encode_",
    "in __call__",
    "in decode",
    "f.conv",
    "f.pad(",
    "interpolate(",
    "model(",
    "unet(",
    "net(",
    ".generate(",
    ".predict(",
    "torch.relu",
    "torch.matmul",
    "in step",
    "in embed",
];

/// The innermost telling frame around the message on `line`.
pub(super) fn stage(lines: &[Line], line: usize) -> Stage {
    let start = line.saturating_sub(WINDOW);
    let before = lines.get(start..line).unwrap_or_default();
    let traceback = before.iter().rposition(is_traceback);
    let inner = before.get(traceback.unwrap_or(0)..).unwrap_or_default();
    if traceback.is_some()
        && let Some(stage) = innermost(inner)
    {
        return stage;
    }
    let after = lines.get(line + 1..).unwrap_or_default();
    let after = after.get(..AFTER.min(after.len())).unwrap_or_default();
    if let Some(at) = after.iter().position(is_traceback)
        && let Some(stage) = innermost(after.get(at..).unwrap_or_default())
    {
        return stage;
    }
    if let Some(own) = lines.get(line).and_then(|line| innermost(std::slice::from_ref(line)))
        && own == Stage::Startup
    {
        return own;
    }
    if traceback.is_none() { innermost(inner).unwrap_or(Stage::Unknown) } else { Stage::Unknown }
}

fn is_traceback(line: &Line) -> bool {
    line.full.contains("Traceback (most recent call last)")
}

fn innermost(lines: &[Line]) -> Option<Stage> {
    let mut forward = false;
    for line in lines.iter().rev() {
        let text = line.body().to_ascii_lowercase();
        for (stage, needles) in FRAMES {
            if needles.iter().any(|needle| text.contains(needle)) {
                return Some(*stage);
            }
        }
        forward |= FORWARD.iter().any(|needle| text.contains(needle));
    }
    forward.then_some(Stage::Forward)
}
