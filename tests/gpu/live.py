"""What the live view and the recorder cost."""

import fcntl
import json
import os
import pty
import resource
import select
import signal
import stat
import struct
import subprocess
import tempfile
import termios
import time

SECONDS = 120
SIZE = (50, 160)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as text:
        fields = text.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_kib(pid):
    with open(f"/proc/{pid}/status") as text:
        return next(int(line.split()[1]) for line in text if line.startswith("VmHWM"))


def measure(table, binary):
    view(table, binary)
    stream(table, binary)
    file(table, binary)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["nvidia-smi"], stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    table.add(True, "for comparison: one nvidia-smi", "-", f"{spent * 1000:.0f} ms CPU")


def view(table, binary):
    """The view in a terminal whose other end reads all the time."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            os.environ["TERM"] = "xterm-256color"
            os.execv(binary, [binary, "--interval", "1s"])
        finally:
            os._exit(127)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
    try:
        written = look_on(table, pid, master)
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(master)
    return written


def look_on(table, pid, master):
    def drain(seconds):
        end, count, tail = time.monotonic() + seconds, 0, b""
        while (left := end - time.monotonic()) > 0:
            if select.select([master], [], [], left)[0]:
                try:
                    data = os.read(master, 65536)
                except OSError:
                    return count, tail
                count, tail = count + len(data), (tail + data)[-65536:]
        return count, tail

    warm = drain(5)
    table.add(warm[0] > 1000, "the first frame is drawn", "some bytes", warm[0])
    before, began = cpu_seconds(pid), time.monotonic()
    count, tail = drain(SECONDS)
    took, spent = time.monotonic() - began, cpu_seconds(pid) - before
    table.add(took > SECONDS - 1, "it runs as long as it should", f"{SECONDS} s", f"{took:.0f} s")
    table.add(True, "CPU time per refresh", "-", f"{spent * 1000 / took:.2f} ms")
    table.add(True, "peak RSS", "-", f"{peak_kib(pid) / 1024:.1f} MiB")
    table.add(True, "bytes written to the terminal", "-", f"{count / took:.0f} a second")
    os.write(master, b"q")
    _count, last = drain(2)
    deadline = time.monotonic() + 3
    while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.02)
    ended, status = ended
    table.add(ended == pid and os.waitstatus_to_exitcode(status) == 0, "q ends it", "exit 0",
              os.waitstatus_to_exitcode(status) if ended else "still there")
    table.add(b"\x1b[?1049l" in last and b"\x1b[?25h" in last, "the terminal is restored", "yes",
              last[-40:])
    return count


def stream(table, binary):
    """`record -` says how many driver calls a refresh makes and how long they take."""
    process = subprocess.Popen([binary, "record", "-", "--interval", "1s"],
                               stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    lines, end = [], time.monotonic() + 16
    while time.monotonic() < end:
        if select.select([process.stdout], [], [], 0.5)[0]:
            line = process.stdout.readline()
            if not line:
                break
            lines.append(json.loads(line))
    process.terminate()
    process.wait(timeout=5)
    ticks = [line["gpus"] for line in lines if "gpus" in line]
    table.add(bool(lines) and "header" in lines[0], "record -: a header first", "header",
              list(lines[0]) if lines else "nothing")
    table.add(len(ticks) >= 10, "record -: ticks in 16 s", "10 or more", len(ticks))
    steady = ticks[2:]
    if steady:
        gpus = max(1, len(steady[-1]["gpus"]))
        calls = sum(tick["driver_calls"] for tick in steady) / len(steady)
        table.add(True, "driver calls per refresh", "-", f"{calls:.1f} for {gpus} GPU(s)")
        table.add(True, "time in the driver per refresh", "-",
                  f"{sum(tick['took_ms'] for tick in steady) / len(steady):.1f} ms, "
                  f"longest {max(tick['took_ms'] for tick in steady)} ms")


def file(table, binary):
    """A recording has its name when it is complete, and is its owner's only."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.vrt")
        process = subprocess.Popen([binary, "record", path, "--interval", "500ms"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(6)
        part = os.path.exists(path + ".part") and not os.path.exists(path)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=5)
        ok = part and os.path.exists(path) and not os.path.exists(path + ".part")
        table.add(ok, "record FILE", "FILE.part, then FILE", os.listdir(folder))
        if os.path.exists(path):
            about = os.stat(path)
            table.add(stat.S_IMODE(about.st_mode) == 0o600, "its mode", "0o600",
                      oct(stat.S_IMODE(about.st_mode)))
            table.add(True, "its size", "-", f"{about.st_size} bytes for 6 s at 500 ms")
