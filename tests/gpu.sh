#!/usr/bin/env bash
# Runs on a machine with a GPU what tests/make_bundle.sh has packed, beside which it lies: small
# runs from simple to rich, so that the first that fails is known, then tests, figures, and losses
# beside PyTorch's where that is installed, most important first.
#
#   [OUT=FOLDER] [GPU_SECONDS=540] [GPU_STEPS=PATTERN] ./gpu.sh
#
# Tests run several at a time; whatever is timed has the machine to itself. Goes on past failures,
# and ends what hangs. Prints a table last. In $OUT (./gpu_results) come results.json, with all
# steps and figures, and logs.tar.gz, where hang.log says where each thread was of the first step
# that had to be ended. GPU_STEPS is a pattern of the groups to run: tests|losses|speed, which take
# about seven minutes, unless given; the others are peers (four), offload (three) and ncu. Exit
# status: 0: all passed but what cannot run there; 1: something failed, was ended or had no time
# left; 2: there is no GPU to use.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$PWD/gpu_results}
budget=${GPU_SECONDS:-540}
groups=${GPU_STEPS:-tests|losses|speed}
work=$(mktemp -d)
trap 'kill "$(cat "$work/watch" 2> /dev/null)" 2> /dev/null; rm -rf "$work"' EXIT
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
  local debugger
  if debugger=$(command -v gdb || command -v cuda-gdb || ls /usr/local/cuda/bin/cuda-gdb); then
    timeout 15 "$debugger" -p "$1" -batch -ex 'thread apply all bt 25'
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
  cublas=$(ldd "$tree/bin/libdstrain_cuda.so" | grep -o 'libcublasLt\.so\.[0-9]*' | head -1)
  cublas=$(folder_of "$cublas")  # of the CUDA that the plug-in was built with
  driver=$(folder_of libcuda.so.1)
  # PyTorch's own libraries come first for it, and NCCL may be one of them.
  export MACHINE_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
  export VIRTUAL_ENV=${VIRTUAL_ENV:-$(python3 -c 'import sys; print(sys.prefix)')}
  export LD_LIBRARY_PATH="$tree/bin:$cublas:$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export DSTRAIN_TEST_GPU=1 DSTRAIN_TEST_TREE="$tree"
  # An older glibc than the bundle's libstdc++ asks for: then the machine's own has to do.
  "$tree/bin/dstraind" --version > /dev/null 2>&1 || rm "$tree"/bin/lib{stdc++,gcc_s}.so*
  {
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    uname -a
    getconf GNU_LIBC_VERSION
    ls -d /dev/nvidia*
    lscpu | grep -E 'Model name|^CPU\(s\)|Thread|NUMA'
    free -g | head -2
    ulimit -l
    echo "cublasLt: $cublas; driver: $driver; Python: $VIRTUAL_ENV"
    ldd "$tree/bin/libdstrain_cuda.so" | grep -E 'not found|cublas|cuda'
  } > "$logs/machine.txt" 2>&1
  cat "$logs/machine.txt"
  # No job of this shell, which waits for its jobs.
  (
    nvidia-smi --query-gpu=timestamp,memory.used,utilization.gpu,power.draw,clocks.sm \
      --format=csv,noheader -lms 100 > "$logs/gpu.csv" 2>&1 &
    echo $! > "$work/watch"
  )
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
  if ! step device 60 "$tree/bin/cuda_events_test" \
    "CUDA memory: an allocation that does not fit is refused"; then
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
  step "$name" 40 env -C "$golden" "${@:4}" "$tree/bin/dstrain" --device cuda --num_gpus "$ranks" \
    "${more[@]}" train --model_name_or_path model --train_file tokens.bin --block_size 32 \
    --no_shuffle --max_steps 4 --deepspeed "$work/$name.json" --output_dir "$work/$name" \
    --logging_steps 1 --save_steps 0
}

# median: of the numbers of its input, a line each, without those of the first five steps.
median() {
  tail -n +6 | sort -g | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]}'
}

