#!/usr/bin/env bash
# Runs on a machine with a GPU what tests/make_bundle.sh has packed, beside which it lies: small
# runs from simple to rich, so that the first that fails is known, then tests, figures, and losses
# beside PyTorch's where that is installed, most important first.
#
#   [OUT=FOLDER] [GPU_SECONDS=540] ./gpu.sh
#
# Goes on past failures, and ends what hangs. Prints a table last. In $OUT (./gpu_results) come
# results.json, with all steps and figures, and logs.tar.gz, where hang.log says where each thread
# was of the first step that had to be ended. Exit status: 0: all passed but what cannot run there;
# 1: something failed, was ended or had no time left; 2: there is no GPU to use.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$PWD/gpu_results}
budget=${GPU_SECONDS:-540}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
logs=$work/logs steps=$work/logs/steps.tsv figures=$work/logs/figures.tsv
tree=$work/dstrain
mkdir -p "$out" "$logs"
: > "$steps"
: > "$figures"
begin=$SECONDS

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

# end MARK PID: kills what is left of a step; one that the kernel does not let go is left alone.
end() {
  local process
  if [[ ! -e $logs/hang.log ]]; then
    for process in $(marked "$1"); do describe "$process"; done > "$logs/hang.log" 2>&1
  fi
  for process in $(marked "$1"); do kill -KILL "$process" 2> /dev/null; done
  for _ in {1..25}; do
    kill -0 "$2" 2> /dev/null || break
    sleep 0.2
  done
}

# note NAME RESULT SECONDS SUMMARY: a row of the table.
note() {
  printf '%s\t%s\t%d\t%s\n' "$1" "$2" "$3" "${4//[\\\"]/}" >> "$steps"
  printf '%-18s %-10s %4d s  %s\n' "$1" "$2" "$3" "$4"
}

# step NAME SECONDS COMMAND...: the command's output goes to a log; its end to the table. What takes
# longer is described and ended. Fails as the command does; its status 77 says that it cannot run.
step() {
  local name=$1 limit=$2 status=0 started=$SECONDS left=$((budget - (SECONDS - begin)))
  local pid word mark="DSTRAIN_GPU_STEP=$1.$$"
  shift 2
  if ((left < 5)); then
    note "$name" "no time" 0 ""
    return 1
  fi
  ((limit < left)) || limit=$left
  env "$mark" "$@" > "$logs/$name.log" 2>&1 < /dev/null &
  pid=$!
  while kill -0 $pid 2> /dev/null && ((SECONDS - started < limit)); do sleep 0.2; done
  if kill -0 $pid 2> /dev/null; then
    end "$mark" $pid
    status=124
  else
    wait $pid
    status=$?
  fi
  case $status in
    0) word=passed ;; 77) word=skipped ;; 124) word="timed out" ;; *) word="failed $status" ;;
  esac
  note "$name" "$word" $((SECONDS - started)) \
    "$(grep -aE '^cases:|tokens/s|^losses' "$logs/$name.log" | tail -1 | cut -c1-90)"
  save
  return $status
}

# cases TEST [NAME...]: each of its cases in a process of its own, as ctest has them: one that
# cannot run on a GPU ends it.
cases() {
  local test=$1 name status passed=0 skipped=0 failed=0
  shift
  while IFS= read -r name; do
    "$test" "$name"
    status=$?
    case $status in
      0) passed=$((passed + 1)) ;; 77) skipped=$((skipped + 1)) ;;
      *) failed=$((failed + 1)) && echo "FAILED $status: $name" ;;
    esac
  done < <("$test" --list-test-names-only "$@")
  echo "cases: $passed passed, $failed failed, $skipped only where there is no GPU"
  ((failed == 0 && passed > 0))
}
# figure NAME NUMBER
figure() {
  [[ -z $2 ]] || printf '%s\t%s\n' "$1" "$2" >> "$figures"
}

