#!/usr/bin/env bash
# Peak tracked device memory of every ZeRO stage on 1, 2 and 4 ranks, beside the paper's formula.
#
#   tests/bench/memory_table.sh [fp32|bf16 [OVERRIDES]]   default: the gpt2 preset, 124M parameters
#
# One step of one sequence of 64 tokens each; default persistence threshold. Needs the release
# build, and 16 (bf16: 18) bytes per parameter and rank of memory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

precision=${1:-fp32}
overrides=${2:-}
[[ $precision == bf16 ]] && bf16=true || bf16=false
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq 1 20000 >"$work/text.txt"

field() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$work/out/metrics.jsonl" | tail -n 1; }

echo -n "| stage | ranks | parameters | gradients | optimizer | model states | formula | ratio "
echo "| buffers | activations | peak |"
echo "|---|---|---|---|---|---|---|---|---|---|---|"
for stage in 0 1 2 3; do
  for ranks in 1 2 4; do
    cat >"$work/ds_config.json" <<EOF
{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": $stage},
 "bf16": {"enabled": $bf16}}
EOF
    psi=$(build/release/bin/dstrain --num_gpus "$ranks" train --deepspeed "$work/ds_config.json" \
      --config_name gpt2 ${overrides:+--config_overrides "$overrides"} --block_size 64 \
      --train_file "$work/text.txt" --max_steps 1 --output_dir "$work/out" \
      --overwrite_output_dir 2>&1 >/dev/null | sed -n 's/.*gpt2: \([0-9]*\) parameters.*/\1/p')
    awk -v stage="$stage" -v n="$ranks" -v bf16="$bf16" -v psi="$psi" -v p="$(field parameters)" \
      -v g="$(field gradients)" -v o="$(field optimizer)" -v b="$(field buffers)" \
      -v a="$(field activations)" -v peak="$(field device)" '
      BEGIN {
        m = 1048576
        states = p + g + o
        weights = (bf16 == "true" ? 2 : 4) / (stage >= 3 ? n : 1)
        sums = 4 / (stage >= 2 ? n : 1)
        optimizer = (bf16 == "true" ? 12 : 8) / (stage >= 1 ? n : 1)
        formula = (weights + sums + optimizer) * psi
        printf "| %d | %d | %.0f | %.0f | %.0f ", stage, n, p / m, g / m, o / m
        printf "| %.0f | %.0f | %.3f ", states / m, formula / m, states / formula
        printf "| %.0f | %.0f | %.0f |\n", b / m, a / m, peak / m
      }'
  done
done
