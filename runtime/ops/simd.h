#pragma once

/// Whether functions exist once per instruction set, for the loader to choose from. The sanitizers
/// cannot run before the loader's choice, and clang 14 cannot clone flattened functions; there each
/// function is one plain copy.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define DSTRAIN_SIMD_DISPATCH 0
#else
#define DSTRAIN_SIMD_DISPATCH 1
#endif

/// Marks a leaf kernel of plain loops: it is compiled for AVX-512, for AVX2 and for any x86-64, and
/// the loader picks the best for the machine. Mark only functions, not lambdas. Functions that they
/// call must be inline, and are inlined (flatten): a call would leave the chosen instruction set.
#if DSTRAIN_SIMD_DISPATCH
#define DSTRAIN_SIMD_CLONES \
  __attribute__((flatten, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DSTRAIN_SIMD_CLONES
#endif

/// Precedes a loop whose iterations are independent, even if the compiler cannot tell.
#ifdef __clang__
#define DSTRAIN_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define DSTRAIN_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif
