#pragma once
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <dstrain/dstrain.h>

/// The bytes of a text file as samples: sample k has the tokens [kT, kT + T), and as labels the
/// tokens that follow them.
class ByteSamples {
 public:
  ByteSamples(const std::string& file, std::int64_t length) : length_(length) {
    std::ifstream in(file, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(in), {});
    if (samples() < 1) throw std::runtime_error(file + ": has fewer bytes than one sample");
  }

  /// The share of a rank in the next step's global batch. `dstrain train --no_shuffle` takes the
  /// same samples in the same places.
  dstrain::Batch next(const dstrain::Rank& rank, const dstrain::Engine& engine) {
    return of_step(engine.steps(), rank, engine);
  }
  /// The same of the first step.
  dstrain::Batch first(const dstrain::Rank& rank, const dstrain::Engine& engine) {
    return of_step(0, rank, engine);
  }

 private:
  dstrain::Batch of_step(std::int64_t number,
                         const dstrain::Rank& rank,
                         const dstrain::Engine& engine) {
    const std::int64_t micro = engine.micro_batch();
    const std::int64_t world = rank.world_size();
    const std::int64_t first = number * engine.accumulation_steps() * world * micro;
    tokens_.clear();
    labels_.clear();
    for (std::int64_t step = 0; step < engine.accumulation_steps(); ++step) {
      for (std::int64_t i = 0; i < micro; ++i) {
        add((first + (step * world + rank.rank()) * micro + i) % samples());
      }
    }
    return {.tokens = tokens_,
            .labels = labels_,
            .sequences = engine.accumulation_steps() * micro,
            .length = length_};
  }
  [[nodiscard]] std::int64_t samples() const {
    return (static_cast<std::int64_t>(text_.size()) - 1) / length_;
  }
  void add(std::int64_t sample) {
    const char* const begin = text_.data() + sample * length_;
    for (std::int64_t i = 0; i < length_; ++i) {
      tokens_.push_back(static_cast<unsigned char>(begin[i]));
      labels_.push_back(static_cast<unsigned char>(begin[i + 1]));
    }
  }

  std::int64_t length_;
  std::string text_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> labels_;
};
