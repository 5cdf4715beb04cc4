#!/usr/bin/env bash
# examples/systemd: systemd accepts the unit, and its command trains, saves at SIGTERM and resumes.
#
#   tests/release/systemd_unit_test.sh DSTRAIN      DSTRAIN: the program
#
# Exits with 77 without systemd-analyze.
set -euo pipefail
program=$(realpath "${1:?give the program}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
unit=examples/systemd/dstrain-train@.service
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf 'systemd_unit_test: %s\n' "$@" >&2
  exit 1
}

# The command, as systemd splits it into words.
command=$(sed -n '/^ExecStart=/,/[^\\]$/p' $unit | sed -e 's/^ExecStart=//' -e 's/\\$//')
[ -n "$command" ] || fail "$unit has no ExecStart"
mkdir "$work/training"
cat >"$work/training/run.yaml" <<END
config_name: gpt2
config_overrides: n_layer=1,n_embd=16,n_head=2,vocab_size=256,n_positions=32
tokenizer: byte
train_file: $PWD/README.md
block_size: 16
per_device_train_batch_size: 2
save_steps: 5
logging_steps: 1
max_steps: 1000000
END

# start: runs it in the background, as `main`, with what it prints in descriptor 3.
start() {
  exec 3< <(
    cd "$work/training"
    export PATH=${program%/*}:$PATH DSTRAIN_LAUNCH="--device cpu --num_gpus 2"
    export XDG_RUNTIME_DIR=$work OMP_NUM_THREADS=1
    # shellcheck disable=SC2086  # words, of the variable too
    set -- ${command//\$DSTRAIN_LAUNCH/$DSTRAIN_LAUNCH}
    exec "$@" 2>&1
  )
  main=$!
}

# ends STATUS: it prints no more, and ends with this status.
ends() {
  local status=0 said
  said=$(cat <&3) || true
  wait "$main" || status=$?
  [ $status -eq "$1" ] || fail "status $status instead of $1:" "$said"
}

start
while IFS= read -r line <&3; do
  [[ $line != *"saved out/checkpoint-"* ]] || break
done
kill -TERM "$main"
ends "$(sed -n 's/^SuccessExitStatus=//p' $unit)"
newest=$(find "$work/training/out" -maxdepth 1 -name 'checkpoint-*' | sed 's/.*-//' | sort -n |
  tail -n 1)
[ "$newest" -gt 0 ] || fail "no checkpoint is left"

# Three more steps from there write the model.
sed -i "s/^max_steps: .*/max_steps: $((newest + 3))/" "$work/training/run.yaml"
start
ends 0
[ -s "$work/training/out/model.safetensors" ] || fail "the second start does not write the model"
steps=$(sed -nE 's/.*"step": ?([0-9]+).*/\1/p' "$work/training/out/metrics.jsonl")
[ "$(echo "$steps" | sort -n | uniq -d)" = "" ] || fail "steps were done twice:" "$steps"
[ -e "$work/training/out/checkpoint-$((newest + 3))" ] ||
  fail "it does not end with step $((newest + 3))"

command -v systemd-analyze >/dev/null ||
  { echo "skipped in part: systemd-analyze is not installed" && exit 77; }
said=$(XDG_RUNTIME_DIR=$work systemd-analyze --user verify ./$unit 2>&1) || fail "$said"
[ -z "$said" ] || fail "systemd-analyze verify says:" "$said"
echo "systemd_unit_test: all checks passed"
