#!/usr/bin/env bash
# Peak tracked device memory beside the memory plan and the paper's formula, for GPT-2 over stages,
# ranks, precisions, checkpointing and micro batches.
#
#   tests/bench/memory_table.sh [OVERRIDES]      default: the gpt2 preset, 124M parameters
#
# One step of sequences of 64 tokens; default persistence threshold. Needs the release build, and 18
# bytes per parameter and rank of memory. Fails when a plan is off by more than 5 % in all, or a
# category by more than 5 % and 1 MiB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

overrides=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq 1 40000 >"$work/text.txt"

categories="parameters gradients optimizer activations buffers"

# row STAGE RANKS PRECISION MICRO_BATCH FLAGS...
row() {
  local stage=$1 ranks=$2 precision=$3 micro=$4
  shift 4
  local flags=("$@")
  if [ "$precision" = bf16 ]; then flags+=(--bf16); fi
  printf '{"zero_optimization": {"stage": %d}}' "$stage" >"$work/ds_config.json"
  local psi
  psi=$(build/release/bin/dstrain --num_gpus "$ranks" train --deepspeed "$work/ds_config.json" \
    --config_name gpt2 ${overrides:+--config_overrides "$overrides"} --block_size 64 \
    --per_device_train_batch_size "$micro" --train_file "$work/text.txt" --max_steps 1 \
    --save_steps 0 --output_dir "$work/out" --overwrite_output_dir "${flags[@]}" 2>&1 >/dev/null |
    sed -n 's/.*gpt2: \([0-9]*\) parameters.*/\1/p')
  # The two objects, tracked and planned, as "name:bytes" lists.
  tail -n 1 "$work/out/metrics.jsonl" |
    sed 's/.*"device_memory":{\([^}]*\)}.*"planned_device_memory":{\([^}]*\)}.*/\1 \2/; s/"//g' |
    awk -v stage="$stage" -v n="$ranks" -v precision="$precision" -v micro="$micro" \
      -v checkpointing="${1:+yes}" -v psi="$psi" -v names="$categories" '
      function off(a, b) { return a > b ? a - b : b - a }
      {
        m = 1048576
        for (side = 1; side <= 2; ++side) {
          count = split($side, pairs, ",")
          for (i = 1; i <= count; ++i) {
            split(pairs[i], pair, ":")
            bytes[side, pair[1]] = pair[2]
          }
        }
        p = precision == "bf16" ? 2 : 4
        o = precision == "bf16" ? 12 : 8
        formula = p / (stage == 3 ? n : 1) + 4 / (stage >= 2 ? n : 1) + o / (stage >= 1 ? n : 1)
        count = split(names, name, " ")
        for (i = 1; i <= count; ++i) {
          tracked += bytes[1, name[i]]
          planned += bytes[2, name[i]]
          if (i <= 3) states += bytes[1, name[i]]
          error = off(bytes[1, name[i]], bytes[2, name[i]])
          if (error > 0.05 * bytes[1, name[i]] && error > m) bad = name[i]
          cells = cells sprintf("| %.0f ", bytes[1, name[i]] / m)
        }
        if (off(tracked, planned) > 0.05 * tracked) bad = "total"
        printf "| %d | %d | %s | %d | %s %s", stage, n, precision, micro, checkpointing, cells
        printf "| %.0f | %.0f | %.4f ", tracked / m, planned / m, planned / tracked
        printf "| %.3f |\n", states / formula / psi
        if (bad) { print "memory_table: the plan is off: " bad > "/dev/stderr"; exit 1 }
      }'
}

echo -n "| stage | ranks | precision | micro batch | checkpointing "
for name in $categories; do echo -n "| $name "; done
echo "| tracked peak | planned | planned / tracked | model states / formula |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
for stage in 0 1 2 3; do
  for ranks in 1 2 4; do row $stage $ranks fp32 1; done
  for ranks in 1 2; do row $stage $ranks bf16 1; done
done
row 0 1 fp32 8
row 0 1 bf16 8
row 0 1 fp32 8 --gradient_checkpointing
row 3 2 bf16 8
row 3 2 fp32 8 --gradient_checkpointing
row 3 2 bf16 8 --gradient_checkpointing
