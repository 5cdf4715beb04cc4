#include "runtime/data/batch_loader.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::data {
namespace {

std::int64_t count_or_fail(const TokenStream& tokens, std::int64_t block_size) {
  const std::int64_t samples = sample_count(tokens, block_size);
  if (samples == 0) {
    fail(ErrorCode::input,
         "{}: {} tokens are too few for one sample of block_size {}, which takes {}", tokens.path(),
         tokens.size(), block_size, block_size + 1);
  }
  return samples;
}

OrderOptions with_samples(OrderOptions order, std::int64_t samples) {
  order.samples = order.samples > 0 ? std::min(order.samples, samples) : samples;
  return order;
}

SampleRange within(const TokenStream& tokens, std::int64_t block_size, SampleRange range) {
  const std::int64_t left = count_or_fail(tokens, block_size) - range.first;
  range.count = std::min(range.count, left);
  DSTRAIN_CHECK(range.first >= 0 && range.count > 0, "samples {}+{}", range.first, range.count);
  return range;
}

std::span<std::int32_t> row(std::span<std::int32_t> values, std::int64_t index, std::int64_t size) {
  return values.subspan(static_cast<std::size_t>(index * size), static_cast<std::size_t>(size));
}

void check_sizes(const LoaderPlace& place,
                 std::span<std::int32_t> tokens,
                 std::span<std::int32_t> labels) {
  const auto expected = static_cast<std::size_t>(place.micro_batch * place.block_size);
  DSTRAIN_CHECK(tokens.size() == expected && labels.size() == expected, "{} tokens and {} labels",
                tokens.size(), labels.size());
}

}  // namespace

std::int64_t sample_count(const TokenStream& tokens, std::int64_t block_size) {
  DSTRAIN_CHECK(block_size > 0, "block size {}", block_size);
  return (tokens.size() - 1) / block_size;
}

BatchLoader::BatchLoader(const TokenStream& tokens,
                         const LoaderPlace& place,
                         const OrderOptions& order)
    : tokens_(tokens),
      place_(place),
      micro_steps_(order.global_batch / (place.world * place.micro_batch)),
      order_(with_samples(order, count_or_fail(tokens, place.block_size))) {
  DSTRAIN_CHECK(micro_steps_ * place.world * place.micro_batch == order.global_batch,
                "global batch {} is not a multiple of {} ranks times {}", order.global_batch,
                place.world, place.micro_batch);
}

std::int64_t BatchLoader::fill(std::int64_t step,
                               std::int64_t micro_step,
                               std::span<std::int32_t> tokens,
                               std::span<std::int32_t> labels) const {
  check_sizes(place_, tokens, labels);
  DSTRAIN_CHECK(micro_step >= 0 && micro_step < micro_steps_, "micro step {} of {}", micro_step,
                micro_steps_);
  const std::int64_t block = place_.block_size;
  const std::int64_t first = (micro_step * place_.world + place_.rank) * place_.micro_batch;
  for (std::int64_t i = 0; i < place_.micro_batch; ++i) {
    const std::int64_t sample = order_.sample(step, first + i);
    tokens_.read(sample * block, row(tokens, i, block));
    tokens_.read(sample * block + 1, row(labels, i, block));
  }
  return first;
}

EvaluationLoader::EvaluationLoader(const TokenStream& tokens,
                                   const LoaderPlace& place,
                                   SampleRange range)
    : tokens_(tokens), place_(place), range_(within(tokens, place.block_size, range)) {}

std::int64_t EvaluationLoader::batches() const {
  const std::int64_t each = place_.world * place_.micro_batch;
  return (range_.count + each - 1) / each;
}

void EvaluationLoader::fill(std::int64_t batch,
                            std::span<std::int32_t> tokens,
                            std::span<std::int32_t> labels) const {
  check_sizes(place_, tokens, labels);
  DSTRAIN_CHECK(batch >= 0 && batch < batches(), "batch {} of {}", batch, batches());
  const std::int64_t block = place_.block_size;
  const std::int64_t first = (batch * place_.world + place_.rank) * place_.micro_batch;
  for (std::int64_t i = 0; i < place_.micro_batch; ++i) {
    const auto inputs = row(tokens, i, block);
    const auto targets = row(labels, i, block);
    if (first + i < range_.count) {
      const std::int64_t sample = range_.first + first + i;
      tokens_.read(sample * block, inputs);
      tokens_.read(sample * block + 1, targets);
    } else {
      std::fill(inputs.begin(), inputs.end(), 0);
      std::fill(targets.begin(), targets.end(), ignored_label);
    }
  }
}

}  // namespace dstrain::data
