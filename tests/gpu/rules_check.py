#!/usr/bin/env python3
"""Compare what the fixes promise with what comes back when they are applied, on a real GPU.

    python tests/gpu/rules_check.py [--bin target/release/vramlens] [--only torch,context,weights,leak,fault]

Each scenario is a process with torch that does something, tells its state and waits. vramlens is
asked for its findings; then the fix is applied and the driver's bytes are compared with the promise.
Prints a table promised / measured, leaves with 1 where a finding is missing, or where less came back
than its lower bound or more than its upper bound (with 5 % and 64 MiB of slack). Takes some four minutes;
`--only` picks scenarios. A scenario that fails is a row of the table, and the others run all the same.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import rules_more

MIB = 1 << 20


# ----------------------------------------------------------------------------------- the processes
def say(**facts):
    print(json.dumps(facts), flush=True)


def wait():
    sys.stdin.readline()


def pieces(torch):
    """Every second block of 64 MiB is freed: half of the memory is a cache in small blocks."""
    blocks = [torch.empty(64 * MIB, dtype=torch.uint8, device="cuda") for _ in range(256)]
    del blocks[1::2]
    return blocks


def fragmented(torch):
    """Of every 60 MiB 40 stay: the other 20 fit neither the next 60 nor the next 40."""
    keep = []
    for _ in range(200):
        large = torch.empty(60 * MIB, dtype=torch.uint8, device="cuda")
        del large
        keep.append(torch.empty(40 * MIB, dtype=torch.uint8, device="cuda"))
    return keep


def step(torch, batch, again):
    """A step of training: activations that stay until the way back."""
    from torch.utils.checkpoint import checkpoint

    layers = torch.nn.ModuleList(
        torch.nn.Sequential(torch.nn.Linear(4096, 16384), torch.nn.GELU(), torch.nn.Linear(16384, 4096))
        for _ in range(8)
    ).cuda()
    x = torch.randn(batch * 2048, 4096, device="cuda")
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=False) if again else layer(x)
    x.square().mean().backward()
    for p in layers.parameters():
        p.grad = None
    torch.cuda.synchronize()
    return layers


def child(scenario, options):
    if scenario in rules_more.CHILDREN:
        return rules_more.CHILDREN[scenario](options)
    import torch

    if scenario in ("pieces", "fragmented"):
        keep = {"pieces": pieces, "fragmented": fragmented}[scenario](torch)
    else:
        keep = step(torch, options.batch_size, scenario == "again")
    torch.cuda.synchronize()
    say(pid=os.getpid(), peak=torch.cuda.max_memory_allocated(), reserved=torch.cuda.memory_reserved())
    wait()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    say(reserved=torch.cuda.memory_reserved(), kept=len(list(keep)))
    wait()


# -------------------------------------------------------------------------------------- the referee
class Job:
    def __init__(self, scenario, batch=8, **env):
        command = [sys.executable, os.path.abspath(__file__), "--child", scenario]
        # What a training run is known by.
        command += ["--lr", "1e-4", "--batch_size", str(batch)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}
        )
        self.facts = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the scenario has died")
        return json.loads(line)

    def next(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.read()

    def end(self):
        self.process.kill()
        self.process.wait()

    def held(self):
        out = subprocess.run(
            ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, check=True,
        ).stdout
        rows = [line.split(",") for line in out.splitlines() if line.strip()]
        return sum(int(used) * MIB for pid, used in rows if int(pid) == self.facts["pid"])

    def findings(self, binary):
        out = subprocess.run([binary, "triage", "--json"], capture_output=True, text=True).stdout
        return {f["rule"]: f for f in json.loads(out)["findings"] if f["pid"] == self.facts["pid"]}


def saves(finding, word):
    fixes = (finding or {}).get("fixes", [])
    found = [f["saves"] for f in fixes if f["saves"] and word in (f["line"] or "")]
    return found[0] if found else None


def torch_rows(binary):
    """Fixes 6, 7 and 4, and memory without a cache."""
    rows = []

    def row(name, promised, measured):
        if promised is None:
            rows.append((name, "no finding", "", "WRONG"))
            return
        low, high = promised["low_bytes"], promised["high_bytes"]
        slack = max(64 * MIB, high // 20)
        good = low - slack <= measured <= high + slack
        text = f"{promised['bytes'] / 2**30:.2f} ({low / 2**30:.2f} to {high / 2**30:.2f})"
        rows.append((name, text, f"{measured / 2**30:.2f}", "ok" if good else "WRONG"))

    job = Job("pieces")
    found = job.findings(binary).get("fragmentation")
    before = job.held()
    job.next()
    time.sleep(1)
    row("empty_cache of whole blocks", saves(found, "empty_cache"), before - job.held())
    job.end()

    job = Job("fragmented")
    found = job.findings(binary).get("fragmentation")
    before = job.held()
    job.end()
    other = Job("fragmented", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    row("expandable segments", saves(found, "expandable_segments"), before - other.held())
    again = other.findings(binary).get("fragmentation")
    repeated = saves(again, "expandable_segments")
    rows.append(("  not advised again", "", "", "WRONG" if repeated else "ok"))
    other.end()

    job = Job("step", batch=8)
    found = job.findings(binary)
    peak = job.facts["peak"]
    job.end()
    other = Job("again", batch=8)
    row("checkpointing", saves(found.get("checkpointing"), ""), peak - other.facts["peak"])
    other.end()
    other = Job("step", batch=4)
    row("half the batch", saves(found.get("batch"), ""), peak - other.facts["peak"])
    other.end()

    job = Job("pieces", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    there = "no_caching" in job.findings(binary)
    rows.append(("no caching is seen", "", "", "ok" if there else "WRONG"))
    job.end()

    return rows


def main(binary, only):
    rows = []
    if not only or "torch" in only:
        began = time.monotonic()
        try:
            rows += torch_rows(binary)
        except Exception as error:  # the others shall run all the same
            rows.append(("torch", "failed", str(error)[:300], "WRONG"))
        print(f"  torch: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    rows += rules_more.rows(binary, only)
    print(f"{'fix':<30}{'promised GiB':<34}{'measured GiB':<24}")
    for name, promised, measured, verdict in rows:
        print(f"{name:<30}{promised:<34}{measured:<24}{verdict}")
    return 1 if any(row[3] == "WRONG" for row in rows) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="target/release/vramlens")
    parser.add_argument("--only", type=lambda text: set(text.split(",")))
    parser.add_argument("--child")
    parser.add_argument("--lr")
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--model_name_or_path")
    parser.add_argument("--max_length", type=int, default=32768)
    parser.add_argument("--leave", type=int, default=16384)
    parser.add_argument("--every", type=float, default=0.25)
    arguments = parser.parse_args()
    if arguments.child:
        sys.exit(child(arguments.child, arguments))
    sys.exit(main(arguments.bin, arguments.only))
