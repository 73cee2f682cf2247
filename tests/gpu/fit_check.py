"""What transformers really allocates, against what `vramlens fit` says: run on one GPU.

Builds Llama-like models from a configuration with random weights (no network), prefills them at
several contexts, trains one step, and prints predicted against measured. Needs torch and
transformers; takes about two minutes. The first argument is the program, by default
`target/release/vramlens`. Exits 1 where a figure is outside of its band.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "target/release/vramlens"
MIB = 1 << 20
CONTEXTS = [1024, 4096, 8192, 16384, 32768]
DEADLINE = time.monotonic() + 220
FAILED = []

MODELS = {
    "3b": dict(hidden_size=3072, num_hidden_layers=28, num_attention_heads=24,
               num_key_value_heads=8, head_dim=128, intermediate_size=8192, tie_word_embeddings=True),
    "2b-untied": dict(hidden_size=2560, num_hidden_layers=20, num_attention_heads=20,
                      num_key_value_heads=4, head_dim=128, intermediate_size=6912,
                      tie_word_embeddings=False),
    "1b": dict(hidden_size=2048, num_hidden_layers=16, num_attention_heads=32,
               num_key_value_heads=8, head_dim=64, intermediate_size=8192, tie_word_embeddings=True),
}


def device_used():
    """MiB that the driver counts on the device."""
    out = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"],
        capture_output=True, text=True, check=True).stdout
    return float(out.split()[0])


def fit(folder, *more):
    """The answer of the program; its exit code 1 only says that it does not fit."""
    done = subprocess.run([PROGRAM, "fit", folder, "--json", *more], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{PROGRAM} fit failed: {done.stderr}")
    return json.loads(done.stdout)


def lines(answer):
    return {line["key"]: line for line in answer["need"]["lines"]}


def within(what, chosen, measured):
    """One line of the table for a sum of lines: it passes between their lower and upper sums."""
    low, likely, high = (sum(l[k] for l in chosen) / MIB for k in ("low", "bytes", "high"))
    good = low <= measured <= high
    if not good:
        FAILED.append(what)
    error = (likely / measured - 1) * 100
    print(f"  {what:<38}{likely:>10.1f}{measured:>11.1f}{error:>+8.1f} %  "
          f"{'ok' if good else 'OUTSIDE'} (the program's own band {low:.0f} to {high:.0f})",
          flush=True)


def row(what, predicted, measured, band_percent, floor_mib=4.0):
    """One line of the table. A figure passes within its band or a few MiB."""
    error = (predicted / measured - 1) * 100 if measured else 0.0
    good = abs(error) <= band_percent or abs(predicted - measured) <= floor_mib
    if not good:
        FAILED.append(what)
    print(f"  {what:<38}{predicted:>10.1f}{measured:>11.1f}{error:>+8.1f} %  "
          f"{'ok' if good else 'OUTSIDE'} (band {band_percent:g} %)", flush=True)


def build(name):
    config = LlamaConfig(vocab_size=128256, max_position_embeddings=131072,
                         dtype="bfloat16", **MODELS[name])
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return config, model


def clean():
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def cache_bytes(cache):
    """Bytes of the keys and values, in whichever layout this version keeps them."""
    layers = getattr(cache, "layers", None)
    if layers is not None:
        return sum(t.nbytes for layer in layers for t in (layer.keys, layer.values))
    return sum(t.nbytes for pair in cache for t in pair)


def prefill(model, folder, before, all_logits=False):
    for context in CONTEXTS:
        if time.monotonic() > DEADLINE:
            print("  out of time")
            return
        answer = fit(folder, "--context", str(context))
        said = lines(answer)
        get = lambda key: said[key]["bytes"] / MIB
        ids = torch.randint(0, 128256, (1, context), device="cuda")
        clean()
        with torch.inference_mode():
            out = model(ids, use_cache=True, logits_to_keep=1)
            torch.cuda.synchronize()
        allocated = torch.cuda.max_memory_allocated() / MIB
        reserved = torch.cuda.max_memory_reserved() / MIB
        used = device_used() - before
        kv = cache_bytes(out.past_key_values) / MIB
        fixed = get("weights") + get("kv_cache") + get("workspace")
        tag = f"{context} tokens"
        row(f"{tag}: KV cache", get("kv_cache"), kv, 0.01, 0.01)
        row(f"{tag}: peak allocated", fixed + get("activations"), allocated, 3)
        torch_lines = [line for key, line in said.items() if key != "cuda_context"]
        within(f"{tag}: peak reserved", torch_lines, reserved)
        within(f"{tag}: whole process (driver)", list(said.values()), used)
        print(f"  {'':<38}outside of the allocator: {used - reserved:.0f} MiB, "
              f"activations {allocated - kv - get('weights') - get('workspace'):.0f} MiB "
              f"for {get('activations'):.0f}", flush=True)
        del out, ids
    clean()


def train(model, folder):
    """One step of AdamW in bf16 at 1 x 2048, with and without checkpointing."""
    sections = fit(folder, "--context", "2048")["sections"]
    rows = next(s for s in sections if s["title"].startswith("TRAINING"))["rows"]
    said = next(r for r in rows if r["label"] == "AdamW, pure bf16")
    parts = dict(map(tuple, said["parts"]))
    ids = torch.randint(0, 128256, (1, 2048), device="cuda")
    peaks = {}
    for checkpointing in (True, False):
        model.train()
        if checkpointing:
            model.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs={"use_reentrant": False})
        else:
            model.gradient_checkpointing_disable()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=False)
        for _ in range(2):
            clean()
            model(ids, labels=ids, use_cache=False).loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
        peaks[checkpointing] = torch.cuda.max_memory_allocated() / MIB
        optimizer.zero_grad(set_to_none=True)
        del optimizer
        clean()
    row("AdamW bf16, checkpointing: peak", said["bytes"] / MIB, peaks[True], 25)
    whole = (said["bytes"] + parts["saved_by_checkpointing"]) / MIB
    row("AdamW bf16, no checkpointing: peak", whole, peaks[False], 25)
    saved = parts["saved_by_checkpointing"] / MIB
    row("freed by checkpointing", saved, peaks[False] - peaks[True], 30)


def eight_bit(model, config):
    """Weights in 8-bit: the tensor tables of the file against the bytes on the device."""
    from safetensors.torch import save_file

    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        state, seen = {}, set()
        for name, tensor in model.state_dict().items():
            if tensor.data_ptr() in seen:
                continue
            seen.add(tensor.data_ptr())
            linear = tensor.dim() == 2 and ("proj" in name)
            state[name] = (tensor.to(torch.float8_e4m3fn) if linear else tensor).contiguous()
        total = sum(t.nbytes for t in state.values()) / MIB
        save_file(state, os.path.join(folder, "model.safetensors"))
        said = lines(fit(folder))["weights"]
        if said["basis"] != "exact":
            FAILED.append("8-bit weights are not read from the file")
        row("fp8 safetensors: weights", said["bytes"] / MIB, total, 0.01, 0.01)
        del state
    clean()


def main():
    before = device_used()
    torch.cuda.init()
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}; MiB")
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            clean()
            config, model = build(name)
            config.save_pretrained(folder)
            params = sum(p.nbytes for p in model.parameters()) / MIB
            print(f"\n{name}: {sum(p.numel() for p in model.parameters()) / 1e9:.2f} B parameters")
            print(f"  {'':<38}{'predicted':>10}{'measured':>11}   error")
            row("weights, from config.json", lines(fit(folder))["weights"]["bytes"] / MIB, params, 1)
            model.eval()
            prefill(model, folder, before)
            if name == "1b":
                eight_bit(model, config)
                # Last of all: the thread of the backward pass keeps a cuBLAS workspace.
                train(model, folder)
            del model
            clean()
    print(f"\n{'all within their bands' if not FAILED else 'OUTSIDE: ' + '; '.join(FAILED)}")
    sys.exit(1 if FAILED else 0)


main()