# What there is by now comes back even if this is ended.
save() {
  local own=$BASHPID
  awk -F '\t' -v machine="$(head -1 "$logs/machine.txt" | tr -d '\\"')" '
    BEGIN { printf "{\"machine\": \"%s\",\n \"steps\": [", machine }
    FILENAME ~ /steps/ {
      printf "%s\n  {\"name\": \"%s\", \"result\": \"%s\", ", (n++ ? "," : ""), $1, $2
      printf "\"seconds\": %d, \"summary\": \"%s\"}", $3, $4
    }
    FILENAME ~ /figures/ {
      if (!m++) printf "],\n \"figures\": {"
      printf "%s\n  \"%s\": %s", (m > 1 ? "," : ""), $1, $2
    }
    END { print (m ? "}" : "],\n \"figures\": {}") "}" }' "$steps" "$figures" > "$work/results.$own"
  mv "$work/results.$own" "$out/results.json"
  tar -czf "$work/logs.$own" -C "$work" logs 2> /dev/null
  mv "$work/logs.$own" "$out/logs.tar.gz"
}

# folder_of LIBRARY: where it is on this machine.
folder_of() {
  local found
  found=$(ldconfig -p | awk -v name="$1" '$1 == name {print $NF; exit}')
  [[ -n $found ]] || found=$(find /usr/local /opt /usr/lib -name "$1" 2> /dev/null | head -1)
  dirname "${found:-/nonexistent/x}"
}

# set_up: unpacks the bundle, and fails where nothing can run.
set_up() {
  tar -xzf "$here/dstrain.tar.gz" -C "$work" || return 1
  local cublas driver reason
  cublas=$(folder_of libcublasLt.so.13)
  driver=$(folder_of libcuda.so.1)
  export LD_LIBRARY_PATH="$tree/bin:$cublas:$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export DSTRAIN_TEST_GPU=1 DSTRAIN_TEST_TREE="$tree" OMP_WAIT_POLICY=passive OMP_NUM_THREADS=4
  # An older glibc than the bundle's libstdc++ asks for: then the machine's own has to do.
  "$tree/bin/dstraind" --version > /dev/null 2>&1 || rm "$tree"/bin/lib{stdc++,gcc_s}.so*
  {
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    uname -a
    getconf GNU_LIBC_VERSION
    ls -d /dev/nvidia*
    echo "cublasLt: $cublas; driver: $driver"
    ldd "$tree/bin/libdstrain_cuda.so" | grep -E 'not found|cublas|cuda'
  } > "$logs/machine.txt" 2>&1
  cat "$logs/machine.txt"
  if ! reason=$("$tree/bin/dstraind" --version 2>&1); then
    echo "gpu.sh: the programs do not start here: $reason" >&2
    return 1
  fi
  # Where a container gives a GPU no device file of its own, one stands for it.
  if ! compgen -G '/dev/nvidia[0-9]*' > /dev/null; then
    mkdir -p "$work/dev" && touch "$work/dev/nvidia0"
    export DSTRAIN_TEST_GPU_DIRECTORY="$work/dev"
  fi
  export DSTRAIN_GPU_DIRECTORY=${DSTRAIN_TEST_GPU_DIRECTORY:-/dev}
  if ! step device 60 "$tree/bin/cuda_events_test" "CUDA memory: what does not fit says so"; then
    echo "gpu.sh: there is no GPU that can be used here:" >&2
    grep -aE 'GPU|CUDA|cuda|driver|libcu' "$logs/device.log" | head -5 >&2
    return 1
  fi
}

# toy NAME RANKS ZERO [VARIABLE=VALUE]: four steps of a golden model, with this zero_optimization.
# Ranks beyond the first share the GPU.
toy() {
  local name=$1 ranks=$2 golden=$tree/tests/golden more=()
  cat > "$work/$name.json" << JSON
{"train_batch_size": 12, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0.5,
 "optimizer": {"type": "AdamW", "params": {"lr": 2e-3}}, "zero_optimization": $3}
JSON
  ((ranks == 1)) || more=(--oversubscribe)
  step "$name" 25 env -C "$golden" "${@:4}" "$tree/bin/dstrain" --device cuda --num_gpus "$ranks" \
    "${more[@]}" train --model_name_or_path model --train_file tokens.bin --block_size 32 \
    --no_shuffle --max_steps 4 --deepspeed "$work/$name.json" --output_dir "$work/$name" \
    --logging_steps 1 --save_steps 0
}

