#!/usr/bin/env python3
"""Makes the recording that `vramlens --demo` shows, on a real GPU.

    cargo build --release
    python3 tests/gpu/make_demo.py OUTPUT_FOLDER [--seconds 240]

Five programs with neutral names run side by side: a training loop whose memory grows, an idle
notebook, a server that answers now and then, an evaluation that dies of too little memory, and a run
that is killed while its loader workers keep what it held. Needs root (for users and a host name of
its own, in namespaces that end with it), torch, and a GPU with 140 GiB; `--scale` makes everything
smaller. Writes OUTPUT_FOLDER/demo.vrt, and demo.txt with every text in it, to be read before it is
published.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from jobs import Jobs, alive, end_on_signals

FOLDER = "/srv/work"
USERS = {"ana": 1001, "bo": 1002, "kim": 1003}
LARGEST = 1 << 20

# Blocks of odd sizes are kept and dropped, so that the cache is not all of use.
TRAIN = """
import torch, random
mib, seconds = int(os.environ["JOB_MIB"]), float(os.environ["JOB_SECONDS"])
random.seed(7)
weights = hold(mib // 4)
ready()
kept, began = [], time.monotonic()
a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
while True:
    share = min(1.0, (time.monotonic() - began) / seconds)
    if sum(x.numel() for x in kept) >> 20 < share * mib * 3 // 4:
        kept.append(hold(random.randint(24, 180)))
        if len(kept) % 3 == 0:
            kept.pop(random.randrange(len(kept)))
    for _ in range(40):
        b = a @ a
    torch.cuda.synchronize()
"""

NOTEBOOK_SERVER = """
import subprocess
env = dict(os.environ, JPY_PARENT_PID=str(os.getpid()))
subprocess.Popen([sys.argv[1], "ipykernel_launcher.py", "-f", "kernel-1.json"], env=env,
                 start_new_session=True).wait()
"""

NOTEBOOK = """
x = hold(int(os.environ["JOB_MIB"]))
ready()
time.sleep(1e6)
"""

SERVE = """
import socket, torch
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", 8000))
listener.listen()
x = hold(int(os.environ["JOB_MIB"]))
a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
ready()
n = 0
while True:
    n += 1
    end = time.monotonic() + (1.5 if n % 4 else 0.3)
    while time.monotonic() < end:
        b = a @ a
        torch.cuda.synchronize()
        time.sleep(0.002)
    time.sleep(2.5 if n % 4 else 9)
"""

EVALUATE = """
kept, mib = [], int(os.environ["JOB_MIB"])
ready()
while sum(x.numel() for x in kept) >> 20 < mib:
    kept.append(hold(mib // 30))
    time.sleep(2)
raise MemoryError("no room for the next batch")
"""

FINETUNE = """
import torch
x = hold(int(os.environ["JOB_MIB"]))
workers = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        time.sleep(1e6)
    workers.append(pid)
ready(children=workers)
compute(size=6144)
"""


# `python` is this interpreter, so that command lines read as people write them.
PATH = os.path.dirname(sys.executable) + ":" + os.environ["PATH"]


def usable(python, user=None):
    """Whether an interpreter has torch, for somebody else than root too."""
    test = [python, "-c", "import torch; torch.ones(1, device='cuda')"]
    who = {"user": user, "group": user} if user else {}
    try:
        return subprocess.run(test, **who, cwd="/", capture_output=True, timeout=120,
                              env={**os.environ, "HOME": FOLDER, "PATH": PATH}).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def recorder(binary, arguments):
    """The recorder, on a host with another name and users of its own."""
    passwd = os.path.join(FOLDER, ".passwd")
    with open("/etc/passwd") as old, open(passwd, "w") as new:
        taken = {str(uid) for uid in USERS.values()}
        new.writelines(line for line in old if line.split(":")[2] not in taken)
        new.writelines(f"{name}:x:{uid}:{uid}::/home/{name}:/bin/sh\n"
                       for name, uid in USERS.items())
    script = 'hostname gpubox && mount --bind "$0" /etc/passwd && exec "$@"'
    wrapped = ["unshare", "--uts", "--mount", "sh", "-c", script, passwd]
    probe = subprocess.run([*wrapped, "true"], capture_output=True)
    if probe.returncode:
        print("no namespaces: the host's own name and users will be in the recording; "
              + probe.stderr.decode(), file=sys.stderr)
        wrapped = []
    return [*wrapped, binary, "record", *arguments, "--interval", "1s"]


def play(jobs, options):
    """The five programs, in their order."""

    def start(name, script, gib, who, file=None, arguments=(), **env):
        user = USERS[who] if options.users else None
        mib = int(gib * 1024 * options.scale)
        return jobs.start(name, script, file=file, user=user,
                          command=lambda path: [options.python, os.path.basename(path), *arguments],
                          env={"JOB_MIB": str(mib), "USER": who, "PATH": PATH, **env})

    began = time.monotonic()
    def at(share):
        time.sleep(max(0, began + share * options.seconds - time.monotonic()))

    at(0.02)
    serve = start("serve", SERVE, 24, "kim", arguments=("--port", "8000"))
    finetune = start("finetune", FINETUNE, 18, "bo", arguments=("--config", "base.yaml"))
    jobs.wait([serve, finetune])
    jobs.write("ipykernel_launcher.py", NOTEBOOK)
    notebook = start("notebook", NOTEBOOK_SERVER, 9, "bo", file="jupyter-server.py",
                     arguments=(options.python,))
    train = start("train", TRAIN, 64, "ana", arguments=("--epochs", "40"),
                  JOB_SECONDS=str(options.seconds * 0.95))
    jobs.wait([notebook, train])
    at(0.25)
    evaluate = start("evaluate", EVALUATE, 14, "kim", arguments=("--split", "test"))
    jobs.wait([evaluate])
    at(0.42)
    finetune.kill_and_reap()
    at(1.0)
    leftovers = [pid for pid in finetune.facts["children"] if alive(pid)]
    if len(leftovers) != 2:
        raise RuntimeError("the workers of the killed run are gone: nothing to find in the demo")
    for job in (serve, train, notebook):
        if not alive(job.pid):
            raise RuntimeError(f"{job.name} ended early: {open(job.log).read()[-1000:]}")
    if evaluate.process.poll() is None:
        print("evaluate.py has not died within the recording", file=sys.stderr)


def texts_of(value, found):
    """Every text in a tick, to look for what should not be published."""
    if isinstance(value, str):
        found.add(value)
    elif isinstance(value, list):
        for item in value:
            texts_of(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            texts_of(item, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes; 1 needs 140 GiB")
    parser.add_argument("--binary", default="target/release/vramlens")
    options = parser.parse_args()
    end_on_signals()
    os.makedirs(options.folder, exist_ok=True)
    target = os.path.join(options.folder, "demo.vrt")
    plain = os.path.join(options.folder, "demo.ndjson")
    binary = os.path.abspath(options.binary)
    with Jobs(FOLDER) as jobs:
        for name in os.listdir(FOLDER):
            os.chmod(os.path.join(FOLDER, name), 0o644)
        options.python = "python" if usable("python") else sys.executable
        options.users = usable(options.python, USERS["ana"])
        if not options.users:
            print("torch is root's only here: every process will be root's", file=sys.stderr)
        file = subprocess.Popen(recorder(binary, [target]), stdin=subprocess.DEVNULL)
        with open(plain, "w") as out:
            pipe = subprocess.Popen(recorder(binary, ["-"]), stdout=out, stdin=subprocess.DEVNULL)
        try:
            play(jobs, options)
        finally:
            for process in (file, pipe):
                process.send_signal(signal.SIGINT)
                process.wait(timeout=10)
    found, ticks = set(), 0
    with open(plain) as lines:
        for line in lines:
            texts_of(json.loads(line), found)
            ticks += 1
    with open(os.path.join(options.folder, "demo.txt"), "w") as out:
        out.writelines(f"{text}\n" for text in sorted(found))
    os.remove(plain)
    size = os.path.getsize(target)
    print(f"{target}: {size} bytes, {ticks} lines, {len(found)} different texts in demo.txt")
    return 0 if file.returncode == 0 and size <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
