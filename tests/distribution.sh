#!/usr/bin/env bash
# Runs the README's two commands as a newcomer would: in a bare Debian with nothing but git added,
# on a fresh clone of the last commit, with an empty environment. Prints what each took.
#
#   tests/distribution.sh bookworm|trixie [--base FOLDER] [--keep] [COMMAND...]
#
# --base FOLDER  keeps the bare system in FOLDER and takes it from there the next time
# --keep         leaves the used system in place and prints its path
# COMMAND        default: ./examples/quickstart.sh ./tests/run.sh
#
# Needs root and debootstrap. Uses this machine's Debian mirror and proxies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

script=tests/distribution.sh
release=
base=
keep=no
commands=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' tests/distribution.sh && exit 0 ;;
    bookworm | trixie) release=$1 && shift ;;
    --base) base=${2:?--base needs a folder} && shift 2 ;;
    --keep) keep=yes && shift ;;
    -*) echo "tests/distribution.sh: unknown option $1; see --help" >&2 && exit 2 ;;
    *) commands+=("$1") && shift ;;
  esac
done
[ ${#commands[@]} -gt 0 ] || commands=(./examples/quickstart.sh ./tests/run.sh)

. tests/bare_root.sh

report=()
timed() {
  local label=$1 start=$SECONDS status=0
  shift
  printf '\n######## %s\n' "$label"
  "$@" || status=$?
  report+=("$(printf '%5d s  status %d  %s' $((SECONDS - start)) "$status" "$label")")
  return $status
}

timed "bare Debian ($release)" make_base "${base:-$work/base}"
timed "copy of it" cp -a "${base:-$work/base}" "$root"
copy_network_settings
timed "git" install_git
timed "clone" clone
failed=0
for command in "${commands[@]}"; do
  timed "$command" inside "cd /root/dstrain && $command" || failed=1
done
printf '\n######## on %d cores\n' "$(nproc)"
printf '%s\n' "${report[@]}"
exit $failed
