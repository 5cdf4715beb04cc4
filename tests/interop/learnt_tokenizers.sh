#!/usr/bin/env bash
# Compares vocabularies that are learnt with those of the real tokenizers, and the speed.
#
#   tests/interop/learnt_tokenizers.sh [--vocab_size N] [VENV [FILE...]]
#
# VENV: a Python environment with tokenizers, sentencepiece and transformers. Without one it is made
# under build/, from PyPI. FILE: texts; without any, 100 MB of what lies under /usr and VENV and
# looks like text. One vocabulary of N tokens (default 32000) is learnt from all of them, on one and
# on two threads, here and by the library: the files must be the same byte for byte, and load in
# transformers. Then come 300 small texts in which many pairs are equally frequent. Needs a release
# build; DSTRAIN_BUILD names another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${DSTRAIN_BUILD:-build/release} size=32000
if [ "${1:-}" = --vocab_size ]; then
  size=$2
  shift 2
fi
venv=${1:-build/interop-venv}
[ $# -eq 0 ] || shift
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet tokenizers==0.23.3 sentencepiece==0.2.3 transformers==5.23.0
fi
cmake --build "$build" --target learn_tokenizer >/dev/null
"$venv/bin/python" tests/interop/check_learnt_tokenizers.py \
  "$build/tests/interop/learn_tokenizer" "$size" "$@"
