#!/usr/bin/env bash
# Packs dstrain for another x86-64 Linux machine, which needs no compiler: glibc, and for GPUs the
# NVIDIA driver and CUDA's run-time libraries, are all that it has to have.
#
#   tests/make_bundle.sh [--tests] [BUILD_FOLDER [BUNDLE_FOLDER]]
#
# BUNDLE_FOLDER (build/bundle) gets dstrain.tar.gz, in which bin/ has the programs, all plug-ins,
# the libraries of the system that they use and the tests and benchmarks of GPUs; beside it gpu.sh,
# which unpacks it and runs those. MPI, where ranks are to use it, is the other machine's. --tests
# leaves out what tests do not need, and what only a debugger reads. The programs run on GPUs for
# which BUILD_FOLDER (build/release) has code: those of build/release-gpus on all kinds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
only_tests=no
if [[ ${1:-} == --tests ]]; then only_tests=yes && shift; fi
build=${1:-build/release}
bundle=${2:-build/bundle}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/dstrain
mkdir -p "$tree/bin" "$tree/tests" "$bundle"

# write_words: a token file of llm.c's, in which each word of the sources, which come twice, is a
# token below 32,000.
write_words() {
  git archive HEAD -- ':(glob)**/*.md' ':(glob)**/*.cpp' ':(glob)**/*.h' | tar -xO > "$work/text"
  cat "$work/text" "$work/text" | awk '
    function bytes(number, count) {
      for (; count > 0; --count) {
        printf "\\x%02x", number % 256
        number = int(number / 256)
      }
    }
    { for (i = 1; i <= NF; ++i) token[count++] = $i }
    END {
      bytes(20240520, 4)
      bytes(1, 4)
      bytes(count, 4)
      bytes(0, 1012)
      for (i = 0; i < count; ++i) {
        if (!(token[i] in ids)) ids[token[i]] = n++ % 32000
        bytes(ids[token[i]], 2)
        if (i % 1000 == 999) printf "\n"
      }
    }' | while IFS= read -r line || [[ -n $line ]]; do printf '%b' "$line"; done
}

cp "$build"/bin/{dstrain,dstraind,libdstrain_core.so,libdstrain_cuda.so} "$tree/bin"
cp "$build"/tests/ops/cuda_ops_{test,bench} "$build"/tests/backend/cuda_{events,products}_test \
  "$build"/tests/e2e/cuda_{run,tuning}_test "$build"/tests/comm/comm_gpu_rank "$tree/bin"
for library in "$build"/tests/ops/libkernel_times.so; do
  [[ -e $library ]] || continue
  ldd "$library" | awk '/libcupti/ {print $3}' | xargs cp -Lt "$tree/bin" "$library"
done
log=$build/tests/ops/libnvtx_log.so
if [[ -e $log ]]; then cp "$log" "$tree/bin"; fi
mpi=()
if [[ $only_tests == no ]]; then
  for plug_in in "$build"/bin/libdstrain_*.so; do
    if [[ $plug_in == *_mpi_* ]]; then mpi+=("$plug_in"); else cp "$plug_in" "$tree/bin"; fi
  done
  cp -r examples hostfiles README.md "$tree"
fi

# The other machine's own: glibc's, for which a newer one stands in, and NVIDIA's.
own='ld-linux|linux-vdso|/lib(c|m|dl|rt|pthread|resolv)\.so|libcu'
ldd "$tree"/bin/* | awk '$3 ~ /^\// {print $3}' | grep -vE "$own|/libdstrain" | sort -u |
  xargs -I{} cp -L {} "$tree/bin"
if [[ $only_tests == yes ]]; then strip --strip-debug "$tree"/bin/*; fi
if ldd "$tree"/bin/dstraind | grep 'not found'; then exit 1; fi
if ((${#mpi[@]})); then cp "${mpi[@]}" "$tree/bin"; fi

cp -r tests/golden "$tree/tests"
write_words > "$tree/tests/words.bin"
tar -czf "$bundle/dstrain.tar.gz" -C "$work" dstrain
cp tests/gpu.sh tests/bench/peers/{attention,decoder}_torch.py "$bundle"
du -h "$bundle"/*
