#include "runtime/data/record_samples.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/label.h"

namespace dstrain::data {

RecordStream::RecordStream(RecordFile file, TokenSet set, bool documents)
    : TokenStream(file.path), file_(std::move(file)), set_(std::move(set)), documents_(documents) {}

std::int64_t RecordStream::next_document(std::int64_t token) const {
  std::int64_t first = 0;  // first of the records that begin after the token
  for (std::int64_t end = set_.records(); first < end;) {
    const std::int64_t middle = (first + end) / 2;
    (set_.start(middle) > token ? end : first) = set_.start(middle) > token ? middle : middle + 1;
  }
  return set_.start(first);
}

RecordSamples::RecordSamples(RecordFile file,
                             TokenSet set,
                             const SampleSizes& sizes,
                             Packing packing)
    : SampleSource(file.path, sizes), file_(std::move(file)), set_(std::move(set)) {
  lay_rows(packing);
  if (records_.empty() && set_.kind() == RecordKind::completion && !counts_any()) {
    fail(ErrorCode::input, "{}: the completions of all {} records are empty; nothing to learn",
         path(), set_.records());
  }
  if (records_.empty()) {
    fail(ErrorCode::input, "{}: none of {} records has a label within block_size {}", path(),
         set_.records(), block_size());
  }
}

TokenRange RecordSamples::tokens_of(std::int64_t record) const {
  const std::int64_t begin = set_.start(record);
  return {begin, std::min(set_.start(record + 1), begin + block_size() + 1)};
}

bool RecordSamples::counts_any() const {
  for (std::int64_t t = 0; t < set_.ids().size(); ++t) {
    if (set_.counts(t)) return true;
  }
  return false;
}

bool RecordSamples::has_label(const TokenRange& range) const {
  for (std::int64_t t = range.begin + 1; t < range.end; ++t) {
    if (set_.counts(t)) return true;
  }
  return false;
}

void RecordSamples::lay_rows(Packing packing) {
  std::int64_t truncated = 0;
  std::int64_t left_in_row = 0;
  for (std::int64_t record = 0; record < set_.records(); ++record) {
    const TokenRange range = tokens_of(record);
    if (range.end < set_.start(record + 1)) ++truncated;
    if (!has_label(range)) continue;
    const std::int64_t size = range.end - range.begin;
    if (packing == Packing::one_per_row || size > left_in_row) {
      row_begins_.push_back(std::ssize(records_));
      left_in_row = block_size() + 1;
    }
    left_in_row -= size;
    records_.push_back(record);
  }
  row_begins_.push_back(std::ssize(records_));
  const std::int64_t left_out = set_.records() - std::ssize(records_);
  if (truncated > 0) {
    add_note(fmt::format("{}: {} of {} records are longer than block_size {} and lose their ends",
                         path(), truncated, set_.records(), block_size()));
  }
  if (left_out > 0) {
    add_note(fmt::format("{}: {} of {} records have no label that counts and are left out", path(),
                         left_out, set_.records()));
  }
}

/// Marks all tokens from `at` on as one document, until another one begins.
void RecordSamples::fill_document(const SampleRows& row, std::size_t at) {
  if (at >= row.document_start.size()) return;
  std::ranges::fill(row.document_start.subspan(at), static_cast<std::int32_t>(at));
}

std::span<const std::int64_t> RecordSamples::row_records(std::int64_t sample) const {
  DSTRAIN_CHECK(sample >= 0 && sample < samples(), "sample {} of {}", sample, samples());
  const auto row = static_cast<std::size_t>(sample);
  return std::span(records_).subspan(
      static_cast<std::size_t>(row_begins_[row]),
      static_cast<std::size_t>(row_begins_[row + 1] - row_begins_[row]));
}

void RecordSamples::read(std::int64_t sample, const SampleRows& row) const {
  std::vector<std::int32_t> words(static_cast<std::size_t>(block_size() + 1));
  std::ranges::fill(row.labels, ignored_label);
  std::size_t at = 0;
  for (const std::int64_t record : row_records(sample)) {
    const TokenRange range = tokens_of(record);
    const auto size = static_cast<std::size_t>(range.end - range.begin);
    set_.ids().read(range.begin, std::span(words).subspan(at, size), file_.vocabulary, path());
    for (std::size_t i = 1; i < size; ++i) {
      if (set_.counts(range.begin + static_cast<std::int64_t>(i))) {
        row.labels[at + i - 1] = words[at + i];
      }
    }
    fill_document(row, at);
    at += size;
  }
  fill_document(row, at);
  std::copy_n(words.begin(), row.tokens.size(), row.tokens.begin());
}

}  // namespace dstrain::data
