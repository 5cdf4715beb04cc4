#!/usr/bin/env bash
# Compiles the sources that have changed with the newest GCC that is installed, if it is newer than
# the one of the build: each new version warns of more. tests/distribution.sh builds everything so.
#
#   tests/tidy/newest_gcc.sh [BASE]           as in changed_sources.sh
#
# Exits with 77 if there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/tidy/changed_sources.sh "$@"

oldest=14
version_of() { "$1" -dumpversion 2>/dev/null | cut -d. -f1; }
newest=g++
for compiler in $(compgen -c g++- | grep -xE 'g\+\+-[0-9]+' | sort -u); do
  [ "$(version_of "$compiler")" -le "$(version_of "$newest")" ] || newest=$compiler
done
[ "$newest" != g++ ] || [ "$(version_of g++)" -lt $oldest ] ||
  skip "the build itself uses GCC $(version_of g++)"
[ "$(version_of "$newest")" -ge $oldest ] || skip "no GCC $oldest or newer is installed"

cmake --preset dev -B build/newest-gcc -DCMAKE_CXX_COMPILER="$newest" -DDSTRAIN_TESTS=OFF \
  -DDSTRAIN_CUDA=OFF >/dev/null
"$newest" --version | head -n 1
mapfile -d '' -t built < <(built_sources build/newest-gcc)
targets=("${built[@]/#/$PWD/}")
ninja -C build/newest-gcc "${targets[@]/%/^}"  # PATH^ is what is made of a source
