#include "runtime/config/batch_size.h"

#include <algorithm>

#include <fmt/format.h>

namespace dstrain::config {
namespace {

Failure not_positive(std::string_view what, std::string_view key, std::int64_t value) {
  return {fmt::format("{}: {} has to be greater than 0 ({})", what, value, key)};
}

/// Explains why a derived size is zero.
Failure too_small(std::string_view what,
                  std::string_view key,
                  const BatchGiven& given,
                  std::int64_t world) {
  const std::string divisor =
      given.micro ? fmt::format("train_micro_batch_size_per_gpu {}", *given.micro)
                  : fmt::format("gradient_accumulation_steps {}", given.accumulation.value_or(1));
  return {
      fmt::format("{}: 0 has to be greater than 0 ({} follows from train_batch_size {}, which is "
                  "less than {} * world size {})",
                  what, key, *given.train, divisor, world)};
}

std::optional<Failure> given_problem(const BatchGiven& given) {
  if (given.train && *given.train <= 0) {
    return not_positive("Train batch size", "train_batch_size", *given.train);
  }
  if (given.micro && *given.micro <= 0) {
    return not_positive("Micro batch size per gpu", "train_micro_batch_size_per_gpu", *given.micro);
  }
  if (given.accumulation && *given.accumulation <= 0) {
    return not_positive("Gradient accumulation steps", "gradient_accumulation_steps",
                        *given.accumulation);
  }
  return std::nullopt;
}

std::optional<std::int64_t> product(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t result = 0;
  const bool overflow =
      __builtin_mul_overflow(a, b, &result) || __builtin_mul_overflow(result, c, &result);
  return overflow ? std::nullopt : std::optional(result);
}

/// Requires that all given sizes are positive.
Batch completed(const BatchGiven& given, std::int64_t world) {
  Batch batch{given.train.value_or(0), given.micro.value_or(0), given.accumulation.value_or(0)};
  if (given.train && given.micro) {
    if (!given.accumulation) batch.accumulation = batch.train / batch.micro / world;
  } else if (given.train) {
    batch.accumulation = given.accumulation.value_or(1);
    batch.micro = batch.train / world / batch.accumulation;
  } else {
    batch.accumulation = given.accumulation.value_or(1);
    batch.train = product(batch.micro, batch.accumulation, world).value_or(0);
  }
  return batch;
}

}  // namespace

std::int64_t largest_divisor(std::int64_t number, std::int64_t most) {
  std::int64_t divisor = std::min(number, most);
  while (number % divisor != 0) --divisor;
  return divisor;
}

Result<Batch> solve_batch(const BatchGiven& given, std::int64_t world_size) {
  if (auto problem = given_problem(given)) return *problem;
  if (!given.train && !given.micro) {
    return Failure{
        "Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided"};
  }
  const Batch batch = completed(given, world_size);
  if (batch.micro <= 0) {
    return too_small("Micro batch size per gpu", "train_micro_batch_size_per_gpu", given,
                     world_size);
  }
  if (batch.accumulation <= 0) {
    return too_small("Gradient accumulation steps", "gradient_accumulation_steps", given,
                     world_size);
  }
  const auto whole = product(batch.micro, batch.accumulation, world_size);
  if (!whole) {
    return Failure{
        fmt::format("train_micro_batch_size_per_gpu {} * gradient_accumulation_steps {} * "
                    "world size {} is too large",
                    batch.micro, batch.accumulation, world_size)};
  }
  if (batch.train != *whole) {
    return Failure{
        fmt::format("Check batch related parameters. train_batch_size is not equal to "
                    "train_micro_batch_size_per_gpu * gradient_accumulation_steps * world size: {} "
                    "!= {} * {} * {}",
                    batch.train, batch.micro, batch.accumulation, world_size)};
  }
  return batch;
}

bool is_batch_mismatch(const BatchGiven& given, std::int64_t world_size) {
  if (given_problem(given) || !given.train) return false;
  const Batch batch = completed(given, world_size);
  const auto whole = product(batch.micro, batch.accumulation, world_size);
  const bool too_small = batch.micro <= 0 || batch.accumulation <= 0;
  return too_small || (whole && *whole != batch.train);
}

std::string batch_problem_anywhere(const BatchGiven& given) {
  if (const auto problem = given_problem(given)) return problem->message;
  if (!given.train || (!given.micro && !given.accumulation)) return {};
  const std::int64_t micro = given.micro.value_or(1);
  const std::int64_t accumulation = given.accumulation.value_or(1);
  const auto per_rank = product(micro, accumulation, 1);
  if (per_rank && *given.train % *per_rank == 0) return {};
  return fmt::format(
      "train_batch_size {} is not equal to train_micro_batch_size_per_gpu * "
      "gradient_accumulation_steps * world size for any number of ranks: it is not a multiple of "
      "{}{}{}",
      *given.train, given.micro ? fmt::format("{}", micro) : "",
      given.micro && given.accumulation ? " * " : "",
      given.accumulation ? fmt::format("{}", accumulation) : "");
}

}  // namespace dstrain::config
