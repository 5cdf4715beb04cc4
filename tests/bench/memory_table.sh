#!/usr/bin/env bash
# Peak tracked memory beside the memory plan and the paper's formula, for GPT-2 over stages, ranks,
# precisions, offload, checkpointing and micro batches. Categories are those of the device; the host
# has what is offloaded and what a save takes.
#
#   tests/bench/memory_table.sh [OVERRIDES]      default: the gpt2 preset, 124M parameters
#
# Two steps of sequences of 64 tokens, a save after each; default persistence threshold. Needs the
# release build, 18 bytes per parameter and rank of memory, 40 per parameter of disk. Fails when the
# plan of a tier is off by more than 5 %, or a category by more than 5 % and 1 MiB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

overrides=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq 1 40000 >"$work/text.txt"

categories="parameters gradients optimizer activations buffers"

# row STAGE RANKS PRECISION MICRO_BATCH OFFLOAD FLAGS...
# OFFLOAD: "", optimizer, param or "optimizer param".
row() {
  local stage=$1 ranks=$2 precision=$3 micro=$4 offload=$5
  shift 5
  local flags=("$@") sections="" part psi
  if [ "$precision" = bf16 ]; then flags+=(--bf16); fi
  for part in $offload; do sections+=", \"offload_$part\": {\"device\": \"cpu\"}"; done
  printf '{"zero_optimization": {"stage": %d%s}}' "$stage" "$sections" >"$work/ds_config.json"
  rm -rf "$work/out"
  psi=$(build/release/bin/dstrain --device cpu --num_gpus "$ranks" train \
    --deepspeed "$work/ds_config.json" --config_name gpt2 \
    ${overrides:+--config_overrides "$overrides"} --block_size 64 \
    --per_device_train_batch_size "$micro" --train_file "$work/text.txt" --max_steps 2 \
    --logging_steps 1 --save_steps 1 --save_total_limit 1 --output_dir "$work/out" "${flags[@]}" \
    2>&1 >/dev/null | sed -n 's/.*gpt2: \([0-9]*\) parameters.*/\1/p')
  # The objects as "name:bytes" lists: tiers and the device's categories, tracked, then planned.
  tail -n 1 "$work/out/metrics.jsonl" |
    sed 's/.*"memory":{\(.*\)}}.*/\1/; s/},"[a-z_]*":{/ /g; s/"//g' |
    awk -v stage="$stage" -v n="$ranks" -v precision="$precision" -v micro="$micro" \
      -v checkpointing="${1:+yes}" -v psi="$psi" -v names="$categories" \
      -v offload="$offload" '
      function off(a, b) { return a > b ? a - b : b - a }
      {
        m = 1048576
        for (field = 1; field <= 4; ++field) {
          side = field <= 2 ? 1 : 2
          count = split($field, pairs, ",")
          for (i = 1; i <= count; ++i) {
            split(pairs[i], pair, ":")
            bytes[side, pair[1]] = pair[2]
          }
          host[side] = bytes[side, "host"] + bytes[side, "pinned"]
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
        if (off(tracked, planned) > 0.05 * tracked) bad = "device"
        if (off(host[1], host[2]) > 0.05 * host[1]) bad = "host"
        printf "| %d | %d | %s | %d | %s ", stage, n, precision, micro, offload
        printf "| %s %s", checkpointing, cells
        printf "| %.0f | %.0f | %.4f ", tracked / m, planned / m, planned / tracked
        printf "| %.0f | %.0f | %.4f ", host[1] / m, host[2] / m, host[2] / host[1]
        printf "| %s |\n", offload ? "" : sprintf("%.3f", states / formula / psi)
        if (bad) { print "memory_table: the plan is off: " bad > "/dev/stderr"; exit 1 }
      }'
}

echo -n "| stage | ranks | precision | micro batch | offload | checkpointing "
for name in $categories; do echo -n "| $name "; done
echo -n "| device: tracked peak | planned | planned / tracked "
echo "| host: tracked peak | planned | planned / tracked | model states / formula |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
for stage in 0 1 2 3; do
  for ranks in 1 2 4; do row $stage $ranks fp32 1 ""; done
  for ranks in 1 2; do row $stage $ranks bf16 1 ""; done
done
row 0 1 fp32 8 ""
row 0 1 bf16 8 ""
row 0 1 fp32 8 "" --gradient_checkpointing
row 3 2 bf16 8 ""
row 3 2 fp32 8 "" --gradient_checkpointing
row 3 2 bf16 8 "" --gradient_checkpointing
for precision in fp32 bf16; do
  for stage in 1 2 3; do row $stage 2 $precision 1 optimizer; done
  row 3 2 $precision 1 param
  for ranks in 1 2 4; do row 3 $ranks $precision 1 "optimizer param"; done
done
row 3 2 bf16 8 "optimizer param" --gradient_checkpointing
