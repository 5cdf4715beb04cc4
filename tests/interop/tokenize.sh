#!/usr/bin/env bash
# Compares what `dstrain tokenize` writes with tokens of the real tokenizers library, and its
# reading of CSV, gzip and zstd with Python's.
#
#   tests/interop/tokenize.sh [VENV [DIRECTORY...]]
#
# VENV: a Python environment with tokenizers, numpy and zstandard. Without one it is made under
# build/, from PyPI. DIRECTORY: of a tokenizer with tokenizer.json and tokenizer_config.json; some
# of tests/golden/tokenizers are the default. Needs a release build; DSTRAIN_BUILD names another
# build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${DSTRAIN_BUILD:-build/release}
venv=${1:-build/interop-venv}
[ $# -eq 0 ] || shift
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet tokenizers==0.23.3 sentencepiece==0.2.3
fi
"$venv/bin/python" -c 'import numpy, zstandard' 2>/dev/null ||
  "$venv/bin/pip" install --quiet numpy zstandard
[ $# -gt 0 ] || set -- tests/golden/tokenizers/{gpt2,llama2}/
"$venv/bin/python" tests/interop/check_tokenize.py "$build/bin/dstrain" "$@"