# train NAME SECONDS BATCH TOKENS STEPS OPTION...: with so many tokens a sample, as decoder_torch.py
# does. NAME_first_step_seconds is how long after the command the first step had been logged.
train() {
  local name=$1 status number
  step "$name" "$2" bash -c 'train_and_time "$@"' train_and_time "$work/out_$name" \
    --block_size "$4" --per_device_train_batch_size "$3" --max_steps "$5" \
    --output_dir "$work/out_$name" "${@:6}"
  status=$?
  if [[ -s $work/out_$name/metrics.jsonl ]]; then
    cp "$work/out_$name/metrics.jsonl" "$logs/$name.metrics.jsonl"
    for number in tokens_per_second model_tflops; do
      figure "${name}_$number" "$(grep -o "\"$number\":[0-9.e+]*" "$logs/$name.metrics.jsonl" |
        cut -d: -f2 | median)"
    done
    figure "${name}_first_step_seconds" "$(sed -n 's/^first step after \(.*\) s$/\1/p' \
      "$logs/$name.log")"
  fi
  return $status
}

# train_and_time FOLDER OPTION...: FOLDER gets metrics.jsonl.
train_and_time() {
  local begin=${EPOCHREALTIME/./} run status
  "$tree/bin/dstrain" --device cuda --num_gpus 1 $host_memory train --train_file "$words" \
    --no_shuffle --lr_scheduler_type constant --logging_steps 1 --save_steps 0 "${@:2}" &
  run=$!
  while kill -0 $run 2> /dev/null && [[ ! -s $1/metrics.jsonl ]]; do sleep 0.02; done
  awk -v us=$((${EPOCHREALTIME/./} - begin)) 'BEGIN {printf "first step after %.2f s\n", us / 1e6}'
  wait $run
  status=$?
  grep -o '"tokens_per_second":[0-9.e+]*' "$1/metrics.jsonl" | cut -d: -f2 | median |
    awk '{printf "%.0f tokens/s\n", $1}'
  return $status
}

# python ARGUMENT...: with the libraries that it has without this script.
python() {
  env LD_LIBRARY_PATH="$MACHINE_LIBRARY_PATH" python3 "$@"
}

# has_torch: without the seconds that an import takes.
has_torch() {
  python -c 'import importlib.util as u, sys
sys.exit(not all(u.find_spec(name) for name in ("torch", "transformers")))'
}

# peer JSON BATCH TOKENS OPTION...: the same in PyTorch.
peer() {
  has_torch || return 77
  python "$here/decoder_torch.py" --device cuda --tokens "$words" --batch "$2" --block_size "$3" \
    "${@:4}" > "$1" || return 1
  sed 's/.*"step_seconds": \[\([^]]*\)\].*/\1/' "$1" | tr ',' '\n' | median |
    awk -v tokens=$(($2 * $3)) '{printf "%.0f tokens/s\n", tokens / $1}'
}

# torch NAME SECONDS BATCH TOKENS OPTION...
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
  torch "torch_$name" 120 2 1024 --steps 200 --precision "$precision" \
    --save "$work/weights_$name" "${@:2}" || return
  train "$name" 90 2 1024 200 --model_name_or_path "$work/weights_$name" "${own[@]}" || return
  step "losses_$name" 20 bash -c 'differences "$@"' differences "$logs/torch_$name.json" \
    "$logs/$name.metrics.jsonl" "$limit"
  local status=$?
  figure "losses_${name}_differ" "$(sed -n 's/^losses.* at most \([^;]*\);.*/\1/p' \
    "$logs/losses_$name.log")"
  return $status
}

# together COMMAND...: beside the others that are given so, at most six at a time.
together() {
  while (($(jobs -rp | wc -l) >= 6)); do wait -n; done
  "$@" &
}

# all TEST SECONDS: all of its cases.
all() {
  step "$1" "$2" bash -c 'cases "$@"' cases "$tree/bin/$1"
}

# runs NAME CASES
runs() {
  step "$1" 150 bash -c 'cases "$@"' cases "$tree/bin/cuda_run_test" "$2"
}

# nccl MODE: a communicator of one rank.
nccl() {
  step "nccl_$1" 40 "$tree/bin/dstrain" --device cuda --num_gpus 1 "$tree/bin/comm_gpu_rank" "$1"
}

# sanitize TOOL SECONDS CASE: memory errors, or races, of the ops, which have kernels of their own.
sanitize() {
  step "$1" "$2" bash -c '[[ -x $0 ]] || exit 77; exec "$0" "$@"' "$sanitizer" --tool "$1" \
    --error-exitcode 9 "$tree/bin/cuda_ops_test" "$3"
}
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

