#pragma once
#include <memory>
#include <vector>

#include "runtime/data/sample_source.h"
#include "runtime/data/token_stream.h"

namespace dstrain::data {

/// Sample k of a stream, or of a part of it, is tokens [kT, kT + T]. Neighbours share a token, the
/// last label of one and the first input of the next, so that each token but the first is a label
/// once.
class StreamSamples : public SampleSource {
 public:
  /// What to do with the tokens at the end that do not fill a sample.
  enum class Tail { dropped, padded };
  /// @p cuts the tokens at which the parts of a split begin, from 0 on, then the stream's size:
  /// samples are counted from each of them. Empty: there is one part. Throws Error{input} if the
  /// stream is too short for one sample, or does not know its documents but `sizes` needs them.
  StreamSamples(std::unique_ptr<TokenStream> stream,
                const SampleSizes& sizes,
                Tail tail,
                std::vector<std::int64_t> cuts = {});

  [[nodiscard]] std::int64_t bytes() const override { return stream_->bytes(); }
  [[nodiscard]] std::string digest() const override;
  [[nodiscard]] bool is_text() const override { return stream_->is_text(); }
  [[nodiscard]] std::int64_t samples() const override { return first_samples_.back(); }
  void read(std::int64_t sample, const SampleRows& row) const override;

 private:
  void fill_documents(std::int64_t begin, std::span<std::int32_t> starts) const;

  std::unique_ptr<TokenStream> stream_;
  std::vector<std::int64_t> cuts_;
  std::vector<std::int64_t> first_samples_;  ///< of each part, then the number of samples
};

}  // namespace dstrain::data
