// Plain implementations of the cuBLASLt functions that the plug-in calls.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include <cublasLt.h>

#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"
#include "tests/stand_in/refusals.h"
#include "tests/stand_in/streams.h"

namespace {

struct Desc {
  bool tf32 = false;
  cublasOperation_t left = CUBLAS_OP_N;
  cublasOperation_t right = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct Layout {
  cudaDataType type;
  std::uint64_t rows;
  std::uint64_t columns;
  std::int64_t stride;
};
struct Preference {
  std::uint32_t reductions = 0;
};
struct Handle {};

/// Algorithms differ in the order in which they add the parts of a sum.
enum Order : std::uint64_t { forwards, backwards, even_first, by_blocks_that_race };

/// The parts of a sum in an order.
std::vector<std::uint64_t> parts_in(std::uint64_t order, std::uint64_t count) {
  std::vector<std::uint64_t> parts(count);
  std::iota(parts.begin(), parts.end(), 0);
  if (order == backwards) std::reverse(parts.begin(), parts.end());
  if (order == even_first) {
    std::stable_partition(parts.begin(), parts.end(), [](auto part) { return part % 2 == 0; });
  }
  return parts;
}

/// The algorithm that takes no time, while the others take a second each: for rank r, digit r of
/// DSTRAIN_STAND_IN_FASTEST, or else the first.
std::uint64_t fastest_order() {
  const char* const given = std::getenv("DSTRAIN_STAND_IN_FASTEST");
  const char* const rank = std::getenv("RANK");
  const std::size_t place = rank == nullptr ? 0 : std::strtoull(rank, nullptr, 10);
  if (given == nullptr || std::strlen(given) <= place) return forwards;
  return static_cast<std::uint64_t>(given[place] - '0');
}

float load(const void* data, cudaDataType type, std::uint64_t at) {
  using namespace dstrain;
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  if (type == CUDA_R_16BF) return to_float(static_cast<const BFloat16*>(data)[at]);
  return to_float(static_cast<const Float16*>(data)[at]);
}
void store(void* data, cudaDataType type, std::uint64_t at, float value) {
  using namespace dstrain;
  if (type == CUDA_R_32F) static_cast<float*>(data)[at] = value;
  if (type == CUDA_R_16BF) static_cast<BFloat16*>(data)[at] = to_bfloat16(value);
  if (type == CUDA_R_16F) static_cast<Float16*>(data)[at] = to_float16(value);
}

/// Rounds to 10 bits of mantissa, halves away from zero.
float round_to_tf32(float value) {
  constexpr std::uint32_t dropped = (1U << 13) - 1;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + (dropped + 1) / 2) & ~dropped);
}

/// Returns a dense copy of an operand, (rows, columns) after its transposition.
std::vector<float> operand(const void* data, const Layout& layout, bool transposed, bool tf32) {
  const std::uint64_t rows = transposed ? layout.columns : layout.rows;
  const std::uint64_t columns = transposed ? layout.rows : layout.columns;
  std::vector<float> values(rows * columns);
  for (std::uint64_t i = 0; i < rows; ++i) {
    for (std::uint64_t j = 0; j < columns; ++j) {
      const auto stride = static_cast<std::uint64_t>(layout.stride);
      const std::uint64_t at = transposed ? j + i * stride : i + j * stride;
      const float value = load(data, layout.type, at);
      values[i * columns + j] = tf32 ? round_to_tf32(value) : value;
    }
  }
  return values;
}

const Layout& of(cublasLtMatrixLayout_t layout) {
  return *reinterpret_cast<const Layout*>(layout);
}

