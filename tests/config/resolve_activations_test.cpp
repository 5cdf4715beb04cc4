
#include "runtime/config/resolve.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::message_of;

namespace {

TrainSettings activation_settings(const std::string& section,
                                  const std::vector<std::string>& flags) {
  const DsConfig config = DsConfig::parse(
      R"({"activation_checkpointing": )" + section + R"(, "train_batch_size": 2})", "ds.json");
  return resolve_config(read_train_flags(flags), config, {}).settings;
}

}  // namespace

TEST_CASE("Resolve: checkpointed activations on the host", "[config][resolve]") {
  const std::vector<std::string> flags{"--gradient_checkpointing"};
  CHECK_FALSE(activation_settings("{}", flags).cpu_checkpointing);
  CHECK_FALSE(activation_settings(R"({"cpu_checkpointing": false})", {}).cpu_checkpointing);
  const TrainSettings settings = activation_settings(R"({"cpu_checkpointing": true})", flags);
  CHECK(settings.cpu_checkpointing);
  CHECK(settings.gradient_checkpointing);
}

TEST_CASE("Resolve: without checkpointing no activations go to the host", "[config][resolve]") {
  CHECK(message_of([] { activation_settings(R"({"cpu_checkpointing": true})", {}); }) ==
        "ds.json:1:52: activation_checkpointing.cpu_checkpointing: needs --gradient_checkpointing, "
        "whose activations it moves");
}
