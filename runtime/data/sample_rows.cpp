#include "runtime/data/sample_rows.h"

#include <algorithm>

#include "runtime/base/label.h"

namespace dstrain::data {
namespace {

template <class T>
std::span<T> part(std::span<T> values, std::int64_t first, std::int64_t count) {
  if (values.empty()) return {};
  return values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

SampleRows part(const SampleRows& rows,
                const SampleSizes& sizes,
                std::int64_t first,
                std::int64_t count) {
  const auto of_each = [first, count](auto values, std::int64_t numel) {
    return part(values, first * numel, count * numel);
  };
  return {of_each(rows.tokens, sizes.tokens),
          of_each(rows.labels, sizes.tokens),
          of_each(rows.source, sizes.source),
          of_each(rows.source_count, 1),
          of_each(rows.document_start, sizes.tokens),
          of_each(rows.features, sizes.tokens * sizes.features),
          of_each(rows.targets, sizes.tokens * sizes.targets)};
}

}  // namespace

SampleRows SampleRows::row(std::int64_t index, const SampleSizes& sizes) const {
  return part(*this, sizes, index, 1);
}

void fill_empty(const SampleRows& rows) {
  std::ranges::fill(rows.tokens, 0);
  std::ranges::fill(rows.labels, ignored_label);
  std::ranges::fill(rows.source, 0);
  std::ranges::fill(rows.source_count, 1);
  std::ranges::fill(rows.document_start, 0);
  std::ranges::fill(rows.features, 0.0F);
  std::ranges::fill(rows.targets, 0.0F);
}

SampleBuffer::SampleBuffer(std::int64_t samples, const SampleSizes& of)
    : sizes(of),
      tokens(static_cast<std::size_t>(samples * of.tokens)),
      labels(tokens.size()),
      source(static_cast<std::size_t>(samples * of.source)),
      source_count(of.source > 0 ? static_cast<std::size_t>(samples) : 0),
      document_start(of.documents ? tokens.size() : 0),
      features(tokens.size() * static_cast<std::size_t>(of.features)),
      targets(tokens.size() * static_cast<std::size_t>(of.targets)) {}

SampleRows SampleBuffer::rows(std::int64_t first, std::int64_t count) {
  return part(rows(), sizes, first, count);
}

}  // namespace dstrain::data
