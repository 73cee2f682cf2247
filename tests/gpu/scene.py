"""Processes of every kind that a verdict has to tell apart, made for real."""

import os
import shlex
import signal
import sys

from jobs import age_seconds, alive, until

MIB = 1024

HOLD = f"x = hold({MIB})\nready()\ntime.sleep(1e6)\n"
STUBBORN = f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{HOLD}"
COMPUTE = f"x = hold({MIB})\nready()\ncompute()\n"

# The child does nothing with the GPU and keeps all that its parent had.
FORK = f"""
x = hold({MIB})
child = os.fork()
if child == 0:
    time.sleep(1e6)
ready(child=child)
time.sleep(1e6)
"""

IPC = f"""
import torch
import torch.multiprocessing as mp
def importer(queue, done):
    x = queue.get()
    x.sum().item()
    done.put(os.getpid())
    time.sleep(1e6)
if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    process = context.Process(target=importer, args=(queue, done))
    process.start()
    x = hold({MIB})
    queue.put(x)
    ready(child=done.get(timeout=90))
    time.sleep(1e6)
"""

# Workers notice a dead parent only while they wait for work; these are in the middle of an item.
LOADER = f"""
import torch
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, n):
        if n >= 2:
            time.sleep(1e6)
        return torch.zeros(4)
if __name__ == "__main__":
    x = hold({MIB})
    loader = torch.utils.data.DataLoader(
        Slow(), batch_size=1, num_workers=2, multiprocessing_context="fork")
    batches = iter(loader)
    next(batches)
    ready(children=[worker.pid for worker in batches._workers])
    time.sleep(1e6)
"""

RANK = f"x = hold({MIB})\nready()\ntime.sleep(1e6)\n"
# What an elastic launcher does: ranks in its own process group, the job's id in their environment.
AGENT = """
import subprocess
ranks = []
for rank in range(2):
    env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
               LOCAL_WORLD_SIZE="2", TORCHELASTIC_RUN_ID="none", MASTER_ADDR="127.0.0.1",
               JOB_READY=os.environ["JOB_READY"] + str(rank))
    ranks.append(subprocess.Popen([sys.executable, "rank.py"], env=env))
for rank in range(2):
    while not os.path.exists(os.environ["JOB_READY"] + str(rank)):
        time.sleep(0.05)
ready(children=[rank.pid for rank in ranks])
for rank in ranks:
    rank.wait()
"""

# A terminal multiplexer: a server without a terminal, a session with one.
MULTIPLEXER = f"""
import ctypes, pty
if os.fork():
    os._exit(0)
os.setsid()
pid, master = pty.fork()
if pid == 0:
    x = hold({MIB})
    ready(server=os.getppid())
    compute()
ctypes.CDLL(None).prctl(15, b"tmux: server", 0, 0, 0)
while True:
    try:
        os.read(master, 4096)
    except OSError:
        time.sleep(1)
"""

NOTEBOOK_SERVER = """
import subprocess
env = dict(os.environ, JPY_PARENT_PID=str(os.getpid()))
kernel = subprocess.Popen([sys.executable, "ipykernel_launcher.py", "-f", "kernel-1.json"],
                          env=env, start_new_session=True)
kernel.wait()
"""

MANAGED = """
import cupy
cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
x = cupy.ones(2 << 30, dtype=cupy.uint8)
cupy.cuda.Device().synchronize()
ready()
time.sleep(1e6)
"""


class Case:
    """What a process is, and which verdicts are right: a set of classes, and whether it may be
    ended with one key (None: either is right)."""

    def __init__(self, name, pid, classes, zombie):
        self.name, self.pid, self.classes, self.zombie = name, pid, set(classes), zombie


def build(jobs, youngest_seconds=70):
    """Starts everything, kills the parents, waits until nobody is young any more."""
    start = jobs.start
    fork = start("fork", FORK)
    ipc = start("ipc", IPC)
    loader = start("rank_with_loader", LOADER)
    jobs.write("rank.py", RANK)
    jobs.write("ipykernel_launcher.py", HOLD)
    agent = start("agent", AGENT)
    stopped = start("stopped", HOLD)
    stubborn = start("stubborn", STUBBORN)
    nohup = start("nohup", COMPUTE, command=lambda path: [
        "sh", "-c", f"nohup {shlex.quote(sys.executable)} {shlex.quote(path)} >/dev/null 2>&1 &"])
    session = start("session", MULTIPLEXER)
    notebook = start("notebook_server", NOTEBOOK_SERVER)
    try:
        import cupy  # noqa: F401
        managed = start("managed", MANAGED)
    except ImportError:
        managed = None
    jobs.wait()

    for job in (fork, ipc, loader, agent):
        job.kill_and_reap()
    os.kill(stopped.pid, signal.SIGSTOP)

    quiet = {"idle", "unknown"}
    cases = [
        Case("fork, parent killed: the dead pid", fork.pid, {"ghost"}, False),
        Case("fork, parent killed: the child", fork.facts["child"], {"survivor"}, True),
        Case("CUDA IPC importer, owner killed", ipc.facts["child"], {"orphan"}, True),
        Case("rank killed: the dead pid", loader.pid, {"ghost"}, False),
        *(Case("rank killed: loader worker", pid, {"survivor"}, True)
          for pid in loader.facts["children"]),
        *(Case("agent killed: rank", pid, {"orphan"}, True) for pid in agent.facts["children"]),
        Case("stopped (SIGSTOP)", stopped.pid, {"suspended"}, False),
        Case("ignores TERM, parent lives", stubborn.pid, quiet, False),
        Case("nohup, computes", nohup.pid, {"active"}, False),
        Case("session of a multiplexer, computes", session.pid, {"active"}, False),
        Case("notebook kernel, idle", notebook.pid, quiet, False),
    ]
    if managed:
        cases.append(Case("managed memory", managed.pid, quiet | {"active"}, False))
    living = [case.pid for case in cases if alive(case.pid)]
    until(lambda: min(map(age_seconds, living)) > youngest_seconds, youngest_seconds + 30,
          "the processes come of age")
    return cases, {"managed": managed, "stopped": stopped, "stubborn": stubborn}