# median: of the numbers of its input, a line each, without those of the first five steps.
median() {
  tail -n +6 | sort -g | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]}'
}

# train NAME SECONDS BATCH STEPS OPTION...: on bytes, 1024 a sequence, as decoder_torch.py has it.
train() {
  local name=$1 status number
  step "$name" "$2" "$tree/bin/dstrain" --device cuda --num_gpus 1 train \
    --train_file "$work/bytes.txt" --tokenizer byte --no_shuffle --block_size 1024 \
    --lr_scheduler_type constant --per_device_train_batch_size "$3" --max_steps "$4" \
    --logging_steps 1 --save_steps 0 \
    --output_dir "$work/$name" "${@:5}"
  status=$?
  if [[ -s $work/$name/metrics.jsonl ]]; then
    cp "$work/$name/metrics.jsonl" "$logs/$name.metrics.jsonl"
    for number in tokens_per_second model_tflops; do
      figure "${name}_$number" "$(grep -o "\"$number\":[0-9.e+]*" "$logs/$name.metrics.jsonl" |
        cut -d: -f2 | median)"
    done
  fi
  return $status
}

# peer JSON BATCH OPTION...: the same in PyTorch.
peer() {
  python3 -c 'import torch, transformers' || return 77
  python3 "$here/decoder_torch.py" --device cuda --tokens "$work/bytes.txt" --block_size 1024 \
    --batch "${@:2}" > "$1" || return 1
  sed 's/.*"step_seconds": \[\([^]]*\)\].*/\1/' "$1" | tr ',' '\n' | median |
    awk -v tokens=$(($2 * 1024)) '{printf "%.0f tokens/s\n", tokens / $1}'
}

# torch NAME SECONDS BATCH OPTION...
torch() {
  local name=$1
  step "$name" "$2" bash -c 'peer "$@"' peer "$logs/$name.json" "${@:3}" || return
  figure "${name}_tokens_per_second" "$(awk '/tokens\/s/ {print $1}' "$logs/$name.log")"
}

# differences JSON METRICS LIMIT: by how much the losses differ at most; fails beyond the limit.
differences() {
  paste <(sed 's/.*"losses": \[\([^]]*\)\].*/\1/' "$1" | tr ',' '\n') \
    <(grep -o '"loss":[0-9.e+-]*' "$2" | cut -d: -f2) |
    awk -v limit="$3" '
      { by = $1 - $2; if (by < 0) by = -by; if (by > most) most = by; last = $1 " and " $2 }
      END {
        printf "losses of %d steps differ by at most %.2g; the last are %s\n", NR, most, last
        exit NR == 0 || most > limit
      }'
}

