#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/result.h"

namespace dstrain::config {

/// The known sizes of train_batch_size = micro batch * accumulation steps * world size.
struct BatchGiven {
  std::optional<std::int64_t> train;         ///< train_batch_size
  std::optional<std::int64_t> micro;         ///< train_micro_batch_size_per_gpu
  std::optional<std::int64_t> accumulation;  ///< gradient_accumulation_steps
};

struct Batch {
  std::int64_t train = 0;
  std::int64_t micro = 0;
  std::int64_t accumulation = 0;
};

/// Returns the largest divisor of `number` that is at most `most`. Both are positive.
std::int64_t largest_divisor(std::int64_t number, std::int64_t most);

/// Derives the missing sizes by DeepSpeed's rules and checks all of them. A failure names the keys
/// and the numbers.
Result<Batch> solve_batch(const BatchGiven& given, std::int64_t world_size);

/// Whether each size is valid by itself, but train_batch_size is not the product of the others.
bool is_batch_mismatch(const BatchGiven& given, std::int64_t world_size);

/// Returns why the sizes fit no world size. Empty if some world size fits, or if the micro batch is
/// not given (the command line may set it).
std::string batch_problem_anywhere(const BatchGiven& given);

}  // namespace dstrain::config
