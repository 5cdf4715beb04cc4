#!/usr/bin/env bash
# Compares tokens with those of the real tokenizers and sentencepiece, and the speed.
#
#   tests/interop/tokenizers.sh [--texts COUNT] [VENV [DIRECTORY...]]
#
# VENV: a Python environment with tokenizers and sentencepiece. Without one it is made under build/,
# from PyPI. DIRECTORY: of a tokenizer; those of tests/golden/tokenizers are the default. COUNT
# random texts (default 100000) must have the same tokens and decode to the same texts with each. Of
# all characters of Unicode those are listed that are not the same to both, for their tables are of
# different versions. Of sentencepiece it takes the version next to Debian's: 0.2.3 cuts some texts
# otherwise of which two cuts have the same score. Needs a release build; DSTRAIN_BUILD names
# another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${DSTRAIN_BUILD:-build/release} count=100000
if [ "${1:-}" = --texts ]; then
  count=$2
  shift 2
fi
venv=${1:-build/interop-venv}
[ $# -eq 0 ] || shift
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet tokenizers==0.23.3 sentencepiece==0.1.98
fi
[ $# -gt 0 ] || set -- tests/golden/tokenizers/*/
cmake --build "$build" --target tokenizer_lines tokenizer_bench >/dev/null
check() {
  "$venv/bin/python" tests/interop/check_tokenizers.py "$@"
}
check texts "$build/tests/interop/tokenizer_lines" "$count" "$@"
check characters "$build/tests/interop/tokenizer_lines"
check speed "$build/tests/tokenizer/tokenizer_bench" "$@"
