#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace dstrain::data {

/// The sizes of a sample.
struct SampleSizes {
  std::int64_t tokens = 0;    ///< T
  std::int64_t source = 0;    ///< S; 0: samples have no sources
  bool documents = false;     ///< samples have document starts
  std::int64_t features = 0;  ///< F: floats for each token
  std::int64_t targets = 0;   ///< K: likewise
};

/// The memory of n consecutive samples.
struct SampleRows {
  std::span<std::int32_t> tokens;          ///< (n, T)
  std::span<std::int32_t> labels;          ///< (n, T)
  std::span<std::int32_t> source{};        ///< (n, S); empty without sources
  std::span<std::int32_t> source_count{};  ///< (n): source tokens that are not padding; likewise
  /// (n, T): the position in the sample where the document of a token begins; empty without
  /// documents.
  std::span<std::int32_t> document_start{};
  std::span<float> features{};  ///< (n, T, F): see model::UnitCall, also for the next
  std::span<float> targets{};   ///< (n, T, K)
  /// Returns sample `index` of n.
  [[nodiscard]] SampleRows row(std::int64_t index, const SampleSizes& sizes) const;
};

/// Fills rows that have no sample: no label of theirs counts.
void fill_empty(const SampleRows& rows);

/// Owns the memory of samples.
struct SampleBuffer {
  SampleBuffer() = default;
  SampleBuffer(std::int64_t samples, const SampleSizes& of);
  /// Return all samples, or `count` of them from `first` on.
  [[nodiscard]] SampleRows rows() {
    return {tokens, labels, source, source_count, document_start, features, targets};
  }
  [[nodiscard]] SampleRows rows(std::int64_t first, std::int64_t count);

  SampleSizes sizes;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> source;
  std::vector<std::int32_t> source_count;
  std::vector<std::int32_t> document_start;
  std::vector<float> features;
  std::vector<float> targets;
};

}  // namespace dstrain::data
