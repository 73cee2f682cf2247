//! Which files are models, by their name.

use std::path::Path;

/// Whether a path names weights: `*.gguf`, `*.safetensors`, and the `.bin`, `.pt`, `.ggml` files
/// that checkpoints are made of. Ollama keeps GGUF files under their digest.
pub(super) fn is_model(path: &str) -> bool {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let Some(name) = Path::new(path).file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    let ends = |suffix: &str| name.len() > suffix.len() && name.ends_with(suffix);
    let starts = |prefix: &str| name.starts_with(prefix);
    ends(".gguf")
        || ends(".safetensors")
        || ends(".ggml")
        || ((starts("sha256-") || starts("sha256:")) && path.contains("/blobs/"))
        || (ends(".bin") && (starts("pytorch_model") || starts("ggml-") || starts("model")))
        || (ends(".pth") && starts("consolidated"))
}

#[cfg(test)]
mod tests {
    use super::is_model;

    #[test]
    fn models_are_told_from_other_files() {
        for path in [
            "/m/llama-3-8b-Q4_K_M.gguf",
            "/m/model-00001-of-00004.safetensors",
            "/m/pytorch_model-00001-of-00002.bin",
            "/m/ggml-base.en.bin",
            "/usr/share/ollama/.ollama/models/blobs/sha256-6a0746a1ec1a",
            "/m/consolidated.00.pth",
            "/m/x.gguf (deleted)",
        ] {
            assert!(is_model(path), "{path}");
        }
        for path in
            ["/m/.gguf", "/tmp/cache.bin", "/m/a.gguf.part", "/m/train.py", "", "/", "sha256-1"]
        {
            assert!(!is_model(path), "{path}");
        }
    }
}
