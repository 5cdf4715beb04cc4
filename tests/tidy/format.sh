#!/usr/bin/env bash
# Formats the C++ sources with clang-format; with --check only says which ones need it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ! command -v clang-format >/dev/null; then
  echo "format: skipped, clang-format is not installed"
  exit 0
fi
mode=-i
case "${1:-}" in
  --check) mode=--dry-run ;;
  "") ;;
  *) echo "usage: tests/tidy/format.sh [--check]" >&2 && exit 2 ;;
esac
find cmd examples launcher offload runtime tests zero -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) -print0 |
  xargs -0 clang-format "$mode" --Werror
