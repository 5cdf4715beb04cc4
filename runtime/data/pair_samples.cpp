#include "runtime/data/pair_samples.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/label.h"
#include "runtime/data/record_reader.h"

namespace dstrain::data {
namespace {

/// Throws Error{input} for an id outside of the model's vocabulary.
void check_ids(const std::vector<std::int32_t>& ids,
               std::int64_t vocabulary,
               const std::string& place) {
  const auto unknown = std::ranges::find_if(ids, [&](std::int32_t id) { return id >= vocabulary; });
  if (unknown == ids.end()) return;
  fail(ErrorCode::input, "{}: token {} is not below the model's vocabulary of {}", place, *unknown,
       vocabulary);
}

bool has_label(const std::vector<std::int32_t>& labels) {
  return std::ranges::any_of(labels, [](std::int32_t label) { return label != ignored_label; });
}

/// Returns whether an end was cut off.
bool shorten(std::vector<std::int32_t>& ids, std::int64_t most) {
  if (std::ssize(ids) <= most) return false;
  ids.resize(static_cast<std::size_t>(most));
  return true;
}

}  // namespace

PairSamples::PairSamples(const File& file, const PairOptions& options)
    : SampleSource(file.path, options.sizes),
      bytes_(std::ssize(file.text)),
      digest_(checksum_of(std::as_bytes(std::span(file.text)))),
      options_(options) {
  RecordReader reader(file.text, path());
  std::vector<TokenPair> pairs;
  for (auto record = reader.next(); record; record = reader.next()) {
    const std::string place = place_of(*record, path());
    pairs.push_back(parse_pair(*record, path()));
    check_ids(pairs.back().source, options_.vocabulary, place + ": input_ids");
    check_ids(pairs.back().labels, options_.vocabulary, place + ": labels");
  }
  if (pairs.empty()) fail(ErrorCode::input, "{}: holds no pair", path());
  cut(std::move(pairs));
}

void PairSamples::cut(std::vector<TokenPair> pairs) {
  const std::int64_t count = std::ssize(pairs);
  std::int64_t sources = 0;
  std::int64_t targets = 0;
  for (TokenPair& pair : pairs) {
    sources += shorten(pair.source, sizes().source) ? 1 : 0;
    targets += shorten(pair.labels, sizes().tokens) ? 1 : 0;
    if (has_label(pair.labels)) pairs_.push_back(std::move(pair));
  }
  if (pairs_.empty()) {
    fail(ErrorCode::input, "{}: none of {} pairs has a label within max_target_length {}", path(),
         count, sizes().tokens);
  }
  if (sources > 0) {
    add_note(
        fmt::format("{}: {} of {} sources are longer than max_source_length {} and lose their "
                    "ends",
                    path(), sources, count, sizes().source));
  }
  if (targets > 0) {
    add_note(
        fmt::format("{}: {} of {} targets are longer than max_target_length {} and lose their "
                    "ends",
                    path(), targets, count, sizes().tokens));
  }
  if (const std::int64_t left_out = count - std::ssize(pairs_); left_out > 0) {
    add_note(fmt::format("{}: {} of {} pairs have no label that counts and are left out", path(),
                         left_out, count));
  }
}

void PairSamples::read(std::int64_t sample, const SampleRows& row) const {
  DSTRAIN_CHECK(sample >= 0 && sample < samples(), "sample {} of {}", sample, samples());
  const TokenPair& pair = pairs_[static_cast<std::size_t>(sample)];
  std::ranges::fill(row.source, options_.tokens.padding);
  std::ranges::copy(pair.source, row.source.begin());
  row.source_count[0] = static_cast<std::int32_t>(pair.source.size());
  std::ranges::fill(row.labels, ignored_label);
  std::ranges::copy(pair.labels, row.labels.begin());
  row.tokens[0] = options_.tokens.start;
  std::ranges::transform(
      row.labels.first(row.labels.size() - 1), row.tokens.begin() + 1,
      [&](std::int32_t label) { return label == ignored_label ? options_.tokens.padding : label; });
}

}  // namespace dstrain::data
