#!/usr/bin/env python3
"""Provokes real out-of-memory errors and has each one's own output explained.

Usage: tests/gpu/oom_check.py [target/release/vramlens]

Every case is a child process of its own. Its output goes to `vramlens explain --json -`; the answer
must say that a GPU's memory ran out, whose message it is, and the figures that the message prints,
which are read here a second time with plain regular expressions. Libraries that are not installed are
passed over. Ends with 1 where an answer is wrong.
"""

import json
import re
import subprocess
import sys
import textwrap
import time

TOOL = sys.argv[1] if len(sys.argv) > 1 else "target/release/vramlens"
UNITS = {"bytes": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

TORCH = """
import torch
total = torch.cuda.get_device_properties(0).total_memory
def gib(n): return torch.empty(int(n * 2**30), dtype=torch.uint8, device="cuda")
"""

# name: (module, software, diagnosis or None, environment, code)
CASES = {
    "torch, plain": ("torch", "pytorch", None, {}, TORCH + "x = [gib(8) for _ in range(99)]"),
    "torch, larger than the card": (
        "torch", "pytorch", "batch_or_activation_too_big", {}, TORCH + "x = gib(total / 2**30 + 8)",
    ),
    "torch, fragmented": (
        "torch", "pytorch", "fragmentation", {},
        TORCH + """
blocks = []
try:
    while True: blocks.append(gib(0.5))
except torch.OutOfMemoryError: pass
pins = []
for i in range(len(blocks)):
    part = blocks[i][: 2**20]; blocks[i] = None; pins.append(part.clone() if i % 2 else None)
keep = []
for i in range(2000):
    try: keep.append(torch.empty(96 * 2**20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError: break
keep = [k for i, k in enumerate(keep) if i % 4 == 0]
x = gib(4 + torch.cuda.mem_get_info()[0] / 2**30)
""",
    ),
    "torch, expandable segments": (
        "torch", "pytorch", None, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        TORCH + "x = [gib(8) for _ in range(99)]",
    ),
    "torch, a share of the card": (
        "torch", "pytorch", None, {},
        TORCH + "torch.cuda.set_per_process_memory_fraction(0.1); x = [gib(2) for _ in range(99)]",
    ),
    "torch, CUDA graph": (
        "torch", "pytorch", None, {},
        TORCH + """
g = torch.cuda.CUDAGraph(); s = torch.zeros(2**20, device="cuda")
with torch.cuda.graph(g): y = torch.zeros(20 * 2**30, dtype=torch.uint8, device="cuda") + 1
x = [gib(8) for _ in range(99)]
""",
    ),
    "torch, backward": (
        "torch", "pytorch", "batch_or_activation_too_big", {},
        TORCH + """
layers = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(8192, 8192), torch.nn.GELU()) for _ in range(8)]).cuda()
def train():
    batch = 2**16
    while True:
        loss = layers(torch.randn(batch, 8192, device="cuda")).square().mean(); loss.backward(); batch *= 2
train()
""",
    ),
    "torch, asynchronous pool": (
        "torch", "pytorch", None, {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
        TORCH + "x = [gib(8) for _ in range(99)]",
    ),
    "torch, no caching": (
        "torch", "pytorch", None, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
        TORCH + "x = [gib(8) for _ in range(99)]",
    ),
    "torch, beside another process": (
        "torch", "pytorch", "other_process_holds_memory", {}, TORCH + "x = gib(60)",
    ),
    "cuBLAS, little left": (
        "torch", "pytorch", None, {},
        TORCH + """
a = torch.randn(4096, 4096, device="cuda"); keep = []
for size in (2**30, 2**26, 2**22):
    try:
        while True: keep.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError: pass
b = a @ a
""",
    ),
    "CuPy": ("cupy", "cupy", None, {}, "import cupy\nx = [cupy.zeros(8 * 2**30, dtype='u1') for _ in range(99)]"),
    "CuPy with a limit": (
        "cupy", "cupy", None, {"CUPY_GPU_MEMORY_LIMIT": "4294967296"},
        "import cupy\nx = [cupy.zeros(2**30, dtype='u1') for _ in range(99)]",
    ),
    "JAX": (
        "jax", "jax", None, {},
        "import jax, jax.numpy as np\nx = [jax.block_until_ready(np.zeros(8 * 2**30, dtype='uint8')) for _ in range(99)]",
    ),
    "numba": (
        "numba", "numba", None, {},
        "import numpy as np\nfrom numba import cuda\nx = [cuda.device_array(8 * 2**30, dtype=np.uint8) for _ in range(99)]",
    ),
}

HOLDER = TORCH + """
import sys
x = gib(total / 2**30 - 40); print("ready", flush=True); sys.stdin.read()
"""

# What a message prints, read in a second way.
PRINTED = [
    ("requested_bytes", r"Tried to allocate ([\d.]+) (\w+)"),
    ("total_bytes", r"total capacity of ([\d.]+) (\w+)"),
    ("free_bytes", r"of which ([\d.]+) (\w+) is free"),
    ("this_process_bytes", r"this process has ([\d.]+) (\w+) memory in use"),
    ("allocated_bytes", r"allocated memory ([\d.]+) (\w+) is allocated by PyTorch"),
    ("reserved_unallocated_bytes", r"and ([\d.]+) (\w+) is reserved by PyTorch but"),
    ("allowed_bytes", r"([\d.]+) (\w+) allowed;"),
    ("private_pools_bytes", r"with ([\d.]+) (\w+) allocated in private pools"),
    ("allocated_bytes", r"Currently allocated\s*: ([\d.]+) (\w+)"),
    ("requested_bytes", r"Requested\s*: ([\d.]+) (\w+)"),
    ("total_bytes", r"Device limit\s*: ([\d.]+) (\w+)"),
    ("free_bytes", r"Free \(according to CUDA\)\s*: ([\d.]+) (\w+)"),
    ("requested_bytes", r"Out of memory allocating ([\d,]+) (bytes)"),
    ("allocated_bytes", r"allocated so far: ([\d,]+) (bytes)"),
]


def printed(text):
    """The figures of the last message in `text`."""
    figures = {}
    for key, pattern in PRINTED:
        found = re.findall(pattern, text)
        if found:
            number, unit = found[-1]
            figures[key] = round(float(number.replace(",", "")) * UNITS[unit])
    return figures


def child(code, env):
    """Runs code in a process of its own; its whole output."""
    import os

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, **env}, timeout=100,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )
    return done.stdout


