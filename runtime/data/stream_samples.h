#pragma once
#include <memory>
#include <vector>

#include "runtime/data/sample_source.h"
#include "runtime/data/token_stream.h"

namespace dstrain::data {

/// Sample k of a stream, or of a part of it, is tokens [kT, kT + T]: neighbours share a token, the
/// last label of one and the first input of the next, so that each token but the first is a label
/// once.
class StreamSamples : public SampleSource {
 public:
  /// What becomes of the tokens at the end that are too few for a sample.
  enum class Tail { dropped, padded };
  /// @p cuts the tokens at which the parts of a split begin, from 0 on, and at last the stream's
  /// size: samples are counted from each of them anew. Empty: there is one part. Throws
  /// Error{input} when the stream is too short for one sample, or does not know documents that are
  /// to be told.
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
  std::vector<std::int64_t> first_samples_;  ///< of each part, and at last the number of samples
};

}  // namespace dstrain::data
