#!/usr/bin/env bash
# Runs on a machine with a GPU what tests/make_bundle.sh has packed, beside which it lies: tests,
# most important first, then figures. Goes on past failures, prints a table last and leaves its logs
# in $OUT (./gpu_logs without one) as one file. It takes some four minutes; GPU_SECONDS ends it.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$PWD/gpu_logs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
logs="$work/logs"
mkdir -p "$out" "$logs"
begin=$SECONDS
budget=${GPU_SECONDS:-540}
table="$logs/table.txt"
: > "$table"

# step NAME SECONDS COMMAND...: the command's output goes to a log; its end to the table.
step() {
  local name=$1 limit=$2 status started=$SECONDS left=$((budget - (SECONDS - begin)))
  shift 2
  if ((left < 5)); then
    printf '%-28s %-9s\n' "$name" "no time" | tee -a "$table"
    return
  fi
  timeout -k 5 $((limit < left ? limit : left)) "$@" > "$logs/$name.log" 2>&1
  status=$?
  local word="failed $status"
  case $status in 0) word=passed ;; 77) word=skipped ;; 124 | 137) word="timed out" ;; esac
  printf '%-28s %-9s %4d s  %s\n' "$name" "$word" $((SECONDS - started)) \
    "$(grep -aE 'assertions:|All tests passed|tokens/s' "$logs/$name.log" | tail -1 | cut -c1-90)" |
    tee -a "$table"
}

# What there is by now comes back even if this is ended.
save() {
  cp "$table" "$out/table.txt"
  tar -czf "$out/logs.tar.gz" -C "$work" logs
}

# folder_of LIBRARY: where it is on this machine.
folder_of() {
  local found
  found=$(ldconfig -p | awk -v name="$1" '$1 == name {print $NF; exit}')
  [[ -n $found ]] || found=$(find /usr/local /opt /usr/lib -name "$1" 2>/dev/null | head -1)
  dirname "${found:-/nonexistent/x}"
}

tar -xf "$here/tree.tar.xz" -C "$work" || exit 1
tree="$work/tree"
cublas=$(folder_of libcublasLt.so.13)
driver=$(folder_of libcuda.so.1)
export LD_LIBRARY_PATH="$tree/bin:$cublas:$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export DSTRAIN_TEST_GPU=1 DSTRAIN_TEST_TREE="$tree" OMP_WAIT_POLICY=passive OMP_NUM_THREADS=4
{
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  uname -a
  ls -d /dev/nvidia*
  echo "cublasLt: $cublas; driver: $driver"
  ldd "$tree/bin/libdstrain_cuda.so" | grep -E 'not found|cublas|cuda'
} 2>&1 | tee "$logs/machine.txt"
# Where a container gives a GPU no device file of its own, one stands for it.
if ! compgen -G '/dev/nvidia[0-9]*' > /dev/null; then
  mkdir -p "$work/dev" && touch "$work/dev/nvidia0"
  export DSTRAIN_TEST_GPU_DIRECTORY="$work/dev"
fi
export DSTRAIN_GPU_DIRECTORY=${DSTRAIN_TEST_GPU_DIRECTORY:-/dev}

step ops 90 "$tree/bin/cuda_ops_test"
step events 40 "$tree/bin/cuda_events_test"
save

# Runs of small models leave the GPU idle: these go side by side.
runs() {
  step "$1" 150 "$tree/bin/cuda_run_test" "$2" &
}
runs runs_fp32 "CUDA runs: every stage follows PyTorch in fp32"
runs runs_bf16 "CUDA runs: every stage follows PyTorch in bf16"
runs runs_fp16 "CUDA runs: every stage follows PyTorch in fp16"
runs runs_stages "CUDA runs: stages*"
runs runs_resume "CUDA runs: a run*,CUDA runs: what*"
wait
save

step bench 60 "$tree/bin/cuda_ops_bench"

# GPT-2 124M on random tokens, here and in PyTorch.
python3 - "$work/tokens.bin" << 'PY'
import random, struct, sys
random.seed(1)
count = 400_000
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<256i", 20240520, 1, count, *([0] * 253)))
    file.write(struct.pack(f"<{count}H", *(random.randrange(50257) for _ in range(count))))
PY
cat > "$work/ds.json" << 'JSON'
{"train_micro_batch_size_per_gpu": 8, "bf16": {"enabled": true}, "gradient_clipping": 1.0,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
JSON
step gpt2 60 "$tree/bin/dstrain" --device cuda --num_gpus 1 train --config_name gpt2 \
  --config_overrides resid_pdrop=0,embd_pdrop=0,attn_pdrop=0 --train_file "$work/tokens.bin" \
  --block_size 1024 --max_steps 25 --deepspeed "$work/ds.json" --output_dir "$work/gpt2" \
  --logging_steps 5 --save_steps 0 --profile "$logs/gpt2_trace.json"
cp "$work/gpt2/metrics.jsonl" "$logs/gpt2_metrics.jsonl" 2> /dev/null
save
step torch 90 python3 "$here/gpu_torch.py" eager compiled
save

# Memory errors and races, where the tool can be used: the ops that have a kernel of their own.
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
step memcheck 60 "$sanitizer" --tool memcheck --error-exitcode 9 \
  "$tree/bin/cuda_ops_test" "CUDA ops: every op is close to the CPU's"
step racecheck 60 "$sanitizer" --tool racecheck --error-exitcode 9 \
  "$tree/bin/cuda_ops_test" "CUDA ops: norms*"

save
for failed in "$logs"/{ops,events,runs_*}.log; do
  grep -aqE 'All tests passed' "$failed" && continue
  echo "== $failed"
  grep -aE 'error|FAILED|:=|tensor |fatal' "$failed" | tail -25 | cut -c1-200
done
grep -ahE 'TFLOP|GB/s' "$logs/bench.log"
grep -ahE 'tokens/s' "$logs"/{gpt2,torch}.log | tail -4
echo "== $((SECONDS - begin)) s"
cat "$table"
