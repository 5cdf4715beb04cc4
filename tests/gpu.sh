#!/usr/bin/env bash
# Runs on a machine with a GPU what tests/make_bundle.sh has packed, beside which it lies: small
# runs from simple to rich, so that the first that fails is known, then tests and figures, most
# important first. Goes on past failures, prints a table last and leaves its logs in $OUT
# (./gpu_logs without one) as one file; NAME.hang.log there says where each thread of a step was
# that had to be ended. It takes some four minutes; GPU_SECONDS ends it.
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

# marked ENTRY: processes whose environment holds it; those of a step hold one of their own.
marked() {
  local environ pid
  for environ in /proc/[0-9]*/environ; do
    pid=${environ#/proc/}
    { tr '\0' '\n' < "$environ"; } 2> /dev/null | grep -qxF "$1" && echo "${pid%/environ}"
  done
}

# describe PID: where its threads are, by what the machine has.
describe() {
  local task
  echo "== $1: $(tr '\0' ' ' < "/proc/$1/cmdline" | cut -c1-200)"
  for task in /proc/"$1"/task/*; do
    echo "${task##*/} $(cat "$task/comm") wchan $(cat "$task/wchan") syscall $(cat "$task/syscall")"
    cat "$task/stack"
  done
  if command -v gdb; then
    timeout 10 gdb -p "$1" -batch -ex 'thread apply all bt 25'
  elif command -v eu-stack; then
    timeout 10 eu-stack -p "$1"
  else
    grep -E 'r-xp.*(libcuda|libc\.|libdstrain|cublas)' "/proc/$1/maps"
  fi
}

# step NAME SECONDS COMMAND...: the command's output goes to a log; its end to the table. What takes
# longer is described and ended. Fails as the command does.
step() {
  local name=$1 limit=$2 status=0 started=$SECONDS left=$((budget - (SECONDS - begin)))
  local pid process word mark="DSTRAIN_GPU_STEP=$1.$$"
  shift 2
  if ((left < 5)); then
    printf '%-18s %-9s\n' "$name" "no time" | tee -a "$table"
    return 1
  fi
  ((limit < left)) || limit=$left
  env "$mark" "$@" > "$logs/$name.log" 2>&1 < /dev/null &
  pid=$!
  while kill -0 $pid 2> /dev/null && ((SECONDS - started < limit)); do sleep 0.2; done
  if kill -0 $pid 2> /dev/null; then
    for process in $(marked "$mark"); do describe "$process"; done > "$logs/$name.hang.log" 2>&1
    for process in $(marked "$mark"); do kill -KILL "$process" 2> /dev/null; done
    wait $pid 2> /dev/null
    status=124
  else
    wait $pid
    status=$?
  fi
  case $status in
    0) word=passed ;; 77) word=skipped ;; 124) word="timed out" ;; *) word="failed $status" ;;
  esac
  printf '%-18s %-10s %4d s  %s\n' "$name" "$word" $((SECONDS - started)) \
    "$(grep -aE 'assertions:|All tests passed|tokens/s' "$logs/$name.log" | tail -1 | cut -c1-90)" |
    tee -a "$table"
  return $status
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

# rung NAME RANKS ZERO [VARIABLE=VALUE]: the golden toy, with this part of its
# configuration. Ranks beyond the first share the GPU.
rung() {
  local name=$1 ranks=$2 golden="$tree/tests/golden" words more=()
  python3 - "$golden/everything.json" "$work/$name.json" "$3" > "$work/$name.args" << 'PY'
import json, sys
golden = json.load(open(sys.argv[1]))
config = golden["ds_config"]
config["zero_optimization"] = json.loads(sys.argv[3])
json.dump(config, open(sys.argv[2], "w"))
print("\n".join(golden["arguments"]))
PY
  mapfile -t words < "$work/$name.args"
  ((ranks == 1)) || more=(--oversubscribe)
  step "$name" 25 env -C "$golden" "${@:4}" "$tree/bin/dstrain" --device cuda \
    --num_gpus "$ranks" "${more[@]}" train "${words[@]}" --deepspeed "$work/$name.json" \
    --output_dir "$work/$name" --logging_steps 1 --save_steps 0
}

