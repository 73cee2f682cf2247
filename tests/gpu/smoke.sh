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
