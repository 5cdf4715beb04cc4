#include <fmt/format.h>

#include "runtime/config/resolver.h"

namespace dstrain::config {

void Resolver::resolve_aio() {
  AioSettings& aio = result_.settings.aio;
  const std::string in = "aio.";
  aio.block_size = pick(in + "block_size", -1, aio.block_size);
  aio.queue_depth = static_cast<int>(pick(in + "queue_depth", -1, aio.queue_depth));
  aio.threads = static_cast<int>(pick(in + "intra_op_parallelism", -1, aio.threads));
  aio.single_submit = pick(in + "single_submit", aio.single_submit);
  aio.overlap_events = pick(in + "overlap_events", aio.overlap_events);
  constexpr Bytes page = 4096;
  if (aio.block_size % page != 0) {
    problems_.add(config_.position(in + "block_size"), in + "block_size",
                  fmt::format("must be a multiple of {}, got {}", page, aio.block_size));
  }
}

}  // namespace dstrain::config
