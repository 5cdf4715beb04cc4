#include "runtime/data/open_samples.h"

#include "runtime/data/megatron_set.h"
#include "runtime/data/stream_samples.h"
#include "runtime/data/token_file.h"

namespace dstrain::data {
namespace {

std::unique_ptr<TokenStream> open_stream(const std::string& path, std::int64_t vocabulary) {
  if (const auto prefix = find_megatron_prefix(path)) {
    return std::make_unique<MegatronSet>(*prefix, vocabulary);
  }
  return std::make_unique<TokenFile>(path, vocabulary);
}

}  // namespace

std::unique_ptr<SampleSource> open_samples(const std::string& path, const SampleOptions& options) {
  return std::make_unique<StreamSamples>(open_stream(path, options.vocabulary), options.block_size,
                                         StreamSamples::Tail::dropped);
}

}  // namespace dstrain::data
