#!/usr/bin/env bash
# doctor, serve and run on a machine with a GPU and torch: what they print, for eyes, and a few
# figures against nvidia-smi. Usage: tests/gpu/smoke.sh OUT_FOLDER
out=${1:-.}
lens=${VRAMLENS:-target/release/vramlens}
echo "== doctor"; "$lens" doctor; echo "exit $?"
python3 -c 'import torch,time; x=torch.zeros(1<<30,dtype=torch.uint8,device="cuda"); time.sleep(25)' &
sleep 6
echo "== serve"
"$lens" serve --pcie >"$out/serve.log" 2>&1 & server=$!
sleep 4
curl -s 127.0.0.1:9835/metrics >"$out/metrics.txt"
grep -E '^vramlens_(gpu_memory|driver_look_seconds|cpu_seconds|resident|up|holder_memory)' "$out/metrics.txt"
nvidia-smi --query-gpu=memory.used,memory.free,memory.reserved --format=csv,noheader,nounits
curl -s 127.0.0.1:9835/healthz; echo
kill $server; wait
echo "== isolate: figures as without it, nobody left at the end"
python3 -c 'import torch,time; x=torch.zeros(1<<30,dtype=torch.uint8,device="cuda"); time.sleep(25)' & holder=$!
sleep 6
compare() {
    python3 - "$1" "$2" <<'P'
import json, sys
keep = ["index", "uuid", "name", "memory", "ledger", "listed_processes", "power_limit_milliwatts",
        "persistence", "mig_enabled"]
def of(file):
    all = json.load(open(file))
    gpus = [{key: gpu[key] for key in keep} for gpu in all["gpus"]]
    # The program itself, or its process for the driver, has the device open and is in no list.
    listed = [h for h in all["holders"] if h["listed"]]
    return gpus, [{key: h[key] for key in ["gpu", "pid", "bytes", "kind"]} for h in listed]
a, b = of(sys.argv[1]), of(sys.argv[2])
print("equal" if a == b else f"DIFFER:\n{a}\n{b}")
P
}
"$lens" --json >"$out/here.json"; "$lens" --json --isolate >"$out/apart.json"; compare "$out/here.json" "$out/apart.json"
"$lens" triage --json >"$out/here.json"; "$lens" triage --json --isolate >"$out/apart.json"
compare "$out/here.json" "$out/apart.json"
python3 - "$lens" <<'P'
import os, subprocess, sys, time
def askers():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        except OSError:
            continue
        if b"driver" in words and b"--parent" in words:
            found.append(pid)
    return found
print("left after a good end:", askers())
child = subprocess.Popen([sys.argv[1], "record", "-", "--isolate"], stdout=subprocess.DEVNULL)
time.sleep(3)
print("while it runs:", len(askers()))
child.kill(); child.wait(); time.sleep(1)
print("left after a KILL of its parent:", askers())
P
kill $holder; wait $holder 2>/dev/null
echo "== power"
for gpu in /sys/bus/pci/devices/*; do
    if [ "$(cat "$gpu/vendor")" = 0x10de ] && grep -q ^0x03 "$gpu/class"; then
        echo "$gpu $(cat "$gpu/power/control") $(cat "$gpu/power/runtime_status")"
    fi
done
cat /proc/driver/nvidia/gpus/*/power
echo "== what opening the library opens: which device files, by which call"
python3 - <<'P'
import ctypes, glob, os
lib = ctypes.CDLL("libnvidia-ml.so.1")
def opened():
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if name.startswith("/dev/nvidia"):
            found.append(name)
    return sorted(set(found))
def is_gpu(folder):
    text = lambda name: open(f"{folder}/{name}").read()
    return text("vendor").startswith("0x10de") and text("class").startswith("0x03")
folders = filter(is_gpu, sorted(glob.glob("/sys/bus/pci/devices/*")))
addresses = [os.path.basename(folder).encode() for folder in folders]
print("on the bus:", addresses)
for name, flags in [("nvmlInit_v2", None), ("NO_ATTACH", 2), ("NO_ATTACH and NO_GPUS", 3)]:
    code = lib.nvmlInit_v2() if flags is None else lib.nvmlInitWithFlags(flags)
    print(name, code, opened())
    handle = ctypes.c_void_p()
    for address in addresses:
        code = lib.nvmlDeviceGetHandleByPciBusId_v2(address, ctypes.byref(handle))
        used = (ctypes.c_ulonglong * 3)()
        asked = lib.nvmlDeviceGetMemoryInfo(handle, used) if code == 0 else None
        print("  handle of", address, code, "memory", asked, opened())
    lib.nvmlShutdown()
    print("  after nvmlShutdown", opened())
P
debug=${VRAMLENS_DEBUG:-target/debug/vramlens}
if [ -x "$debug" ]; then
    echo "== a GPU that is said to sleep is not opened (a debug build: it takes a tree for the machine)"
    root=$(mktemp -d) state=active
    said() { mkdir -p "$root/sys/bus/pci/devices/$1/power"; cd "$root/sys/bus/pci/devices/$1" || exit
        echo 0x10de >vendor; echo 0x030200 >class; echo 0x2335 >device
        echo auto >power/control; echo "$2" >power/runtime_status; cd - >/dev/null || exit; }
    for gpu in /sys/bus/pci/devices/*; do
        if [ "$(cat "$gpu/vendor")" = 0x10de ] && grep -q ^0x03 "$gpu/class"; then
            said "$(basename "$gpu")" $state; state=suspended
        fi
    done
    said 0000:fe:00.0 suspended
    VRAMLENS_TEST_ROOT=$root "$debug" record - --interval 500ms >"$out/partial.jsonl" & recorder=$!
    sleep 5
    echo "open:"; for fd in /proc/$recorder/fd/*; do readlink "$fd"; done | grep /dev/nvidia | sort -u
    kill $recorder; wait $recorder 2>/dev/null
    grep '^{"gpus"' "$out/partial.jsonl" | tail -1 | python3 -c 'import json,sys
for gpu in json.loads(sys.stdin.read())["gpus"]["gpus"]: print(gpu["index"], gpu["pci_bus_id"], gpu["name"], gpu["memory"])'
    rm -r "$root"
fi
echo "== run: an error"
cat >"$out/oom.py" <<'P'
import torch, time
kept = []
while True:
    kept.append(torch.empty(4 << 30, dtype=torch.uint8, device="cuda"))
    time.sleep(0.15)
P
"$lens" run -- python3 "$out/oom.py" 2>&1 | tail -60; echo "exit ${PIPESTATUS[0]}"
echo "== run: a good end"
"$lens" run -- python3 -c 'import torch,time
x=torch.zeros(6<<30,dtype=torch.uint8,device="cuda"); time.sleep(3); print("peak", torch.cuda.max_memory_reserved())'
