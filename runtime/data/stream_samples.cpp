#include "runtime/data/stream_samples.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/label.h"

namespace dstrain::data {
namespace {

std::int64_t count_samples(const TokenStream& stream,
                           std::int64_t block_size,
                           StreamSamples::Tail tail) {
  DSTRAIN_CHECK(block_size > 0, "block size {}", block_size);
  const bool pads = tail == StreamSamples::Tail::padded;
  const std::int64_t least = pads ? 2 : block_size + 1;
  if (stream.size() < least) {
    fail(ErrorCode::input,
         "{}: {} tokens are too few for one sample of block_size {}, which takes {}", stream.path(),
         stream.size(), block_size, least);
  }
  const std::int64_t labels = stream.size() - 1;
  return (labels + (pads ? block_size - 1 : 0)) / block_size;
}

}  // namespace

StreamSamples::StreamSamples(std::unique_ptr<TokenStream> stream,
                             std::int64_t block_size,
                             Tail tail)
    : SampleSource(stream->path(), block_size),
      stream_(std::move(stream)),
      samples_(count_samples(*stream_, block_size, tail)) {}

void StreamSamples::read(std::int64_t sample,
                         std::span<std::int32_t> tokens,
                         std::span<std::int32_t> labels) const {
  DSTRAIN_CHECK(sample >= 0 && sample < samples_, "sample {} of {}", sample, samples_);
  const std::int64_t begin = sample * block_size();
  const auto filled = static_cast<std::size_t>(std::min(block_size(), stream_->size() - 1 - begin));
  stream_->read(begin, tokens.first(filled));
  stream_->read(begin + 1, labels.first(filled));
  std::ranges::fill(tokens.subspan(filled), 0);
  std::ranges::fill(labels.subspan(filled), ignored_label);
}

}  // namespace dstrain::data