# kernels NAME SECONDS BATCH TOKENS STEPS OPTION...: as train, with the time of every kernel. A line
# for each kernel of NAME.kernels: microseconds in all, times, blocks, threads, registers, name.
kernels() {
  [[ -e $tree/bin/libkernel_times.so ]] || return 0
  CUDA_INJECTION64_PATH=$tree/bin/libkernel_times.so KERNEL_TIMES=$work/times train "$@"
  local status=$? file
  for file in "$work"/times.*; do
    [[ -s $file ]] || continue
    cp "$file" "$logs/$1.kernel_times"
    awk -F '\t' '
      { us[$8] += ($2 - $1) / 1e3; times[$8]++; how[$8] = $4 "\t" $5 "\t" $6 }
      END { for (k in us) printf "%.0f\t%d\t%s\t%s\n", us[k], times[k], how[k], k }' "$file" |
      sort -rn > "$logs/$1.kernels"
  done
  rm -f "$work"/times.*
  return $status
}

# counters NAME KERNEL: what holds up a kernel of the benchmark, its first launches.
counters() {
  step "$1" 60 bash -c 'command -v ncu > /dev/null || exit 77; exec "$@"' ncu ncu \
    --clock-control none --cache-control none --section SpeedOfLight --section Occupancy \
    --section SchedulerStats --section WarpStateStats --section MemoryWorkloadAnalysis \
    --section InstructionStats --section SourceCounters --kernel-name "regex:$2" --launch-count 1 \
    --kill yes --log-file "$logs/$1.ncu" "$tree/bin/cuda_ops_bench"
}

# llama NAME SIZES: a config.json.
llama() {
  mkdir "$work/$1"
  cat > "$work/$1/config.json" << JSON
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rms_norm_eps": 1e-5,
 "rope_theta": 10000.0, "hidden_act": "silu", "vocab_size": 32000, $2}
JSON
}

# report: what failed and why, figures, and the table.
report() {
  local name result log
  while IFS=$'\t' read -r name result _; do
    [[ $result == failed* || $result == "timed out" ]] || continue
    log=$logs/$name.log
    echo "== $name"
    grep -aE 'rror|FAILED|:=|tensor |fatal|^step' "$log" | tail -12 | cut -c1-200
  done < "$steps"
  if [[ -e $logs/hang.log ]]; then
    grep -aE '^==|^[0-9]+ |^Thread|^#' "$logs/hang.log" | cut -c1-150 | head -40
  fi
  grep -ahsE ' us' "$logs/bench.log" "$logs/torch_attention.log"
  for log in "$logs"/*.kernels; do
    [[ -e $log ]] || continue
    echo "== ${log##*/}: us, times, blocks, threads, registers"
    head -20 "$log" | { c++filt 2> /dev/null || cat; } | cut -c1-150
  done
  echo "== $((SECONDS - begin)) s"
  column -t -s $'\t' "$steps" 2> /dev/null || cat "$steps"
  cat "$figures"
}

# group NAME: whether it is to run.
group() {
  [[ $1 =~ $groups ]]
}

export here work logs tree
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=4
export -f cases median peer differences train_and_time python has_torch

set_up || exit 2
export words=$tree/tests/words.bin host_memory=

on_host='"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}'
undropped="resid_pdrop=0,embd_pdrop=0,attn_pdrop=0"
gpt2=(--config_name gpt2 --config_overrides "$undropped" --bf16)
gpt2_xl=(--config_name gpt2-xl --config_overrides "$undropped" --bf16)
llama small_llama '"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12,
  "num_attention_heads": 12, "num_key_value_heads": 4, "max_position_embeddings": 2048,
  "tie_word_embeddings": true'
llama llama_8b_layers '"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 8,
  "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
  "tie_word_embeddings": false'

llama llama_6b '"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 29,
  "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 2048,
  "tie_word_embeddings": false'
