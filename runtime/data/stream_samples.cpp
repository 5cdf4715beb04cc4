#include "runtime/data/stream_samples.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/label.h"
#include "runtime/data/content_digest.h"

namespace dstrain::data {
namespace {

using Tail = StreamSamples::Tail;

std::int64_t count_samples(std::int64_t tokens, std::int64_t block_size, Tail tail) {
  const std::int64_t labels = std::max<std::int64_t>(tokens - 1, 0);
  return (labels + (tail == Tail::padded ? block_size - 1 : 0)) / block_size;
}

/// Returns `cuts`, or those of one part if there are none.
std::vector<std::int64_t> whole(const TokenStream& stream, std::vector<std::int64_t> cuts) {
  if (cuts.empty()) cuts = {0, stream.size()};
  DSTRAIN_CHECK(cuts.front() == 0 && cuts.back() == stream.size() && std::ranges::is_sorted(cuts),
                "cuts from {} to {}", cuts.front(), cuts.back());
  return cuts;
}

std::vector<std::int64_t> count_parts(const std::vector<std::int64_t>& cuts,
                                      std::int64_t block_size,
                                      Tail tail) {
  std::vector<std::int64_t> first{0};
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
    first.push_back(first.back() + count_samples(cuts[part + 1] - cuts[part], block_size, tail));
  }
  return first;
}

}  // namespace

StreamSamples::StreamSamples(std::unique_ptr<TokenStream> stream,
                             const SampleSizes& sizes,
                             Tail tail,
                             std::vector<std::int64_t> cuts)
    : SampleSource(stream->path(), sizes),
      stream_(std::move(stream)),
      cuts_(whole(*stream_, std::move(cuts))),
      first_samples_(count_parts(cuts_, sizes.tokens, tail)) {
  DSTRAIN_CHECK(sizes.tokens > 0, "block size {}", sizes.tokens);
  if (sizes.documents && !stream_->knows_documents()) {
    fail(ErrorCode::input,
         "{}: --reset_attention_mask: this file format does not record where documents begin; use "
         "JSON lines or a Megatron indexed set",
         path());
  }
  if (first_samples_.back() == 0) {
    fail(ErrorCode::input,
         "{}: {} tokens are too few for one sample of block_size {}, which takes {}", path(),
         stream_->size(), sizes.tokens, tail == Tail::padded ? 2 : sizes.tokens + 1);
  }
  constexpr std::size_t parts_of_split = 3;
  if (cuts_.size() != parts_of_split + 1) return;
  const std::int64_t held_out = first_samples_[1];
  set_split_by_documents({{0, held_out}, {held_out, first_samples_[2] - held_out}});
}

std::string StreamSamples::digest() const {
  return digest_text(stream_->digest(sampled_blocks));
}

void StreamSamples::fill_documents(std::int64_t begin, std::span<std::int32_t> starts) const {
  std::size_t at = 0;
  while (at < starts.size()) {
    const std::int64_t next = stream_->next_document(begin + static_cast<std::int64_t>(at)) - begin;
    const std::size_t end = std::min(starts.size(), static_cast<std::size_t>(next));
    std::ranges::fill(starts.subspan(at, end - at), static_cast<std::int32_t>(at));
    at = end;
  }
}

void StreamSamples::read(std::int64_t sample, const SampleRows& row) const {
  DSTRAIN_CHECK(sample >= 0 && sample < samples(), "sample {} of {}", sample, samples());
  const auto after = std::ranges::upper_bound(first_samples_, sample);
  const auto part = static_cast<std::size_t>(after - first_samples_.begin()) - 1;
  const std::int64_t begin = cuts_[part] + (sample - first_samples_[part]) * block_size();
  const std::int64_t labels_left = cuts_[part + 1] - 1 - begin;
  const auto filled = static_cast<std::size_t>(std::min(block_size(), labels_left));
  stream_->read(begin, row.tokens.first(filled));
  stream_->read(begin + 1, row.labels.first(filled));
  std::ranges::fill(row.tokens.subspan(filled), 0);
  std::ranges::fill(row.labels.subspan(filled), ignored_label);
  if (row.document_start.empty()) return;
  fill_documents(begin, row.document_start.first(filled));
  std::ranges::fill(row.document_start.subspan(filled), static_cast<std::int32_t>(filled));
}

}  // namespace dstrain::data
