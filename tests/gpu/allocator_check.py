#!/usr/bin/env python3
"""Compare the allocator reader with torch on a real GPU.

    python tests/gpu/allocator_check.py [--reader target/release/examples/alloc_read] [--modes ...]

Each mode is a process with torch that does something, stops, says what torch.cuda.memory_stats() and
memory_snapshot() say, and waits. The reader reads it meanwhile from outside: every figure has to be
equal. In the storm it reads a process that never stops: every reading has to be possible, and where
blocks and counters are of one moment they have to add up. Prints a table, and for a mode that fails
the first wrong reading (RAW) and what the reader itself says of it (WHY: its next reading, FRESH: one
by a reader that knows nothing yet). Leaves with 1 on any difference, takes less than three minutes;
`--modes streams,storm,many` takes less than one.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import time

CHUNK = 2 << 20


# ---------------------------------------------------------------------------------------- the process that is read
def figures(torch):
    """What torch says of each device."""
    out = []
    snapshot = torch.cuda.memory_snapshot()
    for d in range(torch.cuda.device_count()):
        s = torch.cuda.memory_stats(d)
        if not s.get("reserved_bytes.all.peak"):
            continue
        g = {
            "ordinal": d,
            "allocated": s["allocated_bytes.all.current"],
            "reserved": s["reserved_bytes.all.current"],
            "active": s["active_bytes.all.current"],
            "inactive_split": s["inactive_split_bytes.all.current"],
            "requested": s["requested_bytes.all.current"],
            "peak_allocated": s["allocated_bytes.all.peak"],
            "peak_reserved": s["reserved_bytes.all.peak"],
            "retries": s["num_alloc_retries"],
            "ooms": s["num_ooms"],
            "segments": 0,
            "private_pools": 0,
            "expandable_segments": False,
            # Nothing moves: the blocks are of the moment of the counters.
            "free.read_at": None,
        }
        sizes, private_free, whole = collections.Counter(), 0, 0
        for seg in snapshot:
            if seg["device"] != d:
                continue
            private = tuple(seg.get("segment_pool_id", (0, 0))) != (0, 0)
            g["segments"] += 1
            g["expandable_segments"] |= bool(seg.get("is_expandable"))
            g["private_pools"] += seg["total_size"] if private else 0
            for b in seg["blocks"]:
                if b["state"] == "inactive":
                    sizes[b["size"]] += 1
                    private_free += b["size"] if private else 0
                    whole += b["size"] if len(seg["blocks"]) == 1 else 0
        g["free.count"] = sum(sizes.values())
        g["free.bytes"] = sum(k * n for k, n in sizes.items())
        g["free.largest"] = max(sizes, default=0)
        g["free.sizes"] = sorted(sizes.items())
        g["free.private_bytes"] = private_free
        g["free.releasable"] = None if g["expandable_segments"] else whole
        try:
            g["gpu"] = "GPU-" + str(torch.cuda.get_device_properties(d).uuid)
        except AttributeError:
            g["gpu"] = None
        out.append(g)
    return out


def target(mode):
    import random

    import torch

    rng = random.Random(11)
    tell = lambda x: print(json.dumps(x), flush=True)
    hear = lambda: sys.stdin.readline().strip()
    # Before CUDA is started.
    tell({"pid": os.getpid(), "torch": torch.__version__, "devices": torch.cuda.device_count()})
    hear()
    torch.cuda.init()
    keep = {}

    def quiet():
        torch.cuda.synchronize()
        # The driver's pool has no snapshot.
        tell({"figures": [] if mode == "async" else figures(torch)})
        return hear()

    def new(n, device="cuda:0"):
        return torch.empty(n, dtype=torch.uint8, device=device)

    def churn(seconds):
        """Allocates and frees without pause, as long as it is told to."""
        while seconds:
            end, ops, held = time.monotonic() + seconds, 0, []
            while time.monotonic() < end:
                for _ in range(50):
                    if len(held) > 200 or (held and rng.random() < 0.5):
                        held.pop(rng.randrange(len(held)))
                    else:
                        held.append(new(CHUNK))
                    ops += 1
            held.clear()
            tell({"ops": ops / seconds})
            seconds = float(hear())

    quiet()
    if mode in ("comb", "expandable", "max_split"):
        for turn in range(12):
            for i in range(300):
                keep[i] = new(rng.choice([300, 5000, 70_000, 900_000, 1 << 20, 3 << 20, 11 << 20, 37 << 20]) + rng.randrange(4096))
            quiet()
            for i in range(0, 300, 2 + turn % 3):
                keep.pop(i)
            quiet()
            if turn == 3:
                torch.cuda.empty_cache()
                quiet()
            if turn == 5:
                torch.cuda.reset_peak_memory_stats()
                torch.cuda.reset_accumulated_memory_stats()
                quiet()
            if turn == 7:
                try:
                    new(4 << 40)
                except RuntimeError:
                    pass
                quiet()
    elif mode == "graphs":
        x = torch.zeros(1 << 20, device="cuda")
        graphs = []
        for n in range(4):
            torch.cuda.synchronize()
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                y = x
                for _ in range(6):
                    y = torch.cat([y, y[: 1 << (12 + n)]]) * 2
            graphs.append((g, y))
            g.replay()
            quiet()
        del graphs[1:3], g, y
        quiet()
        torch.cuda.empty_cache()
        quiet()
    elif mode == "streams":
        streams = [torch.cuda.Stream() for _ in range(4)]
        for _ in range(20):
            for n, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    for i in range(20):
                        keep[n, i] = new(rng.randrange(1, 8 << 20))
                        keep[n, i].record_stream(streams[(n + 1) % 4])
            for key in list(keep)[::3]:
                keep.pop(key)
            quiet()
    elif mode == "many":
        for i in range(20_000):
            keep[i] = new(1 + (i % 200) * 512)
        for i in range(0, 20_000, 2):
            keep.pop(i)
        quiet()
        quiet()
        quiet()
        churn(float(hear_first(tell, hear)))
    elif mode == "two":
        for d in range(torch.cuda.device_count()):
            for i in range(60):
                keep[d, i] = new(rng.randrange(1, 30 << 20), f"cuda:{d}")
            for i in range(0, 60, 2):
                keep.pop((d, i))
            quiet()
    elif mode == "storm":
        churn(float(hear_first(tell, hear)))
        for i in range(50):
            keep[i] = new(rng.randrange(1, 30 << 20))
        quiet()
    elif mode == "async":
        keep[0] = new(100 << 20)
        quiet()
    tell({"done": True})
    hear()


def hear_first(tell, hear):
    tell({"storm": True})
    return hear()


# ------------------------------------------------------------------------------------------------------ the checker
CONF = {
    "expandable": "expandable_segments:True",
    "max_split": "max_split_size_mb:32,garbage_collection_threshold:0.8",
    "async": "backend:cudaMallocAsync",
}
MODES = ("comb", "expandable", "max_split", "graphs", "streams", "many", "two", "async", "storm")


class Lines:
    """A process that answers a line with a line."""

    def __init__(self, argv, env=None):
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def hear(self):
        line = self.p.stdout.readline()
        if not line:
            raise RuntimeError("%s ended with %s" % (self.p.args[0], self.p.wait(10)))
        return json.loads(line)

    def say(self, word="go"):
        self.p.stdin.write(word + "\n")
        self.p.stdin.flush()

    def ask(self, word="go"):
        self.say(word)
        return self.hear()

    def end(self):
        self.p.kill()
        self.p.wait()


def value(device, key):
    for part in key.split("."):
        device = device.get(part) if isinstance(device, dict) else None
    if key == "free.sizes":
        sizes = collections.Counter()
        for row in device or ():
            sizes[row["size"]] += row["count"]
        return sorted(sizes.items())
    return device


def compare(truth, reading):
    """(figures compared, differences)"""
    sample = reading["sample"]
    if "devices" not in sample:
        return 0, ["absent: %s" % sample]
    if sample["at"] != reading["at"]:
        return 0, ["nothing moves, and the sample is %d ms old" % (reading["at"]["boot_ms"] - sample["at"]["boot_ms"])]
    by = {d["ordinal"]: d for d in sample["devices"]}
    if sorted(by) != [t["ordinal"] for t in truth]:
        return 0, ["devices %s, torch has %s" % (sorted(by), [t["ordinal"] for t in truth])]
    n, bad = 0, []
    for t in truth:
        for key, want in t.items():
            got = value(by[t["ordinal"]], key)
            want = [tuple(x) for x in want] if key == "free.sizes" else want
            n += 1
            if got != want and not (key == "gpu" and want is None):
                bad.append("cuda:%d %s: read %s, torch says %s" % (t["ordinal"], key, str(got)[:120], str(want)[:120]))
    return n, bad


def possible(sample):
    """What is wrong with a reading of the storm."""
    bad = []
    for d in sample.get("devices", ()):
        if not d["allocated"] <= d["active"] <= d["reserved"]:
            bad.append("order %s" % d)
        if d["allocated"] % CHUNK or d["reserved"] % CHUNK:
            bad.append("half an operation: allocated %d reserved %d" % (d["allocated"], d["reserved"]))
        f = d["free"]
        # `read_at` says that the blocks are of an earlier moment than the counters.
        if "absent" not in f and not f.get("read_at") and f["bytes"] + d["active"] != d["reserved"]:
            bad.append("free %d + active %d != reserved %d" % (f["bytes"], d["active"], d["reserved"]))
    return bad


def middle(v):
    v = sorted(v)
    return v[len(v) // 2] if v else float("nan")


def explain(args, pid, row, reading, reader):
    """Keeps the first wrong reading of a mode, and what the reader says of it."""
    if "raw" not in row:
        # The rows of sizes are long and follow from the figures that do not fit then.
        sample = json.loads(json.dumps(reading["sample"]), object_hook=lambda o: {k: v for k, v in o.items() if k not in ("histogram", "sizes")})
        row["raw"] = json.dumps(sample)[:600]
        row["why"] = reader.ask("explain")["notes"]
        fresh = subprocess.run([args.reader, pid, "1", "0", "blocks", "--explain"], stdout=subprocess.PIPE, text=True, timeout=20)
        row["fresh"] = fresh.stdout[:1500]


def storm(t, reader, quick, row, args, pid):
    bad, ages = [], []
    t.say("5")
    end, seen, fresh, walked, walks = time.monotonic() + 4.5, 0, 0, 0, 0
    while time.monotonic() < end:
        blocks = seen % 2 == 1
        r = reader.ask() if blocks else quick.ask()
        s = r["sample"]
        wrong = possible(s)
        if wrong:
            bad += wrong
            explain(args, pid, row, r, reader if blocks else quick)
        row["us" if blocks else "quick"].append(r["us"])
        fresh += "at" in s and s["at"] == r["at"]
        if blocks:
            walks += 1
            for d in s.get("devices", ())[:1]:
                old = d["free"].get("read_at")
                walked += "absent" not in d["free"] and not old
                ages += [r["at"]["boot_ms"] - old["boot_ms"]] if old else [0]
        seen += 1
    t.hear()
    row["note"] = "%d readings (%d fresh); %d of %d block readings of this moment, age of the blocks at the most %s ms; %s" % (
        seen, fresh, walked, walks, max(ages, default="?"), cost(t, reader, 4))
    return bad


def cost(t, reader, pairs):
    """What it costs the process that its blocks are read every second: it is read and let alone in turn."""
    with_reads, without = [], []
    for _ in range(pairs):
        without.append(t.ask("1.5")["ops"])
        t.say("1.5")
        for pause in (0.2, 1.0):
            time.sleep(pause)
            reader.ask()
        with_reads.append(t.hear()["ops"])
    a, b = sum(without) / pairs, sum(with_reads) / pairs
    return "%.0f operations/s alone (%.0f..%.0f), %.0f read twice in 1.5 s (%+.2f %%)" % (
        a, min(without), max(without), b, 100 * (b - a) / a)


def run(mode, args):
    env = {k: v for k, v in os.environ.items() if k not in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")}
    if mode in CONF:
        env["PYTORCH_CUDA_ALLOC_CONF"] = CONF[mode]
    row = {"checks": 0, "figures": 0, "us": [], "quick": [], "locate": None, "note": "", "bad": []}
    t = Lines([sys.executable, os.path.abspath(__file__), "--target", mode], env)
    reader = quick = None
    try:
        hello = t.hear()
        row["torch"] = hello["torch"]
        if mode == "two" and hello["devices"] < 2:
            row["note"] = "skipped: one device"
            return row
        pid = str(hello["pid"])
        reader = Lines([args.reader, pid, "ask"])
        quick = Lines([args.reader, pid, "ask", "0", "quick"])
        before = reader.ask()
        if before["sample"] != {"absent": "not_yet"} and mode != "async":
            row["bad"].append("before CUDA is started: %s" % before["sample"])
        time.sleep(1.1)
        a = t.ask()
        first = True
        while "done" not in a:
            if "storm" in a:
                if mode == "storm":
                    row["bad"] += storm(t, reader, quick, row, args, pid)
                else:
                    row["note"] = cost(t, reader, 2)
                a = t.ask("0")
                continue
            r = reader.ask()
            if first:
                row["locate"], first = r["us"], False
            else:
                row["us"].append(r["us"])
            if mode == "async":
                s = r["sample"]
                ok = s.get("backend") == "cuda_malloc_async" and s["devices"] == []
                n, bad = 1, [] if ok else [str(s)]
            else:
                n, bad = compare(a["figures"], r)
                if bad:
                    explain(args, pid, row, r, reader)
                q = quick.ask()
                wrong = compare([{k: v for k, v in f.items() if k in (
                    "ordinal", "allocated", "reserved", "active", "inactive_split", "requested", "retries", "ooms")}
                    for f in a["figures"]], q)[1]
                if wrong:
                    explain(args, pid, row, q, quick)
                bad += ["quick: " + line for line in wrong]
                row["quick"].append(q["us"])
            row["checks"] += 1
            row["figures"] += n
            row["bad"] += bad
            a = t.ask()
    except (RuntimeError, KeyError, ValueError) as e:
        row["bad"].append("%s: %s" % (type(e).__name__, e))
    finally:
        for p in (t, reader, quick):
            if p:
                p.end()
    return row


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--reader", default="target/release/examples/alloc_read")
    ap.add_argument("--modes", default=",".join(MODES))
    ap.add_argument("--target")
    args = ap.parse_args()
    if args.target:
        return target(args.target)
    print("%-11s %-14s %6s %8s %5s %10s %11s %10s" % ("mode", "torch", "checks", "figures", "wrong", "locate ms", "blocks us", "quick us"))
    failed = 0
    for mode in args.modes.split(","):
        start = time.monotonic()
        row = run(mode, args)
        print("%-11s %-14s %6d %8d %5d %10.2f %11.0f %10.0f  %.0f s  %s" % (
            mode, row.get("torch", "?"), row["checks"], row["figures"], len(row["bad"]), (row["locate"] or 0) / 1000,
            middle(row["us"]), middle(row.get("quick", [])), time.monotonic() - start, row["note"]), flush=True)
        for line in row["bad"][:8]:
            print("    WRONG", line)
        if "raw" in row:
            print("    RAW  ", row["raw"])
            for note, times in row["why"][:12]:
                print("    WHY  ", "%d x %s" % (times, note[:300]))
            print("    FRESH", row["fresh"].strip())
        failed += len(row["bad"])
    print("%d wrong" % failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
