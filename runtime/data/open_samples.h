#pragma once
#include <memory>
#include <string>

#include "runtime/data/sample_source.h"

namespace dstrain::data {

/// How a file becomes samples.
struct SampleOptions {
  std::int64_t block_size = 0;  ///< T
  std::int64_t vocabulary = 0;  ///< V of the model: every id must be below it
};

/// Opens training data of any kind, which its name tells: an indexed Megatron set (the prefix, or
/// either of its files), llm.c's `.bin`, else UTF-8 text. Throws Error{input} naming the file and
/// the place.
std::unique_ptr<SampleSource> open_samples(const std::string& path, const SampleOptions& options);

}  // namespace dstrain::data
