//! The command as people see it.

mod fit_gen;

use std::path::Path;

use vramlens::cmd::fit::{FitGpu, FitOptions, run};
use vramlens::sample::Reading;
use vramlens::units::Bytes;

fn gpu(index: u32, name: &str, total: u64, free: u64, zombies: u64) -> FitGpu {
    FitGpu {
        index: Some(index),
        name: name.to_owned(),
        total: Bytes::gib(total),
        reserved: Bytes::mib(400),
        free: Reading::Value(Bytes::gib(free)),
        zombies: Bytes::gib(zombies),
        overhead: None,
    }
}

fn ask(options: &FitOptions, gpus: &[FitGpu]) -> (u8, String) {
    let mut out = Vec::new();
    let code = run(options, gpus, &mut out).unwrap();
    (code, String::from_utf8(out).unwrap())
}

fn model(name: &str) -> FitOptions {
    FitOptions { model: Some(name.to_owned()), ..FitOptions::default() }
}

fn save(folder: &Path, name: &str) -> String {
    let path = fit_gen::saved(folder, name, &fit_gen::oracle_model(name));
    path.to_str().unwrap().to_owned()
}

#[test]
fn look() {
    let folder = tempfile::tempdir().unwrap();
    let gpus = [gpu(0, "NVIDIA GeForce RTX 3090", 24, 7, 4)];
    for name in ["llama31-8b", "qwen3-30b-a3b", "gemma3-27b"] {
        let (code, text) = ask(&model(&save(folder.path(), name)), &gpus);
        println!("{text}exit {code}\n--------");
    }
    println!(
        "{}",
        ask(
            &model("70B"),
            &[gpu(0, "NVIDIA H200", 140, 139, 0), gpu(1, "NVIDIA H200", 140, 100, 0)]
        )
        .1
    );
    println!("{}", ask(&model("sdxl"), &gpus).1);
    println!("{}", ask(&FitOptions::default(), &gpus).1);
    println!("{}", ask(&FitOptions { ascii: true, ..FitOptions::default() }, &[]).1);
    let hf = folder.path().join("Llama-3.1-8B-Instruct");
    std::fs::create_dir(&hf).unwrap();
    std::fs::write(hf.join("config.json"), r#"{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"max_position_embeddings":131072,"tie_word_embeddings":false}"#).unwrap();
    println!("{}", ask(&model(hf.to_str().unwrap()), &gpus).1);
}
