// The manifest of token shards: what is read is written again, and read the same.
#include "runtime/base/error.h"
#include "runtime/data/shard_manifest.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    const data::ShardManifest manifest =
        data::parse_shard_manifest(fuzz::as_text(bytes, size), "input");
    const data::ShardManifest again = data::parse_shard_manifest(data::to_text(manifest), "input");
    DSTRAIN_CHECK(again.making == manifest.making, "another making");
    DSTRAIN_CHECK(again.shards.size() == manifest.shards.size(), "other shards");
  });
}
