
#include "runtime/config/resolve.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::contains;
using dstrain::test::message_of;

namespace {

TrainSettings aio_settings(const std::string& aio) {
  const DsConfig config = DsConfig::parse(R"({"train_batch_size": 2, "aio": )" + aio + "}", "c");
  return resolve_config(read_train_flags({}), config, {.world_size = 2}).settings;
}

std::string aio_error(const std::string& aio) {
  return message_of([&] { aio_settings(aio); });
}

}  // namespace

TEST_CASE("Resolve: the aio section has DeepSpeed's defaults", "[config][aio]") {
  const TrainSettings settings = aio_settings("{}");
  CHECK(settings.aio.block_size == 1 << 20);
  CHECK(settings.aio.queue_depth == 8);
  CHECK(settings.aio.threads == 1);
  CHECK_FALSE(settings.aio.single_submit);
  CHECK(settings.aio.overlap_events);
  CHECK(settings.warnings.empty());
}

TEST_CASE("Resolve: every key of the aio section is read", "[config][aio]") {
  const TrainSettings settings = aio_settings(R"({"block_size": 262144, "queue_depth": 32,
      "intra_op_parallelism": 4, "single_submit": true, "overlap_events": false,
      "use_gds": false})");
  CHECK(settings.aio.block_size == 262144);
  CHECK(settings.aio.queue_depth == 32);
  CHECK(settings.aio.threads == 4);
  CHECK(settings.aio.single_submit);
  CHECK_FALSE(settings.aio.overlap_events);
  CHECK(settings.warnings.empty());
}

TEST_CASE("Resolve: old names of intra_op_parallelism get one warning", "[config][aio]") {
  const std::string name = GENERATE("thread_count", "num_threads");
  const TrainSettings settings = aio_settings("{\"" + name + "\": 3}");
  CHECK(settings.aio.threads == 3);
  REQUIRE(settings.warnings.size() == 1);
  CHECK(contains(settings.warnings[0],
                 "aio." + name + ": read as intra_op_parallelism, the name that DeepSpeed reads"));
}

TEST_CASE("Resolve: invalid values in the aio section are refused", "[config][aio]") {
  CHECK(contains(aio_error(R"({"block_size": 5000})"),
                 "aio.block_size: must be a multiple of 4096, got 5000"));
  CHECK(contains(aio_error(R"({"block_size": 512})"), "aio.block_size: must be"));
  CHECK(contains(aio_error(R"({"queue_depth": 0})"), "aio.queue_depth: must be"));
  CHECK(contains(aio_error(R"({"use_gds": true})"),
                 "aio.use_gds: true: GPUDirect Storage (it needs CUDA) is not implemented"));
  CHECK(contains(aio_error(R"({"thread_count": 1, "intra_op_parallelism": 1})"),
                 "is another name of"));
}
