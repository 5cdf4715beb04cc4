#!/usr/bin/env bash
# Peak tracked device memory of every ZeRO stage on 1, 2 and 4 ranks, beside the paper's formula.
#
#   tests/bench/memory_table.sh [OVERRIDES]      default: the gpt2 preset, 124M parameters
#
# One step of one sequence of 64 tokens each; fp32, default persistence threshold. Needs the release
# build, and 16 bytes per parameter and rank of memory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

overrides=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq 1 20000 >"$work/text.txt"

field() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$work/out/metrics.jsonl" | tail -n 1; }

echo -n "| stage | ranks | parameters | gradients | optimizer | model states | formula | ratio "
echo "| buffers | activations | peak |"
echo "|---|---|---|---|---|---|---|---|---|---|---|"
for stage in 0 1 2 3; do
  for ranks in 1 2 4; do
    printf '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": %d}}' "$stage" \
      >"$work/ds_config.json"
    psi=$(build/release/bin/dstrain --num_gpus "$ranks" train --deepspeed "$work/ds_config.json" \
      --config_name gpt2 ${overrides:+--config_overrides "$overrides"} --block_size 64 \
      --train_file "$work/text.txt" --max_steps 1 --output_dir "$work/out" \
      --overwrite_output_dir 2>&1 >/dev/null | sed -n 's/.*gpt2: \([0-9]*\) parameters.*/\1/p')
    awk -v stage="$stage" -v n="$ranks" -v psi="$psi" -v p="$(field parameters)" \
      -v g="$(field gradients)" -v o="$(field optimizer)" -v b="$(field buffers)" \
      -v a="$(field activations)" -v peak="$(field device)" '
      BEGIN {
        m = 1048576
        states = p + g + o
        if (stage == 0) formula = 16 * psi
        if (stage == 1) formula = 8 * psi + 8 * psi / n
        if (stage == 2) formula = 4 * psi + 12 * psi / n
        if (stage == 3) formula = 16 * psi / n
        printf "| %d | %d | %.0f | %.0f | %.0f ", stage, n, p / m, g / m, o / m
        printf "| %.0f | %.0f | %.3f ", states / m, formula / m, states / formula
        printf "| %.0f | %.0f | %.0f |\n", b / m, a / m, peak / m
      }'
  done
done
