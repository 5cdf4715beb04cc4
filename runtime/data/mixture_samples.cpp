#include "runtime/data/mixture_samples.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"

namespace dstrain::data {
namespace {

using Parts = std::vector<MixturePart>;

double weight_sum(const Parts& parts) {
  double sum = 0;
  for (const MixturePart& part : parts) sum += part.weight;
  return sum;
}

/// Returns "0.7 A 0.3 B", with weights that add up to 1.
template <class Name>
std::string listed(const Parts& parts, Name name_of) {
  const double sum = weight_sum(parts);
  std::vector<std::string> words;
  for (const MixturePart& part : parts) {
    if (sum > 0) words.push_back(fmt::format("{:.4g}", part.weight / sum));
    words.push_back(name_of(*part.source));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string paths(const Parts& parts) {
  return listed(parts, [](const SampleSource& source) { return source.path(); });
}

MixtureOrder make_order(const Parts& parts) {
  std::vector<std::int64_t> counts;
  std::vector<MixtureShare> shares;
  const double sum = weight_sum(parts);
  for (const MixturePart& part : parts) {
    DSTRAIN_CHECK(part.source->block_size() == parts.front().source->block_size(), "block size {}",
                  part.source->block_size());
    DSTRAIN_CHECK((part.weight > 0) == (sum > 0), "weight {}", part.weight);
    counts.push_back(part.range.count);
    shares.push_back({part.range.count, part.weight / sum});
  }
  return MixtureOrder(sum > 0 ? mixture_counts(shares) : counts);
}

/// The range of a whole source has no count; this sets it.
Parts with_counts(Parts parts) {
  for (auto& [source, range, weight] : parts) {
    range.count = std::min(range.count, source->samples() - range.first);
    DSTRAIN_CHECK(range.first >= 0 && range.count > 0, "samples {}+{}", range.first, range.count);
  }
  return parts;
}

}  // namespace

MixtureSamples::MixtureSamples(std::vector<MixturePart> parts)
    : SampleSource(paths(parts), parts.at(0).source->sizes()),
      parts_(with_counts(std::move(parts))),
      order_(make_order(parts_)) {
  for (const MixturePart& part : parts_) {
    if (part.source->packing()) set_packing(part.source->packing());
    for (const RecordsOf& records : part.source->records()) add_records(records);
  }
  add_notes();
}

void MixtureSamples::add_notes() {
  std::vector<std::string> times;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for (const std::string& note : parts_[i].source->notes()) add_note(note);
    const auto count = static_cast<double>(order_.counts()[i]);
    times.push_back(fmt::format("{} {:.2f} times", parts_[i].source->path(),
                                count / static_cast<double>(parts_[i].range.count)));
  }
  if (weight_sum(parts_) == 0) {
    add_note(fmt::format("a mixture of {} files: an epoch has each of their {} samples once",
                         parts_.size(), order_.samples()));
  } else {
    add_note(fmt::format("a mixture of {} files: an epoch of {} samples goes through {}",
                         parts_.size(), order_.samples(), fmt::join(times, ", ")));
  }
}

std::string MixtureSamples::name() const {
  return listed(parts_, [](const SampleSource& source) { return source.name(); });
}

std::string MixtureSamples::mixture() const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& [source, range, weight] = parts_[i];
    texts.push_back(fmt::format("{} of samples {} to {} in {} bytes", order_.counts()[i],
                                range.first, range.first + range.count, source->bytes()));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::int64_t MixtureSamples::bytes() const {
  std::int64_t sum = 0;
  for (const MixturePart& part : parts_) sum += part.source->bytes();
  return sum;
}

bool MixtureSamples::counts_all_labels() const {
  return std::ranges::all_of(
      parts_, [](const MixturePart& part) { return part.source->counts_all_labels(); });
}

std::string MixtureSamples::digest() const {
  std::vector<std::string> digests;
  for (const MixturePart& part : parts_) digests.push_back(part.source->digest());
  return fmt::format("{}", fmt::join(digests, ", "));
}

bool MixtureSamples::is_text() const {
  return std::ranges::any_of(parts_,
                             [](const MixturePart& part) { return part.source->is_text(); });
}

void MixtureSamples::read(std::int64_t sample, const SampleRows& row) const {
  const MixtureOrder::PartSample found = order_(sample);
  const auto& [source, range, weight] = parts_[found.part];
  source->read(range.first + found.sample % range.count, row);
}

}  // namespace dstrain::data
