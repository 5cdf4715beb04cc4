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
# Tests run SSH servers of their own. Installed, one would also start with the machine.
server=build/openssh-server
if [ ! -x /usr/sbin/sshd ] && [ ! -e "$server" ]; then
  .ci/setup.sh --unpack openssh-server "$server" || echo "tests over SSH will be skipped" >&2
fi
exec ctest --preset "$preset" "$@"
