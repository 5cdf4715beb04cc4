#!/usr/bin/env bash
# Runs clang-tidy over the sources that have changed; over the whole tree the preset tidy does:
# cmake --preset tidy && cmake --build --preset tidy
#
#   tests/tidy/clang_tidy.sh           the 8 sources that changed last
#   tests/tidy/clang_tidy.sh BASE      those that changed since BASE, 8 at most: the rest is named
#
# Of a header the source of its name is taken, or one that includes it. Exits with 77 where there is
# nothing to run it on, or with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
sources_max=8
folders=(cmd launcher offload runtime zero)

skip() {
  echo "skipped: $1"
  exit 77
}

command -v clang-tidy >/dev/null || skip "clang-tidy is not installed (Debian: clang-tidy)"
git rev-parse --verify --quiet HEAD >/dev/null || skip "this is no git repository"

# The newest first.
changed() {
  if [ $# -gt 0 ]; then
    git diff --name-only --diff-filter=d "$1" -- "${folders[@]}"
  else
    git log --max-count=100 --format= --name-only -- "${folders[@]}"
  fi
}

source_of() {
  local source=${1%.h}.cpp
  [ -e "$source" ] || source=$(git grep --files-with-matches --fixed-strings \
    "#include \"$1\"" -- "${folders[@]/%//*.cpp}" | head -n 1 || true)
  [ -z "$source" ] || echo "$source"
}

mapfile -t sources < <(
  changed "$@" | awk '!seen[$0]++' | while read -r path; do
    case $path in
      *.cpp) [ ! -e "$path" ] || echo "$path" ;;
      *.h) [ ! -e "$path" ] || source_of "$path" ;;
    esac
  done | awk '!seen[$0]++')
[ ${#sources[@]} -gt 0 ] || skip "no source of the product has changed"
[ $# -gt 0 ] || sources=("${sources[@]:0:$sources_max}")
for path in "${sources[@]:$sources_max}"; do
  echo "not looked at, more than $sources_max: $path"
done
sources=("${sources[@]:0:$sources_max}")

cmake --preset tidy >/dev/null
# A source that is not built here, for want of a library, has no compile command.
for path in "${sources[@]}"; do
  if grep --quiet --fixed-strings "\"file\": \"$PWD/$path\"" build/tidy/compile_commands.json; then
    printf '%s\0' "$path"
  else
    echo "not built here: $path" >&2
  fi
done |
  xargs --null --no-run-if-empty --max-args=1 --max-procs=2 --verbose \
    clang-tidy -p build/tidy --quiet --warnings-as-errors='*' \
    2> >(grep --invert-match 'warnings generated' >&2)
