#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/result.h"

namespace dstrain::config {

/// What is known of train_batch_size = micro batch * accumulation steps * world size.
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

/// The largest number up to `most` that divides `number`; both are positive.
std::int64_t largest_divisor(std::int64_t number, std::int64_t most);

/// Fills in what is not given by DeepSpeed's rules and checks the whole. A failure names the keys
/// and the numbers.
Result<Batch> solve_batch(const BatchGiven& given, std::int64_t world_size);

/// Whether each size can be, and train_batch_size is not the product of the others.
bool is_batch_mismatch(const BatchGiven& given, std::int64_t world_size);

/// What is wrong with the sizes for every world size; empty when some world size fits, or when the
/// micro batch is not given at all (the command line may have it).
std::string batch_problem_anywhere(const BatchGiven& given);

}  // namespace dstrain::config
