#pragma once
#include <cstdint>

namespace dstrain::stand_in {

// The warp's matrix instructions ldmatrix and mma.sync, written from the tables of the PTX ISA
// ("Warp-level matrix load instruction: ldmatrix" and "Matrix Fragments for mma.m16n8k16 with
// floating point type") and not from the kernels that use them, so that a kernel that mistakes a
// lane gets wrong numbers.
// With g = lane / 4 and t = lane % 4, element i of a lane is
//
//   A (16 x 16), a0 .. a7, two in a register:  row g      for i = 0, 1, 4, 5, else g + 8
//                                              column 2 t + i % 2, and 8 more for i >= 4
//   B (16 x 8), b0 .. b3, two in a register:   row 2 t + i % 2, and 8 more for i >= 2
//                                              column g
//   C (16 x 8), c0 .. c3:                      row g      for i < 2, else g + 8
//                                              column 2 t + i % 2
//
// The first of two elements in a register is in the low bits. ldmatrix .x4: lane i passes the
// address of row i % 8 of matrix i / 8; register j of a lane receives elements 2 t and 2 t + 1 of
// row g of matrix j, or with .trans rows 2 t and 2 t + 1 of column g.

enum class Order : std::uint8_t { plain, transposed };

/// ldmatrix.sync.aligned.m8n8.x4[.trans].shared.b16.
void load_matrices(const void* row, std::uint32_t (&pairs)[4], Order order);

/// mma.sync.aligned.m16n8k16.row.col.f32.T.T.f32, with T BFloat16 or Float16.
template <class T>
void multiply_add(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&c)[4]);

}  // namespace dstrain::stand_in
