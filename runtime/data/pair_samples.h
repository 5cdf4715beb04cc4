#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/label.h"
#include "runtime/base/pair_tokens.h"
#include "runtime/data/content_digest.h"
#include "runtime/data/json_record.h"
#include "runtime/data/sample_source.h"

namespace dstrain::data {

/// Options for making samples of pairs.
struct PairOptions {
  SampleSizes sizes;
  std::int64_t vocabulary = 0;  ///< every id is below it
  PairTokens tokens;
};

/// JSON lines of pairs for an encoder-decoder: {"input_ids": [...], "labels": [...]}, token ids or,
/// for labels that are not learned, -100. Sample k is pair k of those with a label that counts. The
/// decoder's tokens are `start`, then the labels, shifted by one. A source or target that is too
/// long loses its end. A note reports what was left out or cut.
class PairSamples : public SampleSource {
 public:
  struct File {
    std::string path;
    std::string_view text;
  };
  /// Throws Error{input} naming file and line.
  PairSamples(const File& file, const PairOptions& options);

  [[nodiscard]] std::int64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::string digest() const override { return digest_text(digest_); }
  [[nodiscard]] bool is_text() const override { return false; }
  [[nodiscard]] bool counts_all_labels() const override { return false; }
  [[nodiscard]] std::int64_t samples() const override { return std::ssize(pairs_); }
  void read(std::int64_t sample, const SampleRows& row) const override;

 private:
  void cut(std::vector<TokenPair> pairs);

  std::int64_t bytes_;
  Checksum digest_;
  PairOptions options_;
  std::vector<TokenPair> pairs_;
};

}  // namespace dstrain::data
