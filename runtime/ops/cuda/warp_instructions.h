#pragma once
#include <cstdint>
#include <type_traits>

#include "runtime/ops/cuda/gpu.h"
#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"

// The PTX instructions that kernels of 16-bit tensors use, from sm_80 on: ldmatrix, mma.sync, cvt,
// ex2 and cp.async. The stand-in replaces this header.

namespace dstrain::ops::gpu {

DSTRAIN_DEVICE std::uint32_t shared_address(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

/// Loads four 8 x 8 matrices of 16-bit elements from shared memory. Lane i passes the address of
/// row i % 8 of matrix i / 8, and receives elements 2 (i % 4) and 2 (i % 4) + 1 of row i / 4 of
/// each matrix. All threads of a warp must call.
DSTRAIN_DEVICE void load_matrices(const void* row, std::uint32_t (&pairs)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
               : "r"(shared_address(row))
               : "memory");
}
/// The same, but lane i receives rows 2 (i % 4) and 2 (i % 4) + 1 of column i / 4.
DSTRAIN_DEVICE void load_transposed_matrices(const void* row, std::uint32_t (&pairs)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
               : "r"(shared_address(row))
               : "memory");
}

/// C (16 x 8) += A (16 x 16) B (16 x 8) with elements T and sums in f32. tensor_core.h describes
/// the fragments. All threads of a warp must call.
template <class T>
DSTRAIN_DEVICE void multiply_add_matrices(const std::uint32_t (&a)[4],
                                          const std::uint32_t (&b)[2],
                                          float (&c)[4]) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    static_assert(std::is_same_v<T, Float16>);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

/// Two floats rounded to T, ties to even; `low` in the lower bits.
template <class T>
DSTRAIN_DEVICE std::uint32_t pack(float low, float high) {
  std::uint32_t pair = 0;
  if constexpr (std::is_same_v<T, BFloat16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    static_assert(std::is_same_v<T, Float16>);
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
}

/// Writes two elements to an address aligned to four bytes.
DSTRAIN_DEVICE void store_pair(void* target, std::uint32_t pair) {
  *static_cast<std::uint32_t*>(target) = pair;
}
/// Copies 16 aligned bytes with one load and one store.
DSTRAIN_DEVICE void copy_chunk(void* target, const void* source) {
  *static_cast<uint4*>(target) = *static_cast<const uint4*>(source);
}

// Constexpr because their callers, which all devices share, must be.

/// 2^x to two units in the last place; results below 2^-126 are zero.
DSTRAIN_DEVICE constexpr float approximate_exp2(float x) {
  float power = 0;
  if (!std::is_constant_evaluated()) asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
/// 1 / x to one unit in the last place; denormals are zero.
DSTRAIN_DEVICE constexpr float approximate_reciprocal(float x) {
  float reciprocal = 0;
  if (!std::is_constant_evaluated()) asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
  return reciprocal;
}

/// Starts copying 16 aligned bytes from global to shared memory, or zeros unless `exists`. The
/// thread sees them after wait_for_copies(), other threads after a barrier that follows.
DSTRAIN_DEVICE void start_copy(void* target, const void* source, bool exists) {
  const int bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(target)), "l"(__cvta_generic_to_global(source)), "r"(bytes)
               : "memory");
}
DSTRAIN_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_all;" : : : "memory");
}

}  // namespace dstrain::ops::gpu
