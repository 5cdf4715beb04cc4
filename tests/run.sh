#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests.
#
#   tests/run.sh [--preset release|dev|asan|tsan] [ctest options]
#
# for example: tests/run.sh -R zero          only tests with "zero" in their name
#              tests/run.sh --preset asan    under the address sanitizer
# The environment variable DSTRAIN_PRESET names the preset too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${DSTRAIN_PRESET:-release}
case "${1:-}" in
  -h | --help)
    sed -n '2,/^set/s/^# \{0,1\}//p' tests/run.sh
    exit 0
    ;;
  --preset)
    [ $# -ge 2 ] || { echo "tests/run.sh: --preset needs a name" >&2 && exit 2; }
    preset=$2
    shift 2
    ;;
esac

.ci/setup.sh --preset "$preset"
exec ctest --preset "$preset" "$@"
