#!/usr/bin/env python3
"""What monitors cost over the real driver, one after the other, beside the same busy processes.

    python3 tests/gpu/cost.py vramlens=target/release/vramlens nvtop=/usr/bin/nvtop \\
        'watch=watch -n1 nvidia-smi' [--settle 40] [--seconds 40] [--jobs 3]

Each runs in a terminal of 160x50 whose other end reads all the time. CPU time is that of the
monitor and of the processes that it started and has waited for; memory that of the monitor alone.
The first program is what ratios are to. Needs an NVIDIA GPU and torch.
"""

import argparse
import fcntl
import glob
import os
import pty
import select
import shlex
import signal
import struct
import sys
import termios
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from jobs import Jobs, end_on_signals

BUSY = """
x = hold(2048)
compute(0.2)
ready()
compute()
"""
HELD = """
x = hold(1024)
ready()
time.sleep(1e6)
"""


def cpu_ms(pid):
    """Of all threads by the scheduler's clock, of children that were waited for by ticks."""
    own = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path) as text:
            own += int(text.read().split()[0])
    with open(f"/proc/{pid}/stat") as text:
        fields = text.read().rpartition(")")[2].split()
    children = (int(fields[13]) + int(fields[14])) * 1000 / os.sysconf("SC_CLK_TCK")
    return own / 1e6 + children


def memory_mib(pid):
    with open(f"/proc/{pid}/status") as text:
        kib = {line.split(":")[0]: int(line.split()[1]) for line in text if line.endswith("kB\n")}
    return kib["VmRSS"] / 1024, kib["RssAnon"] / 1024


class Monitor:
    def __init__(self, command):
        self.began = time.monotonic()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
            os.execvp(command[0], command)

    def drain(self, seconds, needle=None):
        """Bytes that came, and when the needle was first there, in milliseconds after the start."""
        end, count, tail, found = time.monotonic() + seconds, 0, b"", None
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    break
                count, tail = count + len(data), (tail + data)[-65536:]
                if needle and found is None and needle in tail:
                    found = (time.monotonic() - self.began) * 1000
        return count, found

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        self.drain(1)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.master)


def measure(command, settle, seconds):
    monitor = Monitor(command)
    try:
        _, first = monitor.drain(settle, b"H200")
        before, began = cpu_ms(monitor.pid), time.monotonic()
        count, _ = monitor.drain(seconds)
        took = time.monotonic() - began
        spent = cpu_ms(monitor.pid) - before
        resident, private = memory_mib(monitor.pid)
        threads = len(os.listdir(f"/proc/{monitor.pid}/task"))
        return [spent / took, count / took, first or float("nan"), resident, private, threads]
    finally:
        monitor.end()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("programs", nargs="+", help="NAME=COMMAND")
    options.add_argument("--settle", type=float, default=40)
    options.add_argument("--seconds", type=float, default=40)
    options.add_argument("--jobs", type=int, default=3)
    options = options.parse_args()
    end_on_signals()
    rows = ["CPU, ms a second", "terminal, bytes a second", "first GPU on screen, ms",
            "resident, MiB", "private, MiB", "threads"]
    with Jobs() as jobs:
        for n in range(options.jobs):
            jobs.start(f"job{n}", BUSY if n == 0 else HELD)
        jobs.wait()
        names, columns = [], []
        for program in options.programs:
            name, command = program.split("=", 1)
            names.append(name)
            columns.append(measure(shlex.split(command), options.settle, options.seconds))
    print(" " * 26 + "".join(f"{name:>14}" for name in names))
    for row, *values in zip(rows, *columns):
        print(f"{row:<26}" + "".join(f"{value:>14.2f}" for value in values))


if __name__ == "__main__":
    main()
