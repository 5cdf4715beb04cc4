#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace dstrain::data {

/// What a sample takes.
struct SampleSizes {
  std::int64_t tokens = 0;  ///< T
  std::int64_t source = 0;  ///< S; 0: samples have no sources
  bool documents = false;   ///< it is told where documents begin
};

/// Room for n samples that follow one another.
struct SampleRows {
  std::span<std::int32_t> tokens;          ///< (n, T)
  std::span<std::int32_t> labels;          ///< (n, T)
  std::span<std::int32_t> source{};        ///< (n, S); empty without sources
  std::span<std::int32_t> source_count{};  ///< (n): how many of them are no padding; likewise
  /// (n, T): where in its sample the document of a token begins; empty unless that is told.
  std::span<std::int32_t> document_start{};
  /// Sample `index` of n.
  [[nodiscard]] SampleRows row(std::int64_t index, const SampleSizes& sizes) const;
};

/// Its own.
struct SampleBuffer {
  SampleBuffer() = default;
  SampleBuffer(std::int64_t samples, const SampleSizes& of);
  /// All samples; `count` of them from `first` on.
  [[nodiscard]] SampleRows rows() { return {tokens, labels, source, source_count, document_start}; }
  [[nodiscard]] SampleRows rows(std::int64_t first, std::int64_t count);

  SampleSizes sizes;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> source;
  std::vector<std::int32_t> source_count;
  std::vector<std::int32_t> document_start;
};

}  // namespace dstrain::data
