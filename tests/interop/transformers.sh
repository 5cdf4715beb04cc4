#!/usr/bin/env bash
# Loads what dstrain writes in the real transformers and safetensors.
#
#   tests/interop/transformers.sh [VENV]
#
# VENV: a Python environment with torch, transformers and safetensors. Without one it is made under
# build/, from PyPI (some GB). Needs a release build; DSTRAIN_BUILD names another build folder.
#
# Exports in fp32, bf16 and fp16, in one file and in shards, must load in GPT2LMHeadModel without a
# missing or unexpected name and hold exactly what torch rounds the weights to; in fp32 the logits
# must be those of tests/golden to 1e-4 of the largest. The model that training leaves must have the
# loss that dstrain reports when it goes on from it, to 1e-5. The export of a run over text by a
# tokenizer must hold one that AutoTokenizer loads and that makes the same tokens.
#
# Of every other family the export of an untrained toy must have the logits and greedy tokens of
# tests/golden, and the model that training leaves the loss that dstrain goes on with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${DSTRAIN_BUILD:-build/release}
venv=${1:-build/interop-venv}
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet torch transformers safetensors numpy
fi
cmake --build "$build" --target dstrain dstraind write_checkpoint >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
golden=tests/golden

train() {
  "$build/bin/dstrain" -q --device cpu --num_gpus 2 train --train_file "$golden/tokens.bin" \
    --block_size 32 --no_shuffle --per_device_train_batch_size 6 --learning_rate 1e-3 \
    --logging_steps 1 "$@"
}
check() {
  HF_HUB_OFFLINE=1 "$venv/bin/python" tests/interop/check_transformers.py "$@"
}

train --model_name_or_path "$golden/model" --output_dir "$work/trained" --max_steps 3
train --model_name_or_path "$work/trained" --output_dir "$work/next" --max_steps 1
check loss "$work/trained" "$work/next"

# exports RUN MODEL: of the run's checkpoint, which holds the weights of MODEL.
exports() {
  for dtype in fp32 bf16 fp16; do
    for size in 5GB 60KB; do
      "$build/bin/dstrain" checkpoint export "$1" "$1-$dtype-$size" \
        --dtype "$dtype" --max_shard_size "$size"
    done
    check weights "$2" "$dtype" "$1-$dtype-5GB" "$1-$dtype-60KB"
  done
}
"$build/tests/interop/write_checkpoint" "$golden/model" "$work/golden" 3
exports "$work/golden" "$golden/model"
exports "$work/trained" "$work/trained"
check logits "$work/golden-fp32-60KB"

mkdir "$work/tokenizer"
cp "$golden/tokenizers/gpt2/tokenizer.json" "$work/tokenizer"
echo '{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}' \
  >"$work/tokenizer/tokenizer_config.json"
"$build/bin/dstrain" -q --device cpu --num_gpus 2 train --train_file README.md \
  --tokenizer "$work/tokenizer" --config_name gpt2 \
  --config_overrides n_layer=1,n_embd=32,n_head=2,vocab_size=1000,n_positions=64 \
  --block_size 32 --per_device_train_batch_size 2 --max_steps 2 --output_dir "$work/text"
"$build/bin/dstrain" checkpoint export "$work/text" "$work/text-export"
check tokenizer "$work/tokenizer" "$work/text-export"
# toy NAME OUT MORE...: trains a toy of tests/golden as its run.json says.
toy() {
  local out=$2
  check arguments "$golden/$1" "$work/ds_config.json" >"$work/arguments"
  mapfile -t arguments <"$work/arguments"
  (cd "$golden" && "$program" -q --device cpu --num_gpus 2 train "${arguments[@]}" \
    --deepspeed "$work/ds_config.json" --logging_steps 1 --output_dir "$out" "${@:3}")
}
program=$(realpath "$build/bin/dstrain")
for folder in "$golden"/families/*/ "$golden"/pairs/*/; do
  name=${folder#"$golden/"}
  place=$work/$(basename "$folder")
  "$build/tests/interop/write_checkpoint" "$folder" "$place" 3
  "$build/bin/dstrain" checkpoint export "$place" "$place-export" --max_shard_size 30KB
  check family "$folder" "$place-export"
  toy "$name" "$place-trained" --max_steps 3
  toy "$name" "$place-next" --max_steps 1 --model_name_or_path "$place-trained"
  check family_loss "$folder" "$place-trained" "$place-next"
done
echo "transformers: all checks passed"
