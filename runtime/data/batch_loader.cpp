#include "runtime/data/batch_loader.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/os/mapped_file.h"

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

void check_sizes(std::int64_t samples, const SampleSizes& sizes, const SampleRows& rows) {
  const std::int64_t tokens = samples * sizes.tokens;
  DSTRAIN_CHECK(std::ssize(rows.tokens) == tokens && std::ssize(rows.labels) == tokens,
                "{} tokens and {} labels", rows.tokens.size(), rows.labels.size());
  const std::int64_t counts = sizes.source > 0 ? samples : 0;
  DSTRAIN_CHECK(
      std::ssize(rows.source) == samples * sizes.source && std::ssize(rows.source_count) == counts,
      "{} tokens of {} sources", rows.source.size(), rows.source_count.size());
}

}  // namespace

BatchLoader::BatchLoader(const SampleSource& source,
                         const LoaderShare& share,
                         const OrderOptions& order)
    : source_(source),
      share_(share),
      micro_steps_(order.global_batch / (share.world * share.micro_batch)),
      order_(with_samples(order, source.samples())) {
  DSTRAIN_CHECK(micro_steps_ * share.world * share.micro_batch == order.global_batch,
                "global batch {} is not a multiple of {} ranks times {}", order.global_batch,
                share.world, share.micro_batch);
}

std::int64_t BatchLoader::micro_steps_of(std::int64_t samples) const {
  const std::int64_t each = share_.world * share_.micro_batch;
  return (samples + each - 1) / each;
}

std::int64_t BatchLoader::micro_steps(std::int64_t step) const {
  return micro_steps_of(order_.batch_size(step));
}

double BatchLoader::epochs_after(std::int64_t steps) const {
  const std::int64_t in_epoch = order_.step_in_epoch(steps);
  const std::int64_t all = micro_steps_of(order_.epoch_samples());
  return static_cast<double>(order_.epoch_of(steps)) +
         static_cast<double>(in_epoch * micro_steps_) / static_cast<double>(all);
}

std::int64_t BatchLoader::fill(std::int64_t step,
                               std::int64_t micro_step,
                               const SampleRows& rows) const {
  check_sizes(share_.micro_batch, source_.sizes(), rows);
  DSTRAIN_CHECK(micro_step >= 0 && micro_step < micro_steps_, "micro step {} of {}", micro_step,
                micro_steps_);
  if (micro_step == 0) check_mapped_files();
  const std::int64_t first = (micro_step * share_.world + share_.rank) * share_.micro_batch;
  const std::int64_t size = order_.batch_size(step);
  for (std::int64_t i = 0; i < share_.micro_batch; ++i) {
    const SampleRows row = rows.row(i, source_.sizes());
    if (first + i < size) {
      source_.read(order_.sample(step, first + i), row);
    } else {
      fill_empty(row);
    }
  }
  return first;
}

EvaluationLoader::EvaluationLoader(const SampleSource& source,
                                   const LoaderShare& share,
                                   SampleRange range)
    : source_(source), share_(share), range_(within(source.samples(), range)) {}

std::int64_t EvaluationLoader::batches() const {
  const std::int64_t each = share_.world * share_.micro_batch;
  return (range_.count + each - 1) / each;
}

void EvaluationLoader::fill(std::int64_t batch, const SampleRows& rows) const {
  check_sizes(share_.micro_batch, source_.sizes(), rows);
  DSTRAIN_CHECK(batch >= 0 && batch < batches(), "batch {} of {}", batch, batches());
  const std::int64_t first = (batch * share_.world + share_.rank) * share_.micro_batch;
  for (std::int64_t i = 0; i < share_.micro_batch; ++i) {
    const SampleRows row = rows.row(i, source_.sizes());
    if (first + i < range_.count) {
      source_.read(range_.first + first + i, row);
    } else {
      fill_empty(row);
    }
  }
}

}  // namespace dstrain::data
