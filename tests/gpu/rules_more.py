"""More scenarios of rules_check.py: the cache of a context, weights in fewer bits, a leak's forecast,
a fault that the driver reports. Each is a function of the referee that yields rows
(name, promised, measured, verdict); its processes are the functions in CHILDREN."""
import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import time

MIB, GIB = 1 << 20, 1 << 30
HERE = os.path.dirname(os.path.abspath(__file__))

# A Llama of 3.75 G parameters: 7.5 GB in bfloat16, 64 KiB of cache a token.
LAYERS, HIDDEN, HEADS, KV_HEADS, FEED, VOCAB = 16, 4096, 32, 8, 14336, 32000
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
    "hidden_size": HIDDEN, "intermediate_size": FEED, "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HIDDEN // HEADS,
    "vocab_size": VOCAB, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "tie_word_embeddings": False, "hidden_act": "silu",
    "bos_token_id": 1, "eos_token_id": 2,
}


def tensors():
    """Names and shapes as transformers saves them."""
    kv = HIDDEN // HEADS * KV_HEADS
    yield "model.embed_tokens.weight", [VOCAB, HIDDEN]
    for n in range(LAYERS):
        at = f"model.layers.{n}"
        yield f"{at}.self_attn.q_proj.weight", [HIDDEN, HIDDEN]
        yield f"{at}.self_attn.k_proj.weight", [kv, HIDDEN]
        yield f"{at}.self_attn.v_proj.weight", [kv, HIDDEN]
        yield f"{at}.self_attn.o_proj.weight", [HIDDEN, HIDDEN]
        yield f"{at}.mlp.gate_proj.weight", [FEED, HIDDEN]
        yield f"{at}.mlp.up_proj.weight", [FEED, HIDDEN]
        yield f"{at}.mlp.down_proj.weight", [HIDDEN, FEED]
        yield f"{at}.input_layernorm.weight", [HIDDEN]
        yield f"{at}.post_attention_layernorm.weight", [HIDDEN]
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [VOCAB, HIDDEN]


def make_model(folder):
    """A folder as transformers has it. The file is sparse: its header is right, its weights are 0."""
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump(CONFIG, out)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors():
        length = 2
        for n in shape:
            length *= n
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + length]}
        at += length
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + at)


# ------------------------------------------------------------------------------ the processes
def say(**facts):
    print(json.dumps({**facts, "pid": os.getpid()}), flush=True)


def wait():
    if not sys.stdin.readline():
        sys.exit(0)


def load(options):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(options.model_name_or_path)
    config._attn_implementation = "sdpa"
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        # Random weights of the shapes in the folder: what they hold makes no difference here.
        model = AutoModelForCausalLM.from_config(config)
    torch.set_default_dtype(before)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch, model.eval()


def context(options):
    """A static cache of `--max_length` tokens, as generation with one keeps it."""
    torch, model = load(options)
    from transformers import StaticCache

    before = torch.cuda.memory_allocated()
    tokens = options.max_length
    try:
        cache = StaticCache(config=model.config, max_cache_len=tokens)
    except TypeError:
        cache = StaticCache(model.config, 1, tokens, "cuda", torch.bfloat16)
    ids = torch.randint(3, 1000, (1, 32), device="cuda")
    with torch.inference_mode():
        try:
            model(ids, past_key_values=cache, use_cache=True)
        except (TypeError, ValueError):  # versions that do not count by themselves
            at = torch.arange(32, device="cuda")
            model(ids, past_key_values=cache, use_cache=True, cache_position=at)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    say(cache=torch.cuda.memory_allocated() - before, tokens=tokens)
    wait()


