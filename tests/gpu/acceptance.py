#!/usr/bin/env python3
"""Holds vramlens against the real driver and against real processes.

    cargo build --release
    python3 tests/gpu/acceptance.py [figures] [verdicts] [kill] [live]

Needs an NVIDIA GPU, torch and nvidia-ml-py; CuPy for the case of managed memory. Run it as root on a
machine whose first GPU nobody uses. Without a section it runs all of them, each in three minutes at
the most. Prints a table for each and exits 1 on any difference. Ends everything that it started.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import live
import scene
from driver import Driver
from jobs import Jobs, alive, end_on_signals, start_ticks, until

SECTIONS = ("figures", "verdicts", "kill", "live")
ATTEMPTS = 60
MIB = 1 << 20


class Table:
    """Rows of expected and given, and whether they agree."""

    def __init__(self, title, heads):
        self.title, self.rows, self.bad = title, [heads], 0

    def add(self, ok, *cells):
        self.rows.append(("ok" if ok else "DIFFERS", *map(str, cells)))
        self.bad += not ok

    def same(self, name, expected, given):
        self.add(expected == given, name, expected, given)

    def near(self, name, low, high, given):
        ok = isinstance(given, (int, float)) and low <= given <= high
        self.add(ok, name, f"{low:g}..{high:g}", given)

    def show(self):
        rows = [("", *self.rows[0]), *self.rows[1:]]
        widths = [min(58, max(len(row[n]) for row in rows)) for n in range(len(rows[0]))]
        print(f"\n== {self.title}")
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        sys.stdout.flush()
        return self.bad


class Vramlens:
    """The program under test."""

    def __init__(self, binary):
        self.binary = binary

    def run(self, *arguments, ok=(0,), seconds=90):
        done = subprocess.run([self.binary, *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=seconds)
        if done.returncode not in ok:
            raise RuntimeError(f"vramlens {' '.join(arguments)} ended with {done.returncode}\n"
                               f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done

    def json(self, *arguments, ok=(0,)):
        return json.loads(self.run(*arguments, "--json", ok=ok).stdout)


def figures(lens, driver, jobs, _shared):
    """Every figure against NVML at the same moment, bytes equal."""
    hold = jobs.start("hold", scene.HOLD)
    busy = jobs.start("busy", scene.COMPUTE)
    jobs.wait([hold, busy])
    table = Table("figures: Python's NVML against vramlens --json", ("figure", "NVML", "given"))
    for _attempt in range(ATTEMPTS):
        before = driver.look()
        snapshot = lens.json()
        if before == driver.look():
            break
        time.sleep(0.25)
    else:
        raise RuntimeError("the driver's figures never stood still")
    version, cuda = driver.versions()
    table.same("driver", version, snapshot["host"]["driver"])
    table.same("CUDA", cuda, snapshot["host"]["cuda"])
    whole = [gpu for gpu in snapshot["gpus"] if gpu["mig"] is None]
    table.same("GPUs", driver.count, len(whole))
    for index, (gpu, (memory, processes)) in enumerate(zip(whole, before)):
        one_gpu(table, driver, snapshot, gpu, index, memory, processes)
    for job in (hold, busy):
        one_holder(table, snapshot, job.pid)
    return table.show()


def one_gpu(table, driver, snapshot, gpu, index, memory, processes, busy=True):
    label = f"GPU {index} "
    for name, expected in memory.items():
        given = gpu["memory"][f"{name}_bytes"]
        if expected is None:
            expected = {"absent": "old_driver"}
        table.same(f"{label}memory {name}", expected, given)
    listed = {holder["pid"]: holder["bytes"] for holder in snapshot["holders"]
              if holder["gpu_uuid"] == gpu["uuid"] and holder["listed"]}
    table.same(f"{label}processes", dict(sorted(processes.items())), dict(sorted(listed.items())))
    ledger = {name: value if isinstance(value, int) else 0
              for name, value in gpu["ledger"].items()}
    parts = ("processes", "survivors", "unaccounted", "reserved", "free")
    table.same(f"{label}ledger adds up",
               ledger["total_bytes"] + ledger["shared_bytes"],
               sum(ledger[f"{part}_bytes"] for part in parts))
    fixed, moving = driver.fixed(index)
    for name, expected in fixed.items():
        if expected is not None:
            table.same(label + name, expected, gpu[name])
    for name, (now, slack) in moving.items():
        if now is not None:
            table.near(label + name, now - slack, now + slack, gpu[name])
    table.near(f"{label}utilization", 1 if busy and index == 0 else 0, 100,
               gpu["utilization"]["sm_percent"])


def one_holder(table, snapshot, pid):
    row = next((holder for holder in snapshot["holders"] if holder["pid"] == pid), None)
    if row is None:
        table.add(False, f"pid {pid}", "in the list", "missing")
        return
    table.same(f"{pid} start", start_ticks(pid), row["start"])
    table.same(f"{pid} uid", os.stat(f"/proc/{pid}").st_uid, row["uid"])
    with open(f"/proc/{pid}/cmdline") as text:
        table.same(f"{pid} command", text.read().rstrip("\0").replace("\0", " "), row["command"])
    table.same(f"{pid} kind", "C", row["kind"])


def verdicts(lens, driver, jobs, shared):
    """The confusion table."""
    table = Table("verdicts: expected and given", ("case", "pid", "expected", "given"))
    for turn in ("first", "second"):
        done = lens.run("triage", ok=(0, 1))
        table.add(done.returncode == 0, f"{turn} triage of a clean card", "-", "exit 0",
                  f"exit {done.returncode}")
        if done.returncode:
            print(done.stdout)
    cases, facts = shared["scene"] = scene.build(jobs)
    report = lens.json("triage", ok=(0, 1))
    rows = {holder["pid"]: holder for holder in report["holders"]}
    for case in cases:
        row = rows.get(case.pid)
        given = row["verdict"] if row else {"class": "not listed", "zombie": None, "evidence": []}
        ok = given["class"] in case.classes and case.zombie in (None, given["zombie"])
        zombie = {True: " + zombie", False: "", None: " (zombie or not)"}
        table.add(ok, case.name, case.pid, "|".join(sorted(case.classes)) + zombie[case.zombie],
                  given["class"] + (" + zombie" if given["zombie"] else ""))
        if not ok:
            for one in given["evidence"]:
                print(f"  {case.pid} {one['weight']}: {one['key']}: {one['text']}")
    strangers = [pid for pid, row in rows.items()
                 if row["verdict"]["zombie"] and pid not in {case.pid for case in cases}]
    table.add(not strangers, "nobody else is a zombie", "-", "none", strangers or "none")
    survivors = {ref["pid"] for row in report["holders"] for ref in row["survivors"]}
    expected = {case.pid for case in cases if case.classes == {"survivor"}}
    table.add(expected <= survivors, "survivors are named by their ghosts", "-",
              sorted(expected), sorted(survivors))
    if facts["managed"]:
        managed_memory(table, report, facts["managed"].pid)
    table.add(bool(report["findings"]), "findings", "-", "some", len(report["findings"]))
    bad = table.show()
    marked = {pid for pid, row in rows.items() if row["verdict"]["zombie"]}
    wanted = {case.pid for case in cases if case.zombie}
    others = {case.pid for case in cases if case.zombie is False}
    print(f"zombies: {len(wanted & marked)} found, {len(wanted - marked)} missed; "
          f"others: {len(others - marked)} spared, {len(others & marked)} called zombie")
    print(lens.run("triage", ok=(0, 1)).stdout)
    return bad


def managed_memory(table, report, pid):
    gpu = report["gpus"][0]
    unaccounted = gpu["ledger"]["unaccounted_bytes"]
    table.add(1500 * MIB < unaccounted < 3000 * MIB, "unaccounted: the managed memory", pid,
              "about 2 GiB", f"{unaccounted / MIB:.0f} MiB")
    causes = [cause["key"] for cause in gpu["unaccounted_causes"] if pid in cause["pids"]]
    table.add("managed_memory" in causes, "its cause is named", pid, "managed_memory", causes)


class Watch(threading.Thread):
    """Used memory every few milliseconds, to see when it fell."""

    def __init__(self, driver):
        super().__init__(daemon=True)
        self.driver, self.samples, self.stop = driver, [], False
        self.start()

    def run(self):
        while not self.stop:
            self.samples.append((time.monotonic(), self.driver.used()))
            time.sleep(0.004)

    def end(self):
        self.stop = True
        self.join()

    def fell_by(self, since, amount):
        """Seconds from `since` until used had fallen by `amount`; None if it never had."""
        first = next(used for at, used in reversed(self.samples) if at <= since)
        times = (at for at, used in self.samples if at > since and first - used >= amount)
        return next((at - since for at in times), None)


def kill(lens, driver, jobs, shared):
    """The leftovers go, everybody else stays, and the memory is back."""
    cases, facts = shared.get("scene") or scene.build(jobs)
    shared["scene"] = (cases, facts)
    table = Table("kill", ("what", "pid", "expected", "given"))
    report = lens.json("triage", ok=(0, 1))
    zombies = {row["pid"] for row in report["holders"] if row["verdict"]["zombie"]}
    expected = {case.pid for case in cases if case.zombie}
    allowed = expected | {case.pid for case in cases if case.zombie is None}
    living = {case.pid for case in cases if alive(case.pid)}
    dry = lens.run("kill", "--zombies", "--dry-run", ok=(0, 1))
    time.sleep(0.5)
    table.add(all(map(alive, living)), "a dry run ends nobody", "-", len(living),
              sum(map(alive, living)))
    print(dry.stdout)

    dead_pids = {case.pid for case in cases if case.classes == {"ghost"}}
    held = sum(row["bytes"] for row in report["holders"]
               if row["pid"] in dead_pids | zombies and isinstance(row["bytes"], int))
    watch, before = Watch(driver), driver.used()
    time.sleep(0.1)
    began = time.monotonic()
    done = lens.run("kill", "--zombies", "--yes", ok=(0, 1))
    took = time.monotonic() - began
    time.sleep(1)
    watch.end()
    print(done.stdout, done.stderr)
    table.add(done.returncode == 0, "kill --zombies --yes", "-", "exit 0",
              f"exit {done.returncode}")
    gone = {pid for pid in living if not alive(pid)}
    table.add(expected <= gone, "all zombies died", "-", sorted(expected), sorted(gone))
    table.add(gone <= allowed, "nobody else died", "-", "none", sorted(gone - allowed) or "none")
    freed = before - driver.used()
    table.add(abs(freed - held) <= max(64 * MIB, held // 20), "freed", "-",
              f"{held / MIB:.0f} MiB listed", f"{freed / MIB:.0f} MiB")
    fell = watch.fell_by(began, int(freed * 0.99)) if freed > 0 else None
    table.add(fell is not None, "start of the command to freed", "-", "a time",
              "never" if fell is None else f"{fell * 1000:.0f} ms of {took * 1000:.0f} ms")
    said = [line for line in done.stdout.splitlines() if "freed" in line]
    table.add(bool(said), "the command says what came back", "-", "freed …",
              said[-1].strip()[:58] if said else "nothing")
    left = lens.json("triage", ok=(0, 1))
    again = [row["pid"] for row in left["holders"] if row["verdict"]["zombie"]]
    table.add(not again, "no zombie is left", "-", "none", again or "none")
    for name in ("stopped", "stubborn"):
        one_kill(table, lens, driver, facts[name])
    return table.show()


def one_kill(table, lens, driver, job):
    if not alive(job.pid):
        table.add(False, f"kill: {job.name}", job.pid, "alive before", "dead")
        return
    others = {pid for pid in lens_pids(driver) if pid != job.pid and alive(pid)}
    before, watch = driver.used(), Watch(driver)
    time.sleep(0.1)
    began = time.monotonic()
    done = lens.run("kill", str(job.pid), "--yes", ok=(0, 1))
    job.process.wait(timeout=20)
    until(lambda: driver.used() < before, 10, "memory of a killed process comes back")
    time.sleep(0.3)
    watch.end()
    freed = before - driver.used()
    fell = watch.fell_by(began, int(freed * 0.99))
    table.add(done.returncode == 0 and freed > 1000 * MIB, f"kill: {job.name}", job.pid,
              "freed about 1.5 GiB",
              f"{freed / MIB:.0f} MiB after {(fell or 0) * 1000:.0f} ms, exit {done.returncode}")
    missing = sorted(pid for pid in others if not alive(pid))
    table.add(not missing, "and nobody else died", "-", "none", missing or "none")


def lens_pids(driver):
    return {pid for _memory, processes in driver.look() for pid in processes}


def live_view(lens, driver, jobs, _shared):
    """What the view costs beside a busy GPU."""
    busy = jobs.start("busy_for_live", scene.COMPUTE)
    jobs.wait([busy])
    table = Table("live", ("what", "expected", "given"))
    live.measure(table, lens.binary)
    return table.show()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION",
                        help=f"which to run: {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--binary", default="target/release/vramlens")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    end_on_signals()
    lens, driver = Vramlens(os.path.abspath(options.binary)), Driver()
    todo = {"figures": figures, "verdicts": verdicts, "kill": kill, "live": live_view}
    chosen = [name for name in SECTIONS if name in (options.sections or SECTIONS)]
    bad, shared = 0, {}
    # The verdicts' processes are the kill's; the other sections have some of their own.
    with Jobs() as cast:
        for name in chosen:
            began = time.monotonic()
            try:
                if name in ("verdicts", "kill"):
                    bad += todo[name](lens, driver, cast, shared)
                else:
                    with Jobs() as jobs:
                        bad += todo[name](lens, driver, jobs, shared)
                    until(lambda: not jobs.mine(), 20, "the processes of a section end")
                    time.sleep(2)
            except Exception as error:  # The other sections are still of use.
                print(f"\n== {name} failed: {type(error).__name__}: {error}")
                bad += 1
            print(f"({name}: {time.monotonic() - began:.0f} s)")
            if name == "kill":
                cast.end_all()
                time.sleep(2)
    print(f"\n{'all as it should be' if bad == 0 else f'{bad} differences'}")
    return 1 if bad else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
