#!/usr/bin/env bash
# Packs what tests/gpu.sh needs on another x86-64 Linux machine, which has glibc, the NVIDIA driver
# and CUDA's run-time libraries: programs, the plug-in of GPUs, tests, golden files and all other
# libraries, which keep the names that a debugger tells.
# usage: tests/make_bundle.sh [BUILD_FOLDER [BUNDLE_FOLDER]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
bundle=${2:-build/bundle}
tree=$(mktemp -d)/tree
trap 'rm -rf "$(dirname "$tree")"' EXIT
mkdir -p "$tree/bin" "$tree/tests" "$bundle"

programs=("$build"/bin/{dstrain,dstraind,libdstrain.so,libdstrain_cuda.so})
tests=("$build"/tests/ops/cuda_ops_{test,bench} "$build"/tests/backend/cuda_{events,products}_test
  "$build/tests/e2e/cuda_run_test")
cp "${programs[@]}" "${tests[@]}" "$tree/bin"

# The other machine's own: glibc's, for which a newer one stands in, and NVIDIA's.
own='ld-linux|linux-vdso|/lib(c|m|dl|rt|pthread|resolv)\.so|libcu'
ldd "$tree"/bin/* | awk '$3 ~ /^\// {print $3}' | grep -vE "$own|/libdstrain" | sort -u |
  xargs -I{} cp -L {} "$tree/bin"
strip --strip-debug "$tree"/bin/*
# A library of the system finds its like beside it, too.
export LD_LIBRARY_PATH="$tree/bin"
if ldd "$tree"/bin/dstraind | grep 'not found'; then exit 1; fi

cp -r tests/golden "$tree/tests"
tar -cJf "$bundle/tree.tar.xz" -C "$(dirname "$tree")" tree
cp tests/gpu.sh tests/gpu_torch.py "$bundle"
du -h "$bundle"/*