def explain(output):
    """The answer to it and the exit code."""
    done = subprocess.run([TOOL, "explain", "--json", "-"], input=output, stdout=subprocess.PIPE, timeout=30)
    return json.loads(done.stdout), done.returncode


def check(name, software, diagnosis, output):
    """What is wrong with the answer, and the answer."""
    answer, code = explain(output)
    text = output.decode(errors="replace")
    wrong = []
    if not answer["is_gpu_oom"] or code != 1:
        wrong.append(f"is_gpu_oom {answer['is_gpu_oom']}, exit {code}")
    if answer["software"] != software:
        wrong.append(f"software {answer['software']}")
    if diagnosis and answer["diagnosis"] != diagnosis:
        wrong.append(f"diagnosis {answer['diagnosis']}, not {diagnosis}")
    for key, value in printed(text).items():
        got = answer[key]
        if got is None or abs(got - value) > 4096:
            wrong.append(f"{key} {got}, printed {value}")
    pids = [int(pid) for pid in re.findall(r"Process (\d+) has", text)]
    if sorted({other["pid"] for other in answer["other_processes"]}) != sorted(set(pids)):
        wrong.append(f"processes {answer['other_processes']}, printed {pids}")
    return wrong, answer


def installed(module):
    import importlib.util

    return importlib.util.find_spec(module) is not None


def main():
    started, failures = time.time(), 0
    print(f"{'case':<32}{'software':<12}{'diagnosis':<29}{'asked MiB':>10} {'fix':>4}  result")
    for name, (module, software, diagnosis, env, code) in CASES.items():
        if not installed(module):
            print(f"{name:<32}{module} is not installed")
            continue
        holder = None
        if "another process" in name:
            holder = subprocess.Popen(
                [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            holder.stdout.readline()
        try:
            output = child(code, env)
        except subprocess.TimeoutExpired:
            print(f"{name:<32}took too long")
            failures += 1
            continue
        finally:
            if holder:
                holder.stdin.close()
                holder.wait(30)
        wrong, answer = check(name, software, diagnosis, output)
        asked = answer["requested_bytes"]
        asked = "-" if asked is None else f"{asked / 2**20:.0f}"
        fix = answer["fixes"][0] if answer["fixes"] else "-"
        print(f"{name:<32}{answer['software']:<12}{answer['diagnosis']:<29}{asked:>10} {fix:>4}  "
              + ("; ".join(wrong) or "as it should be"))
        if wrong:
            failures += 1
            tail = output.decode(errors="replace").strip().splitlines()[-4:]
            print(textwrap.indent("\n".join(line[:400] for line in tail), "      | "))
    print(f"{len(CASES)} cases, {failures} wrong, {time.time() - started:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
