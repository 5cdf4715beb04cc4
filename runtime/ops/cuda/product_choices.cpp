#include "runtime/ops/cuda/product_choices.h"

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/exception_text.h"
#include "runtime/device/cuda/cuda_check.h"

namespace dstrain::ops::gpu {
namespace {

using Json = nlohmann::ordered_json;

std::string to_hex(const cublasLtMatmulAlgo_t& algorithm) {
  return fmt::format("{:016x}", fmt::join(algorithm.data, " "));
}

cublasLtMatmulAlgo_t from_hex(const std::string& text) {
  std::istringstream words(text);
  cublasLtMatmulAlgo_t algorithm{};
  for (auto& word : algorithm.data) words >> std::hex >> word;
  if (words.fail()) fail(ErrorCode::input, "\"{}\" is no algorithm", text);
  return algorithm;
}

DType dtype_of_name(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    if (name_of(dtype) == name) return dtype;
  }
  fail(ErrorCode::input, "no product is of {}", name);
}

Json to_json(const ProductKey& key, const cublasLtMatmulAlgo_t& algorithm) {
  return {{"shape", {key.m, key.n, key.k}},
          {"strides", {key.a_stride, key.b_stride, key.out_stride}},
          {"alignments", {key.a_alignment, key.b_alignment, key.out_alignment}},
          {"operands", name_of(key.operands)},
          {"out", name_of(key.out)},
          {"a_transposed", key.a_transposed},
          {"b_transposed", key.b_transposed},
          {"bias", key.bias},
          {"accumulate", key.accumulate},
          {"tf32", key.tf32},
          {"algorithm", to_hex(algorithm)}};
}

ProductKey read_key(const Json& json) {
  const auto shape = json.at("shape").get<std::array<std::int64_t, 3>>();
  const auto strides = json.at("strides").get<std::array<std::int64_t, 3>>();
  const auto alignments = json.at("alignments").get<std::array<std::uint32_t, 3>>();
  return {.m = shape[0],
          .n = shape[1],
          .k = shape[2],
          .a_stride = strides[0],
          .b_stride = strides[1],
          .out_stride = strides[2],
          .operands = dtype_of_name(json.at("operands")),
          .out = dtype_of_name(json.at("out")),
          .a_transposed = json.at("a_transposed"),
          .b_transposed = json.at("b_transposed"),
          .bias = json.at("bias"),
          .accumulate = json.at("accumulate"),
          .tf32 = json.at("tf32"),
          .a_alignment = alignments[0],
          .b_alignment = alignments[1],
          .out_alignment = alignments[2]};
}

}  // namespace

ChoicePlace choice_place(int ordinal) {
  cudaDeviceProp properties{};
  DSTRAIN_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal), "GPU {}", ordinal);
  return {.library = fmt::format("cuBLASLt {}", cublasLtGetVersion()),
          .gpu = fmt::format("{} {}.{} with {} multiprocessors", properties.name, properties.major,
                             properties.minor, properties.multiProcessorCount)};
}

std::string to_text(const ProductAlgorithms& algorithms, const ChoicePlace& place) {
  Json products = Json::array();
  for (const auto& [key, algorithm] : algorithms) products.push_back(to_json(key, algorithm));
  return Json{{"library", place.library}, {"gpu", place.gpu}, {"products", products}}.dump();
}

Result<ProductAlgorithms> read_algorithms(const std::string& text, const ChoicePlace& here) {
  try {
    const Json json = Json::parse(text);
    const auto differs = [&](const char* what, const std::string& own) {
      const auto other = json.at(what).get<std::string>();
      return other == own ? "" : fmt::format("they are of {}, and this is {}", other, own);
    };
    for (const std::string& reason : {differs("library", here.library), differs("gpu", here.gpu)}) {
      if (!reason.empty()) return Failure{reason};
    }
    ProductAlgorithms algorithms;
    for (const Json& product : json.at("products")) {
      algorithms.emplace(read_key(product), from_hex(product.at("algorithm")));
    }
    return algorithms;
  } catch (const nlohmann::json::exception& error) {
    return Failure{exception_text(error)};
  } catch (const Error& error) {
    return Failure{error.what()};
  }
}

}  // namespace dstrain::ops::gpu
