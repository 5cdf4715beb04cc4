#!/usr/bin/env bash
# The speed of this tree beside another commit's: six trainings and decoding, each in pairs of runs,
# one of each build, in turns.
#
#   tests/bench/compare.sh BASE [--pairs N] [--only NAME,...] [--folder FOLDER]
#
# BASE           any commit of this repository; it is built beside this tree
# --pairs N      pairs of runs per row (7)
# --only LIST    of: fp32 bf16 zero3 host disk llama decode
# --folder F     keeps the builds in F and goes on from them the next time
#
# A training's time is the median of its steps but the first two; decoding is timed as a whole, with
# the start. Prints seconds of both and their ratio, this tree's over BASE's, below 1 where this
# tree is faster: the median over the pairs, and the interval that holds it in 95 of 100 bootstrap
# samples. The runs take some minutes on two cores, the builds as long as builds take.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

base= pairs=7 only=fp32,bf16,zero3,host,disk,llama,decode folder=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' tests/bench/compare.sh && exit 0 ;;
    --pairs) pairs=${2:?--pairs needs a number} && shift 2 ;;
    --only) only=${2:?--only needs names} && shift 2 ;;
    --folder) folder=${2:?--folder needs a folder} && shift 2 ;;
    -*) echo "compare.sh: unknown option $1; see --help" >&2 && exit 2 ;;
    *) base=$1 && shift ;;
  esac
done
if ! base=$(git rev-parse --verify --quiet "${base:-none}^{commit}"); then
  echo "compare.sh: name a commit to compare with" >&2
  exit 2
fi

work=$(mktemp -d)
folder=${folder:-$work/builds}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cleanup() {
  git worktree remove --force "$work/base" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

say() { echo "compare.sh: $*" >&2; }

# build NAME SOURCE: FOLDER/NAME/bin; CMake allows one source folder for a build.
build() {
  local log=$work/build-$1.log
  say "builds $1"
  if ! { cmake -S "$2" -B "$folder/$1" --preset release -DDSTRAIN_TESTS=OFF -DDSTRAIN_CUDA=OFF &&
    cmake --build "$folder/$1"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    exit 1
  fi
}
git worktree add --quiet --detach "$work/base" "$base"
rm -f "$folder"/*/CMakeCache.txt
build base "$work/base"
build head "$PWD"

seq 1 400000 >"$work/text.txt"
disk='"device": "nvme", "nvme_path": "'$work'/disk"'
mkdir "$work/disk"
echo '{"zero_optimization": {"stage": 3}}' >"$work/zero3.json"
echo '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}' \
  >"$work/host.json"
echo '{"zero_optimization": {"stage": 3, "offload_optimizer": {'"$disk"'},
  "offload_param": {'"$disk"'}}}' >"$work/disk.json"
gpt2=(--config_name gpt2 --config_overrides n_layer=4,n_embd=384,n_head=6,vocab_size=8192)
sizes=num_hidden_layers=4,hidden_size=384,intermediate_size=1536,vocab_size=8192
heads=num_attention_heads=6,num_key_value_heads=2,head_dim=64
llama=(--config_name llama-3.2-1b --config_overrides "$sizes,$heads")

# train BUILD RANKS OPTIONS...: the seconds of a step.
train() {
  local program=$folder/$1/bin/dstrain ranks=$2
  shift 2
  rm -rf "$work/out"
  "$program" -q --device cpu --num_gpus "$ranks" train --tokenizer byte \
    --train_file "$work/text.txt" --block_size 256 --max_steps 6 --logging_steps 1 \
    --per_device_train_batch_size $((4 / ranks)) --output_dir "$work/out" "$@" \
    >"$work/log" 2>&1 || { cat "$work/log" >&2 && return 1; }
  sed -n 's/.*"step_seconds":\([0-9.e-]*\).*/\1/p' "$work/out/metrics.jsonl" | tail -n +3 |
    tests/bench/median
}

decode() {
  local start=$EPOCHREALTIME
  "$folder/$1/bin/dstrain" -q generate --model_name_or_path "$work/model" --tokenizer byte \
    --prompt "1 2 3 4" --max_new_tokens 64 >/dev/null 2>&1
  awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }'
}

# run NAME BUILD
run() {
  case $1 in
    fp32) train "$2" 1 "${gpt2[@]}" ;;
    bf16) train "$2" 1 "${gpt2[@]}" --bf16 ;;
    zero3) train "$2" 2 "${gpt2[@]}" --deepspeed "$work/zero3.json" ;;
    host) train "$2" 1 "${gpt2[@]}" --deepspeed "$work/host.json" ;;
    disk) train "$2" 1 "${gpt2[@]}" --deepspeed "$work/disk.json" ;;
    llama) train "$2" 1 "${llama[@]}" --bf16 ;;
    decode) decode "$2" ;;
    *) say "no row is called $1" && return 2 ;;
  esac
}

# Reads lines "base head"; prints the medians, the ratio's and its interval.
summary() {
  awk '
    function sort(v, n,   i, j, t) {
      for (i = 2; i <= n; i++)
        for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    }
    function median(v, n) {
      sort(v, n)
      return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
    }
    { base[NR] = $1; head[NR] = $2; ratio[NR] = $2 / $1 }
    END {
      srand(1)
      samples = 1000
      for (s = 1; s <= samples; s++) {
        for (i = 1; i <= NR; i++) drawn[i] = ratio[1 + int(rand() * NR)]
        medians[s] = median(drawn, NR)
      }
      sort(medians, samples)
      printf "%9.4f %9.4f   %.3f  (%.3f to %.3f)\n", median(base, NR), median(head, NR),
        median(ratio, NR), medians[int(samples * 0.025)], medians[int(samples * 0.975)]
    }'
}

if [[ ,$only, == *,decode,* ]]; then
  train head 1 "${gpt2[@]}" >/dev/null
  mv "$work/out" "$work/model"
fi
printf '%-8s %9s %9s   %s\n' "" "base, s" "this, s" "ratio"
for name in ${only//,/ }; do
  : >"$work/pairs"
  for ((pair = 0; pair < pairs; pair++)); do
    if ((pair % 2)); then
      head=$(run "$name" head) && before=$(run "$name" base)
    else
      before=$(run "$name" base) && head=$(run "$name" head)
    fi
    echo "$before $head" >>"$work/pairs"
  done
  printf '%-8s %s\n' "$name" "$(summary <"$work/pairs")"
done