def weights(options):
    """The model in bfloat16; then its layers in 8 bits; then in 4 bits as NF4 packs them."""
    torch, model = load(options)
    say(state="bf16", allocated=torch.cuda.memory_allocated())
    wait()
    matrices = [m for n, m in model.named_modules() if isinstance(m, torch.nn.Linear) and n != "lm_head"]
    shapes = [m.weight.shape for m in matrices]
    kept = []
    with torch.inference_mode():
        for matrix in matrices:
            scale = matrix.weight.abs().amax(1, keepdim=True).float() / 127
            eight = (matrix.weight.float() / scale.clamp(min=1e-9)).round().clamp(-127, 127).to(torch.int8)
            kept.append((eight, scale))
            matrix.weight = None
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    say(state="int8", allocated=torch.cuda.memory_allocated())
    wait()
    for n, shape in enumerate(shapes):
        values = (kept[n][0].reshape(-1) >> 4) + 8
        packed = (values[0::2].to(torch.uint8) << 4) | values[1::2].to(torch.uint8)
        count = shape.numel()
        # Doubly quantised: a byte for 64 values, a float for 256 of those.
        scales = torch.zeros(count // 64, dtype=torch.uint8, device="cuda")
        outer = torch.zeros(count // 64 // 256, dtype=torch.float32, device="cuda")
        kept[n] = (packed, scales, outer)
        del values
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    say(state="nf4", allocated=torch.cuda.memory_allocated())
    wait()


def hog(options):
    """Leaves `--leave` MiB free, so that a leak fills the GPU soon."""
    import torch

    torch.zeros(1, device="cuda")
    kept = []
    while torch.cuda.mem_get_info()[0] > (options.leave + 64) * MIB:
        size = min(2 * GIB, torch.cuda.mem_get_info()[0] - options.leave * MIB)
        kept.append(torch.empty(size // (2 * MIB) * 2 * MIB, dtype=torch.uint8, device="cuda"))
    say(free=torch.cuda.mem_get_info()[0], kept=len(kept))
    wait()


def leak(options):
    """Keeps 64 MiB more every tick, steadily, until there is no more."""
    import torch

    torch.zeros(1, device="cuda")
    say(state="begins", at=time.time())
    kept, due = [], time.monotonic()
    try:
        while True:
            kept.append(torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"))
            due += options.every
            time.sleep(max(0.0, due - time.monotonic()))
    except torch.OutOfMemoryError:
        say(state="full", at=time.time(), kept=len(kept))
    wait()


def fault(_options):
    """Writes to an address that nobody mapped. Only this process ends of it."""
    import cupy

    source = 'extern "C" __global__ void hit(unsigned long long at) { *(volatile int *)at = 1; }'
    kernel = cupy.RawKernel(source, "hit")
    say(state="begins")
    try:
        kernel((1,), (1,), (cupy.uint64(0x7F0000000000),))
        cupy.cuda.Device().synchronize()
    except Exception as error:  # what CUDA says of it differs by version
        say(state="ended", error=str(error)[:200])


CHILDREN = {f.__name__: f for f in (context, weights, hog, leak, fault)}


# ------------------------------------------------------------------------------- the referee
class Child:
    """A process of a scenario; whatever it does not say in time ends the scenario."""

    def __init__(self, scenario, *more):
        command = [sys.executable, os.path.join(HERE, "rules_check.py"), "--child", scenario, *more]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, bufsize=0
        )
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self, within=60):
        end = time.monotonic() + within
        while b"\n" not in self.rest:
            ready = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]
            got = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not got:
                self.log.seek(0)
                tail = self.log.read()[-600:]
                raise RuntimeError(("says nothing" if not ready else "has died") + f": {tail}")
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def next(self, within=60):
        os.write(self.process.stdin.fileno(), b"\n")
        return self.read(within)


def ask(binary, *words, within=60):
    out = subprocess.run([binary, *words], capture_output=True, text=True, timeout=within)
    return json.loads(out.stdout)


def verdict(good):
    return "ok" if good else "WRONG"


def gib(n):
    return f"{n / GIB:.2f}"


def share(promised, measured):
    return f"{gib(measured)} ({100 * measured / promised - 100:+.1f} %)" if promised else gib(measured)


def check_context(binary, model):
    """Fix 1: half the context, by the arithmetic of `fit` and by what transformers allocates."""
    long, short = 65536, 32768

    def promised(tokens):
        answer = ask(binary, "fit", model, "--context", str(tokens), "--gpu", "140GiB", "--json")
        return next(line["bytes"] for line in answer["need"]["lines"] if line["key"] == "kv_cache")

    measured = []
    for tokens in (long, short):
        with Child("context", "--model_name_or_path", model, "--max_length", str(tokens)) as child:
            measured.append(child.read(90)["cache"])
    want, got = promised(long) - promised(short), measured[0] - measured[1]
    # Masks and buffers of a step come on top of the cache.
    yield "half the context, cache", gib(want), share(want, got), verdict(abs(got - want) <= want // 20)


def check_weights(binary, model):
    """Fix 2: 4 bits on load by the finding, 8 bits by the table of `fit`."""
    with Child("weights", "--model_name_or_path", model) as child:
        wide = child.read(90)
        found = ask(binary, "triage", "--json")["findings"]
        found = [f for f in found if f["rule"] == "four_bit" and f["pid"] == wide["pid"]]
        eight, four = child.next(90), child.next(90)
    if not found:
        yield "4 bits on load", "no finding", "", "WRONG"
        return
    saves = [fix["saves"] for fix in found[0]["fixes"] if fix["saves"]][-1]
    got = wide["allocated"] - four["allocated"]
    slack = saves["bytes"] // 50
    good = saves["low_bytes"] - slack <= got <= saves["high_bytes"] + slack
    text = f"{gib(saves['bytes'])} ({gib(saves['low_bytes'])} to {gib(saves['high_bytes'])})"
    yield "4 bits on load", text, share(saves["bytes"], got), verdict(good)
    rows = ask(binary, "fit", model, "--gpu", "140GiB", "--json")["table"]["rows"]
    by = {row["quant"]: row["weights_bytes"] for row in rows}
    names = [[name for name in by if part in name.lower()] for part in ("bf16", "int8")]
    if all(names):
        want = by[names[0][0]] - by[names[1][0]]
        got = wide["allocated"] - eight["allocated"]
        yield "8 bits", gib(want), share(want, got), verdict(abs(got - want) <= want // 25)
    else:
        yield "8 bits", f"no row in {list(by)}", "", "WRONG"


def check_leak(binary, _model):
    """The forecast of a steady leak against the time that it really takes."""
    leave, seconds, watch = 24 * 1024, 62, 38
    every = seconds / (leave / 64)
    with Child("hog", "--leave", str(leave)) as fill, tempfile.TemporaryDirectory() as folder:
        fill.read(60)
        with Child("leak", "--every", str(every)) as child:
            pid = child.read(40)["pid"]
            file = os.path.join(folder, "leak.vrt")
            record = [binary, "record", file, "--for", f"{watch}s"]
            subprocess.run(record, capture_output=True, timeout=watch + 20)
            view = ask(binary, "replay", file, "--once", "--json")
            full = child.read(90)
    of = [holder for holder in view["holders"] if holder["pid"] == pid]
    times = of[0]["growth"]["full_in_ms"] if of else None
    if not times:
        kind = of[0]["growth"] if of else "no such holder"
        yield "a leak's forecast", f"none: {kind}", "", "WRONG"
        return
    real = full["at"] - view["at_ms"] / 1000
    want = {name: ms / 1000 for name, ms in times.items()}
    good = want["earliest"] * 0.85 - 2 <= real <= want["latest"] * 1.15 + 2
    text = f"in {want['likely']:.1f} s ({want['earliest']:.1f} to {want['latest']:.1f})"
    off = 100 * real / want["likely"] - 100
    yield "a leak's forecast", text, f"{real:.1f} s ({off:+.1f} %)", verdict(good)


def check_fault(binary, _model):
    """An illegal access is an XID: the recording has it."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "fault.vrt")
        record = subprocess.Popen(
            [binary, "record", file, "--for", "16s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            time.sleep(5)
            with Child("fault") as child:
                child.read(60)
                ended = child.read(30)
            record.wait(timeout=40)
        finally:
            record.kill()
        xid = ask(binary, "replay", file, "--once", "--json")["gpus"][0]["xid"]
    codes = [event["code"] for event in xid["recent"]]
    if xid["watched"] is not True and not codes:
        yield "XID of an illegal access", f"not watched: {xid['watched']}", ended.get("error", ""), "ABSENT"
        return
    told = ", ".join(f"{event['code']}: {event['meaning']}" for event in xid["recent"])
    yield "XID of an illegal access", "13 or 31", told or "none", verdict({13, 31} & set(codes))


def check_cost(binary, _model):
    """The watch for faults has the library open, too, and waits in it: no look may wait for it."""
    out = subprocess.run([binary, "record", "-", "--for", "8s"], capture_output=True, text=True, timeout=30)
    took = []
    for line in out.stdout.splitlines():
        tick = json.loads(line)
        tick = tick.get("gpus") or tick.get("Gpus")
        if isinstance(tick, dict) and "took_ms" in tick:
            took.append(tick["took_ms"])
    # The first looks open the library.
    took = sorted(took[2:])
    if not took:
        yield "a look while faults are watched", "below 150 ms", "no looks", "WRONG"
        return
    text = f"{took[len(took) // 2]} ms, {took[-1]} ms at most"
    yield "a look while faults are watched", "below 150 ms", text, verdict(took[-1] < 150)


CHECKS = {
    "cost": check_cost,
    "context": check_context,
    "weights": check_weights,
    "leak": check_leak,
    "fault": check_fault,
}


def rows(binary, only):
    """Rows of every scenario that is asked for; one that fails is a row, too."""
    with tempfile.TemporaryDirectory(prefix="rules-model-") as model:
        make_model(model)
        for name, check in CHECKS.items():
            if only and name not in only:
                continue
            began = time.monotonic()
            try:
                yield from check(binary, model)
            except Exception as error:  # the others shall run all the same
                yield name, "failed", f"{type(error).__name__}: {str(error)[:300]}", "WRONG"
            print(f"  {name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
