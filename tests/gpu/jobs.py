"""Starts real GPU programs, knows when they are ready, and ends every one of them.

Whatever is started here has a token in its environment, which forks inherit. Cleaning up looks for
the token, so that orphans of orphans are found too and nothing else is ever touched.
"""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

# Every script begins with this: `ready(...)` tells the starter that it holds its memory.
PRELUDE = '''
import json, os, signal, sys, time
def ready(**facts):
    facts["pid"] = os.getpid()
    with open(os.environ["JOB_READY"] + ".new", "w") as out:
        json.dump(facts, out)
    os.rename(os.environ["JOB_READY"] + ".new", os.environ["JOB_READY"])
def hold(mib):
    import torch
    return torch.ones(mib << 20, dtype=torch.uint8, device="cuda")
def compute(seconds=1e9, size=4096):
    import torch
    a = torch.randn(size, size, device="cuda", dtype=torch.float16)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(50):
            b = a @ a
        torch.cuda.synchronize()
'''


class Job:
    """A started program and what it said when it was ready."""

    def __init__(self, name, process, ready_file, log):
        self.name, self.process, self.ready_file, self.log = name, process, ready_file, log
        self.facts = None

    def is_ready(self):
        if self.facts is None and os.path.exists(self.ready_file):
            with open(self.ready_file) as text:
                self.facts = json.load(text)
        return self.facts is not None

    @property
    def pid(self):
        """The process that holds the memory; not always the one that was started."""
        return self.facts["pid"]

    def kill_and_reap(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait(timeout=20)


class Jobs:
    """All programs of a run. Use as a context manager."""

    def __init__(self, folder=None):
        self.own_folder = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="gpu-jobs-")
        os.makedirs(self.folder, exist_ok=True)
        self.token = uuid.uuid4().hex
        self.state = tempfile.mkdtemp(prefix="gpu-jobs-state-")
        os.chmod(self.state, 0o777)
        self.jobs = []
        atexit.register(self.end_all)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_all()

    def environment(self, extra=None):
        env = dict(os.environ, JOB_TOKEN=self.token, CUDA_VISIBLE_DEVICES="0",
                   PYTHONUNBUFFERED="1", HOME=self.folder)
        env.update(extra or {})
        return env

    def write(self, file, script):
        """A script that others start."""
        path = os.path.join(self.folder, file)
        with open(path, "w") as out:
            out.write(PRELUDE + script)
        os.chmod(path, 0o644)
        return path

    def start(self, name, script, arguments=(), command=None, env=None, user=None, file=None):
        """Writes the script and starts it, the leader of a session of its own."""
        path = self.write(file or name + ".py", script)
        ready_file = os.path.join(self.state, name + ".ready")
        log = os.path.join(self.state, name + ".log")
        command = command(path) if command else [sys.executable, path, *map(str, arguments)]
        with open(log, "w") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder,
                env=self.environment({"JOB_READY": ready_file, **(env or {})}),
                start_new_session=True, **({"user": user, "group": user} if user else {}))
        job = Job(name, process, ready_file, log)
        self.jobs.append(job)
        return job

    def wait(self, jobs=None, seconds=120):
        """Until all are ready. A job that ends before is a fault, told with its last words."""
        deadline = time.monotonic() + seconds
        for job in jobs or self.jobs:
            while not job.is_ready():
                daemonised = job.process.poll() == 0
                if (job.process.poll() is not None and not daemonised) or \
                        time.monotonic() > deadline:
                    words = open(job.log).read()[-1500:]
                    raise RuntimeError(f"{job.name} did not become ready: {words}")
                time.sleep(0.05)

    def mine(self):
        """Pids with the token that live, zombies left out."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as text:
                    if self.token.encode() not in text.read():
                        continue
                if alive(int(entry)):
                    found.append(int(entry))
            except OSError:
                continue
        return found

    def end_all(self):
        deadline = time.monotonic() + 20
        while (left := self.mine()) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.1)
        for job in self.jobs:
            if job.process.poll() is None:
                try:
                    job.process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    print(f"{job.name} ({job.process.pid}) does not end", file=sys.stderr)
        shutil.rmtree(self.state, ignore_errors=True)
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def stat(pid):
    """Fields of /proc/PID/stat behind the name, from the state (field 3) on."""
    with open(f"/proc/{pid}/stat") as text:
        return text.read().rpartition(")")[2].split()


def alive(pid):
    try:
        return stat(pid)[0] not in "ZX"
    except (OSError, IndexError):
        return False


def start_ticks(pid):
    return int(stat(pid)[19])


def age_seconds(pid):
    with open("/proc/uptime") as text:
        up = float(text.read().split()[0])
    return up - start_ticks(pid) / os.sysconf("SC_CLK_TCK")


def until(condition, seconds, what):
    """Polls; says what did not happen."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return result


def end_on_signals():
    """So that cleaning up happens when the run is cut short, too."""
    def end(number, _frame):
        sys.exit(128 + number)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
