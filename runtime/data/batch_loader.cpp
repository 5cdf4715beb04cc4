#include "runtime/data/batch_loader.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::data {
namespace {

OrderOptions with_samples(OrderOptions order, std::int64_t samples) {
  order.samples = order.samples > 0 ? std::min(order.samples, samples) : samples;
  return order;
}

SampleRange within(std::int64_t samples, SampleRange range) {
  range.count = std::min(range.count, samples - range.first);
  DSTRAIN_CHECK(range.first >= 0 && range.count > 0, "samples {}+{}", range.first, range.count);
  return range;
}

std::span<std::int32_t> row(std::span<std::int32_t> values, std::int64_t index, std::int64_t size) {
  return values.subspan(static_cast<std::size_t>(index * size), static_cast<std::size_t>(size));
}

void check_sizes(std::int64_t expected,
                 std::span<std::int32_t> tokens,
                 std::span<std::int32_t> labels) {
  DSTRAIN_CHECK(std::ssize(tokens) == expected && std::ssize(labels) == expected,
                "{} tokens and {} labels", tokens.size(), labels.size());
}

}  // namespace

BatchLoader::BatchLoader(const SampleSource& source,
                         const LoaderPlace& place,
                         const OrderOptions& order)
    : source_(source),
      place_(place),
      micro_steps_(order.global_batch / (place.world * place.micro_batch)),
      order_(with_samples(order, source.samples())) {
  DSTRAIN_CHECK(micro_steps_ * place.world * place.micro_batch == order.global_batch,
                "global batch {} is not a multiple of {} ranks times {}", order.global_batch,
                place.world, place.micro_batch);
}

std::int64_t BatchLoader::fill(std::int64_t step,
                               std::int64_t micro_step,
                               std::span<std::int32_t> tokens,
                               std::span<std::int32_t> labels) const {
  check_sizes(place_.micro_batch * source_.block_size(), tokens, labels);
  DSTRAIN_CHECK(micro_step >= 0 && micro_step < micro_steps_, "micro step {} of {}", micro_step,
                micro_steps_);
  const std::int64_t block = source_.block_size();
  const std::int64_t first = (micro_step * place_.world + place_.rank) * place_.micro_batch;
  for (std::int64_t i = 0; i < place_.micro_batch; ++i) {
    source_.read(order_.sample(step, first + i), row(tokens, i, block), row(labels, i, block));
  }
  return first;
}

EvaluationLoader::EvaluationLoader(const SampleSource& source,
                                   const LoaderPlace& place,
                                   SampleRange range)
    : source_(source), place_(place), range_(within(source.samples(), range)) {}

std::int64_t EvaluationLoader::batches() const {
  const std::int64_t each = place_.world * place_.micro_batch;
  return (range_.count + each - 1) / each;
}

void EvaluationLoader::fill(std::int64_t batch,
                            std::span<std::int32_t> tokens,
                            std::span<std::int32_t> labels) const {
  check_sizes(place_.micro_batch * source_.block_size(), tokens, labels);
  DSTRAIN_CHECK(batch >= 0 && batch < batches(), "batch {} of {}", batch, batches());
  const std::int64_t block = source_.block_size();
  const std::int64_t first = (batch * place_.world + place_.rank) * place_.micro_batch;
  for (std::int64_t i = 0; i < place_.micro_batch; ++i) {
    const auto inputs = row(tokens, i, block);
    const auto targets = row(labels, i, block);
    if (first + i < range_.count) {
      source_.read(range_.first + first + i, inputs, targets);
    } else {
      std::fill(inputs.begin(), inputs.end(), 0);
      std::fill(targets.begin(), targets.end(), ignored_label);
    }
  }
}

}  // namespace dstrain::data
