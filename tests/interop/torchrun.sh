#!/usr/bin/env bash
# Starts dstraind by the real torchrun: its ranks are one job, with the launcher's losses.
#
#   tests/interop/torchrun.sh [VENV]
#
# VENV: a Python environment with torch. Without one it is made under build/, from PyPI (some GB).
# Needs a release build; DSTRAIN_BUILD names another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=$(realpath "${DSTRAIN_BUILD:-build/release}")
venv=${1:-build/interop-venv}
if [ ! -x "$venv/bin/torchrun" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet torch numpy
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
train=(train --model_name_or_path tests/golden/model --train_file tests/golden/tokens.bin
  --block_size 32 --no_shuffle --per_device_train_batch_size 6 --learning_rate 1e-3
  --max_steps 3 --logging_steps 1)

losses() {
  sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1/metrics.jsonl"
}
"$build/bin/dstrain" -q --device cpu --num_gpus 2 "${train[@]}" --output_dir "$work/launched"
for options in --standalone "--master-port 29611"; do
  # shellcheck disable=SC2086  # two words
  OMP_NUM_THREADS=1 "$venv/bin/torchrun" $options --nproc-per-node 2 --no-python \
    "$build/bin/dstraind" "${train[@]}" --output_dir "$work/torchrun"
  diff <(losses "$work/launched") <(losses "$work/torchrun") ||
    { echo "torchrun $options: other losses than the launcher's" >&2 && exit 1; }
  rm -r "$work/torchrun"
  echo "torchrun $options: the launcher's losses"
done
