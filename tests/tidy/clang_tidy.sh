#!/usr/bin/env bash
# Runs clang-tidy over the sources that have changed; over the whole tree the preset tidy does:
# cmake --preset tidy && cmake --build --preset tidy
#
#   tests/tidy/clang_tidy.sh [BASE]           as in changed_sources.sh
#
# Exits with 77 if there is nothing to run it on, or with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/tidy/changed_sources.sh "$@"

# The analyzer follows a third of the paths through a function that the preset tidy has it follow:
# half the time.
shallow=(-Xclang -analyzer-config -Xclang max-nodes=75000)

command -v clang-tidy >/dev/null || skip "clang-tidy is not installed (Debian: clang-tidy)"
cmake --preset tidy >/dev/null
built_sources build/tidy |
  xargs --null --no-run-if-empty --max-args=1 --max-procs=2 --verbose \
    clang-tidy -p build/tidy --quiet --warnings-as-errors='*' "${shallow[@]/#/--extra-arg=}" \
    2> >(grep --invert-match 'warnings generated' >&2)
