#include "runtime/data/sample_rows.h"

#include <algorithm>

#include "runtime/base/label.h"

namespace dstrain::data {
namespace {

std::span<std::int32_t> part(std::span<std::int32_t> values,
                             std::int64_t first,
                             std::int64_t count) {
  if (values.empty()) return {};
  return values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

SampleRows part(const SampleRows& rows,
                const SampleSizes& sizes,
                std::int64_t first,
                std::int64_t count) {
  return {part(rows.tokens, first * sizes.tokens, count * sizes.tokens),
          part(rows.labels, first * sizes.tokens, count * sizes.tokens),
          part(rows.source, first * sizes.source, count * sizes.source),
          part(rows.source_count, first, count),
          part(rows.document_start, first * sizes.tokens, count * sizes.tokens)};
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
}

SampleBuffer::SampleBuffer(std::int64_t samples, const SampleSizes& of)
    : sizes(of),
      tokens(static_cast<std::size_t>(samples * of.tokens)),
      labels(tokens.size()),
      source(static_cast<std::size_t>(samples * of.source)),
      source_count(of.source > 0 ? static_cast<std::size_t>(samples) : 0),
      document_start(of.documents ? tokens.size() : 0) {}

SampleRows SampleBuffer::rows(std::int64_t first, std::int64_t count) {
  return part(rows(), sizes, first, count);
}

}  // namespace dstrain::data