# From simple to rich.
step events 25 "$tree/bin/cuda_events_test"
step products 25 "$tree/bin/cuda_products_test"
runs_limit=60
on_host='"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}'
rung rung_stage0 1 '{"stage": 0}' || runs_limit=25
rung rung_overlap 1 '{"stage": 0, "overlap_comm": true}' || runs_limit=25
rung rung_stage3 1 '{"stage": 3}' || runs_limit=25
rung rung_ranks2 2 '{"stage": 2, "overlap_comm": true}' || runs_limit=25
rung rung_offload 2 "{\"stage\": 3, \"overlap_comm\": true, $on_host}" || runs_limit=25
# Whether it is the loading of kernels.
((runs_limit == 60)) || rung rung_eager 1 '{"stage": 0}' CUDA_MODULE_LOADING=EAGER
save

# GPT-2 124M on random tokens, here and, later, in PyTorch.
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
step gpt2 40 "$tree/bin/dstrain" --device cuda --num_gpus 1 train --config_name gpt2 \
  --config_overrides resid_pdrop=0,embd_pdrop=0,attn_pdrop=0 --train_file "$work/tokens.bin" \
  --block_size 1024 --max_steps 25 --deepspeed "$work/ds.json" --output_dir "$work/gpt2" \
  --logging_steps 5 --save_steps 0 --profile "$logs/gpt2_trace.json"
cp "$work/gpt2/metrics.jsonl" "$logs/gpt2_metrics.jsonl" 2> /dev/null
save

step ops 60 "$tree/bin/cuda_ops_test"
step bench 40 "$tree/bin/cuda_ops_bench"
save

# Runs of small models leave the GPU idle: these go side by side.
runs() {
  step "$1" "$runs_limit" "$tree/bin/cuda_run_test" "$2" &
}
runs runs_fp32 "CUDA runs: every stage follows PyTorch in fp32"
runs runs_bf16 "CUDA runs: every stage follows PyTorch in bf16"
runs runs_fp16 "CUDA runs: every stage follows PyTorch in fp16"
runs runs_stages "CUDA runs: stages*"
runs runs_resume "CUDA runs: a run*,CUDA runs: what*"
wait
save

# Memory errors and races, where the tool can be used: of the ops, which have kernels of their own.
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
step memcheck 30 "$sanitizer" --tool memcheck --error-exitcode 9 \
  "$tree/bin/cuda_ops_test" "CUDA ops: every op is close to the CPU's"
step torch 80 python3 "$here/gpu_torch.py" eager compiled
step racecheck 60 "$sanitizer" --tool racecheck --error-exitcode 9 \
  "$tree/bin/cuda_ops_test" "CUDA ops: every op is close to the CPU's"
save

for log in "$logs"/{rung_*,gpt2,ops,events,runs_*}.log; do
  name=$(basename "$log" .log)
  [[ -e $log && $name != *.hang ]] && ! grep -qE "^$name +passed" "$table" || continue
  echo "== $log"
  grep -aE 'error|FAILED|:=|tensor |fatal|^step' "$log" | tail -25 | cut -c1-200
done
# The first says most; all come back.
for hang in "$logs"/{rung_*,gpt2,runs_*}.hang.log; do
  [[ -e $hang ]] || continue
  echo "== $hang"
  grep -aE '^==|^[0-9]+ |^Thread|^#' "$hang" | cut -c1-150 | head -60
  break
done
grep -ahE ' us' "$logs/bench.log"
grep -ahE 'tokens/s' "$logs"/{gpt2,torch}.log | tail -4
echo "== $((SECONDS - begin)) s"
cat "$table"