mkdir "$work/gpt2_xl"
cat > "$work/gpt2_xl/config.json" << JSON
{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 1600, "n_layer": 48,
 "n_head": 25, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
JSON

toy toy_stage0 1 '{"stage": 0}' || toy toy_eager 1 '{"stage": 0}' CUDA_MODULE_LOADING=EAGER
if group tests; then
  toy toy_overlap 1 '{"stage": 0, "overlap_comm": true}'
  toy toy_stage3 1 '{"stage": 3}'
  toy toy_ranks2 2 '{"stage": 2, "overlap_comm": true}'
  toy toy_offload 2 "{\"stage\": 3, \"overlap_comm\": true, $on_host}"
  together all cuda_ops_test 300
  together all cuda_events_test 60
  together all cuda_products_test 60
  for mode in results bits observer once; do together nccl $mode; done
  together runs runs_fp32 "CUDA runs: every stage follows PyTorch in fp32"
  together runs runs_bf16 "CUDA runs: every stage follows PyTorch in bf16"
  together runs runs_fp16 "CUDA runs: every stage follows PyTorch in fp16"
  together runs runs_stages "CUDA runs: stages*"
  together runs runs_resume "CUDA runs: a run*,CUDA runs: a resumed*,CUDA runs: a plan*"
  together runs runs_other "CUDA runs: TF32*,CUDA runs: copies*,CUDA runs: buffers*"
  together runs runs_profile "CUDA runs: a timeline*,CUDA runs: a profiler*"
  together all cuda_tuning_test 100
  together sanitize memcheck 120 "CUDA ops: every op is close to the CPU's"
  together sanitize racecheck 120 "CUDA ops: attention of all kinds is close to the CPU's"
fi
if group losses; then
  together beside gpt2_fp32 0.01 fp32
  together beside llama_fp32 0.01 fp32 -- --config "$work/small_llama"
  together beside llama_bf16 0.05 autocast --bf16 -- --config "$work/small_llama"
fi
# What is compiled now need not be when it is timed.
export TORCHINDUCTOR_CACHE_DIR=$work/inductor
compiled=(--precision autocast --compile)
# compile NAME BATCH TOKENS OPTION...
compile() {
  step "compile_$1" 150 bash -c 'peer "$@"' peer "$logs/compile_$1.json" "${@:2:2}" --steps 6 \
    "${compiled[@]}" "${@:4}"
}
if group peers; then
  together compile gpt2 8 1024
  together compile gpt2_batch32 32 1024
  together compile gpt2_xl 8 1024 --config "$work/gpt2_xl"
  together compile llama 2 4096 --config "$work/llama_8b_layers"
fi
wait
unset OMP_WAIT_POLICY OMP_NUM_THREADS

if group speed; then
  llama_8b=(--config_name "$work/llama_8b_layers" --bf16)
  train gpt2 40 8 1024 25 "${gpt2[@]}"
  train gpt2_tuned 40 8 1024 25 "${gpt2[@]}" --tune_matmuls
  train gpt2_batch32 40 32 1024 25 "${gpt2[@]}" --tune_matmuls
  train llama_8b_layers 60 2 4096 16 "${llama_8b[@]}" --tune_matmuls
  train gpt2_xl 60 8 1024 16 "${gpt2_xl[@]}" --tune_matmuls
  step bench 60 "$tree/bin/cuda_ops_bench"
  while IFS=$'\t' read -r name number; do
    figure "$name, us" "$number"
  done < <(sed -En 's/^(.*[^ ]) +([0-9.]+) us.*/\1\t\2/p' "$logs/bench.log")
  kernels gpt2_kernels 40 8 1024 8 "${gpt2[@]}" --tune_matmuls
  kernels llama_kernels 60 2 4096 8 "${llama_8b[@]}" --tune_matmuls
  kernels gpt2_xl_kernels 60 8 1024 7 "${gpt2_xl[@]}" --tune_matmuls
  train gpt2_profile 40 8 1024 8 "${gpt2[@]}" --profile "$logs/gpt2_trace.json"
fi
if group peers; then
  torch torch_gpt2 60 8 1024 --steps 25 "${compiled[@]}"
  torch torch_gpt2_batch32 90 32 1024 --steps 25 "${compiled[@]}"
  torch torch_gpt2_xl 90 8 1024 --steps 12 "${compiled[@]}" --config "$work/gpt2_xl"
  torch torch_llama_8b_layers 90 2 4096 --steps 16 "${compiled[@]}" \
    --config "$work/llama_8b_layers"
  step torch_attention 60 bash -c 'has_torch || exit 77; python "$@"' python \
    "$here/attention_torch.py"
fi
if group offload; then
  echo "{\"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true,
    \"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true}}}" > "$work/offload.json"
  offload=(--deepspeed "$work/offload.json" --gradient_accumulation_steps 8)
  train gpt2_xl_offload 90 8 1024 8 "${gpt2_xl[@]}" "${offload[@]}" \
    --profile "$logs/gpt2_xl_offload_trace.json"
  # Its states fill the host's memory, and no save is to come.
  export host_memory="--host_memory=1TiB"
  train llama_6b_offload 160 8 1024 8 --config_name "$work/llama_6b" --bf16 "${offload[@]}" \
    --gradient_checkpointing
  host_memory=
fi
if group ncu; then
  counters ncu_attention_backward half_key_kernel
  counters ncu_attention_forward half_forward_kernel
  counters ncu_classifier cross_entropy_kernel
fi
report
! grep -qE $'\t(failed|timed out|no time)' "$steps"