# beside NAME LIMIT TORCH_PRECISION OPTION... [-- OPTION...]: 200 steps of a model in PyTorch, with
# the last options, and here, with the first, from the same weights on the same tokens.
beside() {
  local name=$1 limit=$2 precision=$3 own=()
  shift 3
  while (($#)) && [[ $1 != -- ]]; do own+=("$1") && shift; done
  torch "torch_$name" 90 2 --steps 200 --precision "$precision" --save "$work/weights_$name" \
    "${@:2}" || return
  train "$name" 60 2 200 --model_name_or_path "$work/weights_$name" "${own[@]}" || return
  step "losses_$name" 20 bash -c 'differences "$@"' differences "$logs/torch_$name.json" \
    "$logs/$name.metrics.jsonl" "$limit"
  local status=$?
  figure "losses_${name}_differ" "$(sed -n 's/^losses.* at most \([^;]*\);.*/\1/p' \
    "$logs/losses_$name.log")"
  return $status
}

# runs NAME CASES: in a process for each; small models leave the GPU idle, so that these go side by
# side.
runs() {
  step "$1" "$runs_limit" bash -c 'cases "$@"' cases "$tree/bin/cuda_run_test" "$2" &
}

# report: what failed and why, figures, and the table.
report() {
  local name result log
  while IFS=$'\t' read -r name result _; do
    [[ $result == failed* || $result == "timed out" ]] || continue
    log=$logs/$name.log
    echo "== $name"
    grep -aE 'error|FAILED|:=|tensor |fatal|^step' "$log" | tail -25 | cut -c1-200
  done < "$steps"
  if [[ -e $logs/hang.log ]]; then
    grep -aE '^==|^[0-9]+ |^Thread|^#' "$logs/hang.log" | cut -c1-150 | head -60
  fi
  grep -ahE ' us' "$logs/bench.log"
  echo "== $((SECONDS - begin)) s"
  column -t -s $'\t' "$steps" 2> /dev/null || cat "$steps"
  cat "$figures"
}

export here work logs tree
export -f cases median peer differences

set_up || exit 2

# sanitize TOOL: memory errors, or races, of the ops, which have kernels of their own.
sanitize() {
  step "$1" 60 bash -c '[[ -x $0 ]] || exit 77; exec "$0" "$@"' "$sanitizer" --tool "$1" \
    --error-exitcode 9 "$tree/bin/cuda_ops_test" "CUDA ops: every op is close to the CPU's"
}
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

# all TEST: all of its cases.
all() {
  step "$1" "$2" bash -c 'cases "$@"' cases "$tree/bin/$1"
}
all cuda_events_test 40
all cuda_products_test 40
runs_limit=60
on_host='"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}'
toy toy_stage0 1 '{"stage": 0}' || runs_limit=25
toy toy_overlap 1 '{"stage": 0, "overlap_comm": true}' || runs_limit=25
toy toy_stage3 1 '{"stage": 3}' || runs_limit=25
toy toy_ranks2 2 '{"stage": 2, "overlap_comm": true}' || runs_limit=25
toy toy_offload 2 "{\"stage\": 3, \"overlap_comm\": true, $on_host}" || runs_limit=25
# Whether it is the loading of kernels.
((runs_limit == 60)) || toy toy_eager 1 '{"stage": 0}' CUDA_MODULE_LOADING=EAGER

seq 1 500000 > "$work/bytes.txt"
gpt2=(--config_name gpt2 --config_overrides "resid_pdrop=0,embd_pdrop=0,attn_pdrop=0" --bf16)
train gpt2 40 8 25 "${gpt2[@]}"
train gpt2_profile 40 8 8 "${gpt2[@]}" --profile "$logs/gpt2_trace.json"
all cuda_ops_test 80
step bench 40 "$tree/bin/cuda_ops_bench"
runs runs_fp32 "CUDA runs: every stage follows PyTorch in fp32"
runs runs_bf16 "CUDA runs: every stage follows PyTorch in bf16"
runs runs_fp16 "CUDA runs: every stage follows PyTorch in fp16"
runs runs_stages "CUDA runs: stages*"
runs runs_resume "CUDA runs: a run*,CUDA runs: what*,CUDA runs: a plan*"
runs runs_other "CUDA runs: TF32*,CUDA runs: a timeline*,CUDA runs: copies*"
wait

sanitize memcheck
torch torch_eager 60 8 --steps 25 --precision autocast
torch torch_compiled 90 8 --steps 25 --precision autocast --compile
beside gpt2_fp32 0.01 fp32
mkdir "$work/llama"
cat > "$work/llama/config.json" << 'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 768,
 "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12,
 "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 2048,
 "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": true}
JSON
beside llama_fp32 0.01 fp32 -- --config "$work/llama"
beside llama_bf16 0.05 autocast --bf16 -- --config "$work/llama"
all cuda_tuning_test 40
sanitize racecheck
report
! grep -qE $'\t(failed|timed out|no time)' "$steps"
