#!/usr/bin/env python3
"""What only a machine with several GPUs shows: one process on two of them, its dead parent's memory on
both, metrics and recordings of both, an error on the second.

    python3 tests/gpu/two_gpus.py [--binary target/release/vramlens]

Needs two NVIDIA GPUs that nobody uses, torch and nvidia-ml-py, and root. Prints a table, exits 1 on
any difference, ends everything that it started. Takes about two minutes.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from acceptance import Table, Vramlens, one_gpu
from driver import Driver
from jobs import Jobs, alive, end_on_signals, until

GIB = 1 << 30

BOTH = """
import torch
x = [torch.ones(gib << 30, dtype=torch.uint8, device=f"cuda:{n}") for n, gib in ((0, 3), (1, 5))]
y = torch.ones(2 << 30, dtype=torch.uint8, device="cuda:1")
del y
ready(reserved=[torch.cuda.memory_reserved(n) for n in (0, 1)],
      allocated=[torch.cuda.memory_allocated(n) for n in (0, 1)])
time.sleep(1e6)
"""
# Of two cards this process sees the second, as its first.
SECOND = """
x = hold(4096)
import torch
ready(reserved=torch.cuda.memory_reserved(0))
time.sleep(1e6)
"""
FORK = """
import torch
x = [torch.ones(2 << 30, dtype=torch.uint8, device=f"cuda:{n}") for n in (0, 1)]
child = os.fork()
if child == 0:
    time.sleep(1e6)
ready(child=child)
time.sleep(1e6)
"""
OOM = """
import torch
kept = []
while True:
    kept.append(torch.empty(8 << 30, dtype=torch.uint8, device="cuda:1"))
    time.sleep(0.3)
"""
ALL = {"CUDA_VISIBLE_DEVICES": "0,1"}


def rows(report, pid):
    return {row["gpu"]: row for row in report["holders"] if row["pid"] == pid}


def still(lens, driver, *arguments):
    """A report during which the driver's figures did not move."""
    for _ in range(60):
        before = driver.look()
        report = lens.json(*arguments)
        if before == driver.look():
            return before, report
        time.sleep(0.25)
    raise RuntimeError("the driver's figures never stood still")


def both(table, lens, driver, jobs):
    one = jobs.start("both", BOTH, env=ALL)
    two = jobs.start("second", SECOND, env={"CUDA_VISIBLE_DEVICES": "1"})
    jobs.wait([one, two])
    before, report = still(lens, driver)
    for index, (gpu, (memory, processes)) in enumerate(zip(report["gpus"], before)):
        one_gpu(table, driver, report, gpu, index, memory, processes, busy=False)
    of = rows(report, one.pid)
    table.same("one process on both", [0, 1], sorted(of))
    table.same("a process on the second only", [1], sorted(rows(report, two.pid)))
    devices = {device["ordinal"]: device for row in of.values()
               for device in (row["allocator"] or {"devices": []})["devices"]}
    for key in ("reserved", "allocated"):
        given = [devices.get(n, {}).get(f"{key}_bytes") for n in (0, 1)]
        table.same(f"its allocator: {key}", one.facts[key], given)
    second = rows(report, two.pid)[1]["allocator"] or {"devices": [{}]}
    table.same("CUDA_VISIBLE_DEVICES=1: reserved", two.facts["reserved"],
               second["devices"][0].get("reserved_bytes"))
    only = lens.json("--gpu", "1")
    table.same("--gpu 1", [1], sorted({gpu["index"] for gpu in only["gpus"]}))
    page = metrics(lens)
    for index, (memory, processes) in enumerate(before):
        used = re.search(rf'vramlens_gpu_memory_used_bytes{{gpu="{index}"[^}}]*}} (\S+)', page)
        table.same(f"metrics: used on GPU {index}", memory["used"], int(float(used[1])) if used else None)
    print(lens.run("--once").stdout)
    return one, two


