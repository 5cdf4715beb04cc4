#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/model/parameter_source.h"

namespace dstrain::test {

struct ModelCheckpoint {
  std::int64_t step = 0;
  int world = 1;
  std::string config_json;
};

/// Writes `output`/checkpoint-N of a model's fp32 weights alone, every parameter cut evenly among
/// the ranks; returns its directory. Link test_model_checkpoint.
std::filesystem::path write_model_checkpoint(const std::filesystem::path& output,
                                             const ModelCheckpoint& what,
                                             std::span<const model::ParameterSpec> parameters,
                                             const model::ParameterSource& source);

}  // namespace dstrain::test
