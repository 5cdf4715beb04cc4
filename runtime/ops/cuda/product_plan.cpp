#include "runtime/ops/cuda/product_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "runtime/base/error.h"

namespace dstrain::ops::gpu {
namespace {

cudaDataType_t data_type(DType dtype) {
  if (dtype == DType::bf16) return CUDA_R_16BF;
  return dtype == DType::f16 ? CUDA_R_16F : CUDA_R_32F;
}

/// The largest alignment that algorithms require. Counting alignment only up to it gives a product
/// one key wherever its memory lies.
constexpr std::uint32_t alignment_most = 16;

std::uint32_t alignment_of(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  std::uint32_t alignment = alignment_most;
  while (value % alignment != 0) alignment /= 2;
  return alignment;
}

/// Describes a row-major matrix as column-major.
UniqueHandle<MatrixLayoutTraits> make_layout(const ProductMatrix& matrix,
                                             std::int64_t rows,
                                             std::int64_t columns,
                                             const Product& product) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&layout, data_type(matrix.dtype),
                                          static_cast<std::uint64_t>(columns),
                                          static_cast<std::uint64_t>(rows), matrix.stride),
               "cublasLtMatrixLayoutCreate", product);
  return UniqueHandle<MatrixLayoutTraits>(layout);
}

template <class Value>
void set(cublasLtMatmulDesc_t desc,
         cublasLtMatmulDescAttributes_t name,
         const Value& value,
         const Product& product) {
  check_cublas(cublasLtMatmulDescSetAttribute(desc, name, &value, sizeof(value)),
               "cublasLtMatmulDescSetAttribute", product);
}

template <class Value>
void set(cublasLtMatmulPreference_t preference,
         cublasLtMatmulPreferenceAttributes_t name,
         const Value& value,
         const Product& product) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value)),
               "cublasLtMatmulPreferenceSetAttribute", product);
}

UniqueHandle<PreferenceTraits> make_preference(const ProductKey& key, const Product& product) {
  cublasLtMatmulPreference_t raw = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate", product);
  UniqueHandle<PreferenceTraits> preference(raw);
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, ProductPlan::workspace_bytes, product);
  // Partial sums are added in f32, in a fixed order.
  const std::uint32_t reductions =
      CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions, product);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.b_alignment, product);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.a_alignment, product);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.out_alignment, product);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.out_alignment, product);
  return preference;
}

}  // namespace

void check_cublas(cublasStatus_t status, const char* call, const Product& product) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const auto [m, n, k] = product.shape;
  fail(ErrorCode::device, "{}: {} of ({}, {}) times ({}, {}), {} to {}: {}", product.op, call, m, k,
       k, n, name_of(product.a.dtype), name_of(product.out.dtype), cublasLtGetStatusString(status));
}

ProductKey key_of(const Product& p) {
  return {.m = p.shape.m,
          .n = p.shape.n,
          .k = p.shape.k,
          .a_stride = p.a.stride,
          .b_stride = p.b.stride,
          .out_stride = p.out.stride,
          .operands = p.a.dtype,
          .out = p.out.dtype,
          .a_transposed = p.a_transposed,
          .b_transposed = p.b_transposed,
          .bias = p.bias != nullptr,
          .accumulate = p.accumulate,
          .tf32 = p.tf32,
          .a_alignment = alignment_of(p.a.data),
          .b_alignment = alignment_of(p.b.data),
          .out_alignment = alignment_of(p.out.data)};
}

ProductPlan::ProductPlan(cublasLtHandle_t handle, const Product& product) {
  const cublasComputeType_t compute =
      product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t desc = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&desc, compute, CUDA_R_32F), "cublasLtMatmulDescCreate",
               product);
  desc_ = UniqueHandle<MatmulDescTraits>(desc);
  const cublasOperation_t left = product.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t right = product.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, left, product);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, right, product);
  if (product.bias != nullptr) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue, product);
    assume_bias(product);
  }
  const auto [m, n, k] = product.shape;
  left_ = product.b_transposed ? make_layout(product.b, n, k, product)
                               : make_layout(product.b, k, n, product);
  right_ = product.a_transposed ? make_layout(product.a, k, m, product)
                                : make_layout(product.a, m, k, product);
  out_ = make_layout(product.out, m, n, product);
  algorithm_ = propose(handle, product, 1).front();
}

/// cuBLASLt derives the alignment of a bias from its address when it chooses and checks algorithms.
/// A fixed address makes all biases look the same.
void ProductPlan::assume_bias(const Product& product) {
  alignas(256) static const std::array<std::byte, std::size_t{2} * alignment_most> place{};
  const void* const any = &place.at(alignment_most);  // aligned to exactly that
  set(desc_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, any, product);
}

std::vector<cublasLtMatmulAlgo_t> ProductPlan::propose(cublasLtHandle_t handle,
                                                       const Product& product,
                                                       int most) const {
  const auto preference = make_preference(key_of(product), product);
  std::vector<cublasLtMatmulHeuristicResult_t> proposed(static_cast<std::size_t>(most));
  int found = 0;
  check_cublas(
      cublasLtMatmulAlgoGetHeuristic(handle, desc_.get(), left_.get(), right_.get(), out_.get(),
                                     out_.get(), preference.get(), most, proposed.data(), &found),
      "cublasLtMatmulAlgoGetHeuristic", product);
  check_cublas(found > 0 ? proposed.front().state : CUBLAS_STATUS_NOT_SUPPORTED,
               "cublasLtMatmulAlgoGetHeuristic", product);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulHeuristicResult_t& one = proposed[static_cast<std::size_t>(i)];
    if (one.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(one.algo);
  }
  return algorithms;
}

bool ProductPlan::take(cublasLtHandle_t handle,
                       const Product& product,
                       const cublasLtMatmulAlgo_t& algorithm) {
  if (product.bias != nullptr) assume_bias(product);
  cublasLtMatmulHeuristicResult_t needs{};
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(
      handle, desc_.get(), left_.get(), right_.get(), out_.get(), out_.get(), &algorithm, &needs);
  if (status != CUBLAS_STATUS_SUCCESS || needs.workspaceSize > workspace_bytes) return false;
  algorithm_ = algorithm;
  chosen_ = true;
  return true;
}

void ProductPlan::run(cublasLtHandle_t handle,
                      const Product& product,
                      void* workspace,
                      cudaStream_t stream) {
  if (product.bias != nullptr) {
    set(desc_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias, product);
  }
  const float one = 1;
  const float beta = product.accumulate ? 1 : 0;
  check_cublas(
      cublasLtMatmul(handle, desc_.get(), &one, product.b.data, left_.get(), product.a.data,
                     right_.get(), &beta, product.out.data, out_.get(), product.out.data,
                     out_.get(), &algorithm_, workspace, workspace_bytes, stream),
      "cublasLtMatmul", product);
}

}  // namespace dstrain::ops::gpu