def metrics(lens):
    server = subprocess.Popen([lens.binary, "serve", "--listen", "127.0.0.1:19835"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def page():
            try:
                with urllib.request.urlopen("http://127.0.0.1:19835/metrics", timeout=2) as answer:
                    text = answer.read().decode()
            except OSError:
                return None
            return text if 'vramlens_gpu_memory_used_bytes{gpu="1"' in text else None
        return until(page, 20, "a page of metrics with two GPUs")
    finally:
        server.kill()
        server.wait()


def recording(table, lens, driver, folder):
    """A recording covers an error on the second card, and explains it."""
    with Jobs() as jobs:
        failed(table, lens, driver, jobs, folder)


def failed(table, lens, driver, jobs, folder):
    path = os.path.join(folder, "two.vrt")
    recorder = subprocess.Popen([lens.binary, "record", path, "--interval", "500ms"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    job = jobs.start("oom", OOM, env=ALL)
    job.process.wait(timeout=90)
    time.sleep(2)
    recorder.send_signal(signal.SIGINT)
    recorder.wait(timeout=20)
    log = open(job.log).read()
    table.add("OutOfMemoryError" in log, "an error on GPU 1", "OutOfMemoryError", log[-60:].strip())
    used = [memory["used"] for memory, _ in driver.look()]
    shown = lens.json("replay", path, "--once")
    given = [gpu["ledger"]["used_bytes"] if "used_bytes" in gpu["ledger"] else gpu["memory"]["used_bytes"]
             for gpu in shown["gpus"]]
    table.same("replay --once: used at the end", used, given)
    answer = lens.json("explain", job.log, "--recording", path, ok=(1,))
    table.same("explain: the device of the message", 1, answer["device"])
    live = answer["live"]
    table.add(bool(live["holders"]), "explain --recording: holders", "some", json.dumps(live)[:160])
    table.same("explain --recording: on which GPU", 1, live["gpu"])
    print(lens.run("explain", job.log, "--recording", path, ok=(1,)).stdout)


def need(table, lens, driver):
    free = [memory["free"] for memory, _ in driver.look()]
    fits = max(free) // GIB - 2
    yes = lens.run("triage", "--need", f"{fits}GiB", ok=(0, 1)).stdout
    no = lens.run("triage", "--need", "150GiB", ok=(0, 1)).stdout
    print("\n".join(yes.splitlines()[-6:]), "\n--\n", "\n".join(no.splitlines()[-6:]), sep="")
    table.add("150" in no, "triage --need 150GiB is answered", "an answer", no[-80:].strip())


def leftovers(table, lens, driver, jobs):
    job = jobs.start("fork", FORK, env=ALL)
    jobs.wait([job])
    job.process.kill()
    job.process.wait()
    child = job.facts["child"]
    time.sleep(65)  # Nobody younger than a minute is called a leftover.
    report = lens.json("triage", ok=(0, 1))
    ghost = rows(report, job.facts["pid"])
    table.same("the dead parent holds both cards", [0, 1], sorted(ghost))
    named = {ref["pid"] for row in ghost.values() for ref in row["survivors"]}
    table.same("its survivor is named", {child}, named)
    before = [memory["used"] for memory, _ in driver.look()]
    told = lens.run("kill", "--zombies", "--yes", ok=(0, 1)).stdout
    print(told)
    until(lambda: not alive(child), 20, "the survivor ends")
    freed = [a - memory["used"] for a, (memory, _) in zip(before, driver.look())]
    table.add(all(one > 2 * GIB for one in freed), "kill frees both cards", "> 2 GiB each", freed)
    said = re.search(r"freed ([\d.]+) of ([\d.]+) GiB", told)
    table.add(bool(said) and abs(float(said[1]) - sum(freed) / GIB) < 0.06, "and says how much",
              f"{sum(freed) / GIB:.1f} GiB", said[0] if said else told[-80:])


def isolated(table, lens, driver):
    _, plain = still(lens, driver)
    _, child = still(lens, driver, "--isolate")
    for key in ("total_bytes", "used_bytes", "free_bytes", "reserved_bytes"):
        table.same(f"--isolate: {key}", [gpu["memory"][key] for gpu in plain["gpus"]],
                   [gpu["memory"][key] for gpu in child["gpus"]])
    left = [pid for pid in os.listdir("/proc") if pid.isdigit() and runs(pid, lens.binary)]
    table.same("no child is left", [], left)


def runs(pid, binary):
    try:
        return os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(binary)
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="target/release/vramlens")
    options = parser.parse_args()
    end_on_signals()
    lens, driver = Vramlens(os.path.abspath(options.binary)), Driver()
    table = Table("two GPUs", ("what", "expected", "given"))
    print(subprocess.run([lens.binary, "doctor"], capture_output=True, text=True).stdout)
    with Jobs() as jobs, tempfile.TemporaryDirectory() as folder:
        sections = [lambda: both(table, lens, driver, jobs), lambda: isolated(table, lens, driver),
                    lambda: need(table, lens, driver), lambda: leftovers(table, lens, driver, jobs),
                    lambda: recording(table, lens, driver, folder)]
        for section in sections:
            try:
                section()
            except Exception as error:  # The other sections are still of use.
                table.add(False, "a section failed", "no error", f"{type(error).__name__}: {error}")
    bad = table.show()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
