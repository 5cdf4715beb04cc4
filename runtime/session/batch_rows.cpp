#include "runtime/session/batch_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>

namespace dstrain::session {
namespace {

/// The first of some ids that is not in [0, most); null: all are.
const std::int32_t* first_outside(std::span<const std::int32_t> ids, std::int64_t most) {
  const auto found =
      std::ranges::find_if(ids, [most](std::int32_t id) { return id < 0 || id >= most; });
  return found == ids.end() ? nullptr : &*found;
}

/// Row `index` of some rows of that length.
template <class T>
std::span<const T> row_of(std::span<const T> rows, std::int64_t index, std::int64_t length) {
  return rows.subspan(static_cast<std::size_t>(index * length), static_cast<std::size_t>(length));
}

/// Copies row `index` to the beginning of `to`.
template <class T>
void copy_row(std::span<const T> rows, std::int64_t index, std::int64_t length, std::span<T> to) {
  if (!rows.empty()) std::ranges::copy(row_of(rows, index, length), to.begin());
}

}  // namespace

std::string BatchRows::problem(const Batch& batch, bool wants_loss) const {
  for (const auto& [name, value] :
       {std::pair("sequences", batch.sequences), std::pair("length", batch.length)}) {
    if (value < 0) return fmt::format("{} is {}; it cannot be negative", name, value);
  }
  if (batch.length > limits_.sizes.tokens) {
    return fmt::format("length {}: this engine takes sequences of up to {} (InitializeOptions)",
                       batch.length, limits_.sizes.tokens);
  }
  constexpr std::int64_t sequences_max = std::numeric_limits<std::int32_t>::max();
  if (batch.sequences > sequences_max) return fmt::format("sequences is {}", batch.sequences);
  const std::int64_t numel = batch.sequences * batch.length;
  if (std::ssize(batch.tokens) != (limits_.vocabulary > 0 ? numel : 0)) {
    return fmt::format("{} tokens for {} sequences of length {}{}", batch.tokens.size(),
                       batch.sequences, batch.length,
                       limits_.vocabulary > 0 ? "" : ": the model reads none");
  }
  const data::SampleSizes& sizes = limits_.sizes;
  const bool no_targets = !wants_loss && batch.targets.empty();
  for (const auto& [name, given, each] :
       {std::tuple("features", batch.features.size(), sizes.features),
        std::tuple("targets", batch.targets.size(), no_targets ? 0 : sizes.targets)}) {
    if (static_cast<std::int64_t>(given) == numel * each) continue;
    return fmt::format("{} {} for {} positions, of which each has {}", given, name, numel, each);
  }
  if (sizes.source == 0 && (!batch.source.empty() || !batch.source_counts.empty())) {
    return "the model has no encoder, and the batch has a source";
  }
  for (const std::span<const std::int32_t> ids : {batch.tokens, batch.source}) {
    if (const auto* const bad = first_outside(ids, limits_.vocabulary)) {
      return fmt::format("token {} is not one of the vocabulary of {}", *bad, limits_.vocabulary);
    }
  }
  std::string problem = label_problem(batch, wants_loss);
  if (problem.empty()) problem = float_problem(batch);
  return problem.empty() ? source_problem(batch) : problem;
}

/// A number that is none would spoil every gradient of the step.
std::string BatchRows::float_problem(const Batch& batch) const {
  const auto is_ignored = [&](std::int64_t position) {
    return !batch.labels.empty() &&
           batch.labels[static_cast<std::size_t>(position)] == ignored_label;
  };
  const auto problem = [&](const char* name, std::span<const float> values, std::int64_t each,
                           bool where_ignored) -> std::string {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) continue;
      const std::int64_t position = static_cast<std::int64_t>(i) / each;
      if (!where_ignored && is_ignored(position)) continue;
      return fmt::format("a {} of sequence {}, position {}, is {}", name, position / batch.length,
                         position % batch.length, values[i]);
    }
    return "";
  };
  std::string features = problem("feature", batch.features, limits_.sizes.features, true);
  if (!features.empty()) return features;
  return problem("target", batch.targets, limits_.sizes.targets, false);
}

std::string BatchRows::label_problem(const Batch& batch, bool wants_loss) const {
  const std::int64_t numel = batch.sequences * batch.length;
  if (wants_loss && batch.labels.empty() && limits_.classes > 0 && numel > 0) {
    return fmt::format("no labels for {} positions: the loss needs one of {} classes for each",
                       numel, limits_.classes);
  }
  if (!batch.labels.empty() && std::ssize(batch.labels) != numel) {
    return fmt::format("{} labels for {} positions", batch.labels.size(), numel);
  }
  const std::int64_t classes =
      limits_.classes > 0 ? limits_.classes : std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t label : batch.labels) {
    if (label == ignored_label || (label >= 0 && label < classes)) continue;
    if (limits_.classes == 0) {
      return fmt::format("label {}: a position that counts has 0 or more, others {}", label,
                         ignored_label);
    }
    return fmt::format("label {} is neither {} nor one of {} classes", label, ignored_label,
                       classes);
  }
  return "";
}

std::int64_t BatchRows::counted(const Batch& batch) const {
  if (all_count(batch)) return batch.sequences * batch.length;
  return std::ranges::count_if(batch.labels,
                               [](std::int32_t label) { return label != ignored_label; });
}

std::string BatchRows::source_problem(const Batch& batch) const {
  if (limits_.sizes.source == 0) return "";
  if (batch.source_length > limits_.sizes.source ||
      std::ssize(batch.source) != batch.sequences * batch.source_length) {
    return fmt::format(
        "{} source tokens for {} sequences of source_length {}, of which the engine takes up to {}",
        batch.source.size(), batch.sequences, batch.source_length, limits_.sizes.source);
  }
  const bool counts_fit = std::ranges::all_of(batch.source_counts, [&](std::int32_t count) {
    return count >= 1 && count <= batch.source_length;
  });
  const auto counts = std::ssize(batch.source_counts);
  if (counts_fit && (counts == 0 || counts == batch.sequences)) return "";
  return "source_counts are not one number from 1 to source_length for each sequence";
}

data::SampleRows BatchRows::take(const Batch& batch, std::int64_t first, std::int64_t count) {
  const data::SampleRows rows = buffer_.rows(0, count);
  data::fill_empty(rows);
  for (std::int64_t i = 0; i < std::min(count, batch.sequences - first); ++i) {
    const data::SampleRows row = rows.row(i, buffer_.sizes);
    copy_row(batch.tokens, first + i, batch.length, row.tokens);
    copy_row(batch.labels, first + i, batch.length, row.labels);
    if (all_count(batch)) std::ranges::fill_n(row.labels.begin(), batch.length, 0);
    copy_row(batch.features, first + i, batch.length * buffer_.sizes.features, row.features);
    copy_row(batch.targets, first + i, batch.length * buffer_.sizes.targets, row.targets);
    if (batch.source.empty()) continue;
    copy_row(batch.source, first + i, batch.source_length, row.source);
    row.source_count.front() = batch.source_counts.empty()
                                   ? static_cast<std::int32_t>(batch.source_length)
                                   : batch.source_counts[static_cast<std::size_t>(first + i)];
  }
  return rows;
}

}  // namespace dstrain::session
