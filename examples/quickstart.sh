#!/usr/bin/env bash
# From a bare Debian 12 or 13 to a trained language model in one command.
#
#   ./examples/quickstart.sh
#
# Installs what is missing, builds, and learns a vocabulary of word pieces from the text of a
# dictionary. Then trains a small GPT-2 on that text with two ranks, each of which holds half of the
# weights, gradients and optimizer state (ZeRO-3), and lets the model write. Everything lands in
# out/quickstart; run it again as often as you like. QUICKSTART_STEPS sets the number of training
# steps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=out/quickstart
model=$out/model
tokenizer=$out/tokenizer
vocabulary=4096
steps=${QUICKSTART_STEPS:-800}
dictionary=/usr/share/dictd/gcide.dict.dz
dstrain=build/release/bin/dstrain
export DSTRAIN_CACHE=$PWD/$out/cache  # of the text's tokens

say() { printf '\n== %s\n' "$*"; }

# The package's files, unpacked into our folder: installing it would bring a dictionary server.
find_dictionary() {
  [ ! -r "$dictionary" ] || return 0
  dictionary=$out/package$dictionary
  [ -r "$dictionary" ] || .ci/setup.sh --unpack dict-gcide "$out/package"
}

prepare_text() {
  gzip --decompress --stdout "$dictionary" |
    LC_ALL=C awk -v train="$out/train.txt" -v held_out="$out/held_out.txt" \
      -f examples/quickstart/prose.awk
}

# Nats per byte that the byte frequencies of a file alone leave: what a model without context
# could reach at best.
unigram_entropy() {
  od -An -v -tu1 -w1 "$1" | LC_ALL=C awk '
    { ++count[$1 + 0] }
    END {
      for (byte = 0; byte < 256; ++byte)
        if (count[byte]) entropy -= count[byte] / NR * log(count[byte] / NR)
      printf "%.3f\n", entropy
    }'
}

learn_vocabulary() {
  "$dstrain" tokenize --train --vocab_size "$vocabulary" \
    --output_dir "$tokenizer" --overwrite_output_dir "$out/train.txt"
}

train() {
  "$dstrain" --device cpu --num_gpus 2 train \
    --deepspeed examples/quickstart/ds_config.json \
    --config_name gpt2 \
    --config_overrides "n_layer=4,n_embd=192,n_head=3,n_positions=128,vocab_size=$vocabulary" \
    --tokenizer "$tokenizer" \
    --train_file "$out/train.txt" \
    --validation_file "$out/held_out.txt" \
    --block_size 128 \
    --per_device_train_batch_size 4 \
    --max_steps "$steps" \
    --logging_steps 50 \
    --save_steps 0 \
    --seed 1 \
    --output_dir "$model" \
    --overwrite_output_dir
}

# The last loss is a mean over tokens: as many bytes share it as a token has on average.
loss_per_byte() {
  local loss tokens
  loss=$(sed -n 's/.*"eval_loss": *\([0-9.eE+-]*\).*/\1/p' "$model/metrics.jsonl" | tail -n 1)
  tokens=$("$dstrain" tokenize --tokenizer "$tokenizer" --no_append_eod \
    --output_dir "$out/held_out_tokens" --overwrite_output_dir "$out/held_out.txt" |
    sed -n 's/.*: \([0-9]*\) tokens of .*/\1/p')
  awk -v loss="$loss" -v tokens="$tokens" -v bytes="$(wc -c < "$out/held_out.txt")" \
    'BEGIN { printf "%.3f\n", loss * tokens / bytes }'
}

write_text() {
  "$dstrain" generate --model_name_or_path "$model" --max_new_tokens 100 --stream "$@"
}

.ci/setup.sh dstrain dstraind
mkdir -p "$out"
find_dictionary
say "preparing the text"
prepare_text
# Without their sum, on which head would close the pipe.
wc -c "$out/train.txt" "$out/held_out.txt" | sed 3d
say "learning a vocabulary of $vocabulary tokens"
learn_vocabulary
say "training on two ranks, ZeRO stage 3"
train

say "the model is in $model"
ls -l "$model"
say "the model writes, the likeliest token each time"
write_text --prompt "Sailor, n. One who"
say "the model writes, sampled"
write_text --prompt "Sailor, n. One who" --do_sample --temperature 0.8 --top_k 40 --seed 1

say "the held-out text, in nats per byte"
printf '%-46s %s\n' "entropy of its byte frequencies (no context)" \
  "$(unigram_entropy "$out/held_out.txt")" "loss of the trained model" "$(loss_per_byte)"
