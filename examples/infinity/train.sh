#!/usr/bin/env bash
# Trains a GPT of 2.8 billion parameters in 2 GiB of device memory, its states on a disk.
#
#   examples/infinity/train.sh DIRECTORY [STEPS]     DIRECTORY: on a fast disk, with 45 GiB free
#
# Needs the release build. The model is written to out/infinity; checkpoints are not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

disk=${1:?"usage: $0 DIRECTORY [STEPS]"} steps=${2:-3}
mkdir -p out/infinity
config=out/infinity/ds_config.json
sed "s|/local_nvme|$(realpath "$disk")|" examples/infinity/ds_config.json >"$config"
seq 1 400000 >out/infinity/text.txt

build/release/bin/dstrain --device cpu --num_gpus 1 --device_memory 2GiB train \
  --deepspeed "$config" \
  --config_name gpt2 --config_overrides n_embd=2560,n_layer=34,n_head=32 \
  --gradient_checkpointing --block_size 512 \
  --train_file out/infinity/text.txt --max_steps "$steps" --save_steps 0 \
  --output_dir out/infinity/model --overwrite_output_dir
