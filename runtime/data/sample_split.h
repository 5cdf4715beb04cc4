#pragma once
#include <cstdint>
#include <span>

#include "runtime/data/batch_loader.h"

namespace dstrain::data {

struct SampleSplit {
  SampleRange training;
  SampleRange validation;
};

/// The parts of `samples` samples that three weights give, by Megatron's rounding: each part has
/// round(weight / sum of weights * samples), halves to even, and what is left over or missing is
/// taken from the first. The last part, for tests, is not used.
SampleSplit split_samples(std::int64_t samples, std::span<const double> weights);

}  // namespace dstrain::data