template <class T>
cublasStatus_t copy_attribute(T& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() {
  const char* const given = std::getenv("DSTRAIN_STAND_IN_CUBLASLT");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 130000;
}
const char* cublasLtGetStatusString(cublasStatus_t /*status*/) {
  return "refused by the stand-in";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  *handle = reinterpret_cast<cublasLtHandle_t>(new Handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  delete reinterpret_cast<Handle*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const bool known = tf32 || compute == CUBLAS_COMPUTE_32F;
  if (!known || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc{.tf32 = tf32});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  delete reinterpret_cast<Desc*>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value,
                                              std::size_t bytes) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  Desc& d = *reinterpret_cast<Desc*>(desc);
  if (name == CUBLASLT_MATMUL_DESC_TRANSA) return copy_attribute(d.left, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_TRANSB) return copy_attribute(d.right, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE) return copy_attribute(d.epilogue, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return copy_attribute(d.bias, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                          cudaDataType type,
                                          std::uint64_t rows,
                                          std::uint64_t columns,
                                          std::int64_t stride) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (stride < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, stride});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value,
                                                    std::size_t bytes) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    return copy_attribute(reinterpret_cast<Preference*>(preference)->reductions, value, bytes);
  }
  const bool wide = name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  return bytes == (wide ? 8 : 4) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/,
                                              cublasLtMatmulDesc_t /*desc*/,
                                              cublasLtMatrixLayout_t /*left*/,
                                              cublasLtMatrixLayout_t /*right*/,
                                              cublasLtMatrixLayout_t /*c*/,
                                              cublasLtMatrixLayout_t /*out*/,
                                              cublasLtMatmulPreference_t preference,
                                              int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  const std::uint32_t reductions = reinterpret_cast<const Preference*>(preference)->reductions;
  const bool may_race = (reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0;
  *found = std::min(wanted, may_race ? 4 : 3);
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(i);
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t /*handle*/,
                                       cublasLtMatmulDesc_t /*desc*/,
                                       cublasLtMatrixLayout_t /*left*/,
                                       cublasLtMatrixLayout_t /*right*/,
                                       cublasLtMatrixLayout_t /*c*/,
                                       cublasLtMatrixLayout_t /*out*/,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  result->workspaceSize = 0;
  return algorithm->data[0] <= by_blocks_that_race ? CUBLAS_STATUS_SUCCESS
                                                   : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/,
                              cublasLtMatmulDesc_t desc,
                              const void* /*alpha*/,
                              const void* left,
                              cublasLtMatrixLayout_t left_layout,
                              const void* right,
                              cublasLtMatrixLayout_t right_layout,
                              const void* beta,
                              const void* /*c*/,
                              cublasLtMatrixLayout_t /*c_layout*/,
                              void* out,
                              cublasLtMatrixLayout_t out_layout,
                              const cublasLtMatmulAlgo_t* algorithm,
                              void* workspace,
                              std::size_t workspace_bytes,
                              cudaStream_t stream) {
  if (dstrain::stand_in::refuses(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;
  const Desc d = *reinterpret_cast<const Desc*>(desc);
  const Layout to = of(out_layout);
  const bool left_transposed = d.left == CUBLAS_OP_T;
  const bool right_transposed = d.right == CUBLAS_OP_T;
  const Layout a = of(left_layout);
  const Layout b = of(right_layout);
  const std::uint64_t k = left_transposed ? a.rows : a.columns;
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0 ||
      reinterpret_cast<std::uintptr_t>(d.bias) % 16 != 0 || a.type != b.type ||
      k != (right_transposed ? b.columns : b.rows) ||
      to.rows != (left_transposed ? a.columns : a.rows) ||
      to.columns != (right_transposed ? b.rows : b.columns)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool adds = *static_cast<const float*>(beta) != 0;
  const std::uint64_t order = algorithm->data[0];
  const dstrain::stand_in::Driver driver;
  dstrain::stand_in::device().load(reinterpret_cast<const void*>(&cublasLtMatmul));
  dstrain::stand_in::queue_of(stream).give_work([=] {
    if (order != fastest_order()) dstrain::stand_in::device().let_pass(1000);
    const std::vector<std::uint64_t> parts = parts_in(order, k);
    std::memset(workspace, 0xFF, workspace_bytes < 4096 ? workspace_bytes : 4096);
    const std::vector<float> rows = operand(left, a, left_transposed, d.tf32);
    const std::vector<float> columns = operand(right, b, right_transposed, d.tf32);
    for (std::uint64_t j = 0; j < to.columns; ++j) {
      for (std::uint64_t i = 0; i < to.rows; ++i) {
        float sum = 0;
        for (const std::uint64_t l : parts) sum += rows[i * k + l] * columns[l * to.columns + j];
        const std::uint64_t at = i + j * static_cast<std::uint64_t>(to.stride);
        if (adds) sum += load(out, to.type, at);
        if (d.epilogue == CUBLASLT_EPILOGUE_BIAS) sum += load(d.bias, to.type, i);
        store(out, to.type, at, sum);
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
