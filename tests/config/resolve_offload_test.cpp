
#include "runtime/config/resolve.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::contains;
using dstrain::test::message_of;
using Device = OffloadSettings::Device;

namespace {

TrainSettings offload_settings(const std::string& section, const std::string& rest = "") {
  const DsConfig config = DsConfig::parse(
      R"({"zero_optimization": )" + section + R"(, "train_batch_size": 2)" + rest + "}", "ds.json");
  return resolve_config(read_train_flags({}), config, {.world_size = 2, .hidden = 64}).settings;
}

ZeroSettings zero_of(const std::string& section) {
  return offload_settings(section).zero;
}

std::string offload_error(const std::string& section) {
  return message_of([&] { zero_of(section); });
}

}  // namespace

TEST_CASE("Resolve: offload to the host", "[config][offload]") {
  const ZeroSettings both = zero_of(
      R"({"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.25, "pin_memory": false},
          "offload_param": {"device": "cpu"}})");
  CHECK(both.offload_optimizer.device == Device::cpu);
  CHECK(both.offload_optimizer.ratio == 0.25);
  CHECK_FALSE(both.offload_optimizer.pin_memory);
  CHECK(both.offload_optimizer.pin_memory_given);
  CHECK(both.offload_param.device == Device::cpu);
  CHECK(both.offload_param.pin_memory);
  CHECK_FALSE(both.offload_param.pin_memory_given);
}

TEST_CASE("Resolve: offload to a disk", "[config][offload]") {
  const ZeroSettings zero = zero_of(
      R"({"stage": 3, "sub_group_size": 1e6,
          "offload_optimizer": {"device": "nvme", "nvme_path": "/a", "pipeline_read": false},
          "offload_param": {"device": "nvme", "nvme_path": "/b", "buffer_count": 3,
                            "max_in_cpu": 0}})");
  CHECK(zero.sub_group_numel == 1'000'000);
  CHECK(zero.offload_optimizer.device == Device::nvme);
  CHECK(zero.offload_optimizer.nvme_path == "/a");
  CHECK(zero.offload_optimizer.buffer_count == 4);
  CHECK_FALSE(zero.offload_optimizer.pipeline_read);
  CHECK(zero.offload_optimizer.pipeline_write);
  CHECK(zero.offload_param.nvme_path == "/b");
  CHECK(zero.offload_param.buffer_count == 3);
  CHECK(zero.offload_param.buffer_numel == 100'000'000);
  CHECK(zero.offload_param.in_cpu_numel == 0);
}

TEST_CASE("Resolve: offload keys without a device get a warning", "[config][offload]") {
  const auto [section, warning] = GENERATE(table<std::string, std::string>(
      {{R"({"stage": 3, "offload_optimizer": {"nvme_path": "/a", "pin_memory": true}})",
        "offload_optimizer.nvme_path: has no effect without \"device\""},
       {R"({"stage": 3, "offload_param": {"device": "none", "buffer_count": 3}})",
        "offload_param.buffer_count: has no effect: the device is none"}}));
  const std::vector<std::string> warnings = offload_settings(section).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings.front(), warning));
}

TEST_CASE("Resolve: a section for offload may be null", "[config][offload]") {
  const TrainSettings settings =
      offload_settings(R"({"stage": 3, "offload_optimizer": null, "offload_param": null})");
  CHECK(settings.zero.offload_optimizer.device == Device::none);
  CHECK(settings.warnings.empty());
}

TEST_CASE("Resolve: SuperOffload is on by default without clipping", "[config][offload]") {
  const auto updates_early = [](const std::string& key, const std::string& clipping) {
    const std::string section =
        R"({"stage": 3, "offload_optimizer": {"device": "nvme",)" + key + R"("nvme_path": "/a"}})";
    return offload_settings(section, R"(, "gradient_clipping": )" + clipping)
        .zero.offload_optimizer.updates_early;
  };
  CHECK(updates_early("", "0"));
  CHECK_FALSE(updates_early("", "1.0"));
  CHECK_FALSE(updates_early(R"("super_offload": false,)", "0"));
  CHECK(updates_early(R"("super_offload": true,)", "1.0"));
}

TEST_CASE("Resolve: SuperOffload of states in memory gains nothing", "[config][offload]") {
  const TrainSettings settings = offload_settings(
      R"({"stage": 2, "offload_optimizer": {"device": "cpu", "super_offload": true}})");
  CHECK_FALSE(settings.zero.offload_optimizer.updates_early);
  REQUIRE(settings.warnings.size() == 1);
  CHECK(contains(settings.warnings.front(), "super_offload: has no effect: only states on a disk"));
}

TEST_CASE("Resolve: nothing is offloaded unless a device is named", "[config][offload]") {
  for (const char* section :
       {"{}", R"({"stage": 3, "offload_optimizer": {}, "offload_param": {}})",
        R"({"offload_optimizer": {"device": "none"}})", R"({"cpu_offload": false})"}) {
    CAPTURE(section);
    const ZeroSettings zero = zero_of(section);
    CHECK(zero.offload_optimizer.device == Device::none);
    CHECK(zero.offload_param.device == Device::none);
  }
}

TEST_CASE("Resolve: the keys that offload sections replace", "[config][offload]") {
  const ZeroSettings zero = zero_of(
      R"({"stage": 3, "cpu_offload": true, "cpu_offload_param": true,
          "cpu_offload_use_pin_memory": false})");
  CHECK(zero.offload_optimizer.device == Device::cpu);
  CHECK_FALSE(zero.offload_optimizer.pin_memory);
  CHECK(zero.offload_param.device == Device::cpu);
}

TEST_CASE("Resolve: parameters are offloaded at stage 3 alone", "[config][offload]") {
  const auto [section, key] = GENERATE(table<std::string, std::string>(
      {{R"({"stage": 2, "offload_param": {"device": "cpu", "pin_memory": true}})",
        "offload_param.device"},
       {R"({"offload_param": {"device": "nvme"}})", "offload_param.device"},
       {R"({"stage": 1, "cpu_offload_param": true})", "cpu_offload_param"}}));
  CAPTURE(section);
  const TrainSettings settings = offload_settings(section);
  CHECK(settings.zero.offload_param.device == Device::none);
  CHECK(contains(settings.warnings.back(), key + ": has no effect at stage"));
}

TEST_CASE("Resolve: offload needs a stage that shards", "[config][offload]") {
  struct Row {
    const char* section;
    const char* message;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"offload_optimizer": {"device": "cpu"}})",
       "ds.json:1:56: zero_optimization.offload_optimizer.device: needs stage 1, 2 or 3, but the "
       "stage is 0"},
      {R"({"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.5}})",
       "ds.json:1:84: zero_optimization.offload_optimizer.ratio: below 1 needs stage 3, but the "
       "stage is 2"},
      {R"({"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/x"}})",
       "ds.json:1:68: zero_optimization.offload_optimizer.device: needs stage 3, but the stage is "
       "2"},
      {R"({"stage": 3, "offload_param": {"device": "nvme"}})",
       "ds.json:1:64: zero_optimization.offload_param.device: needs nvme_path, a directory on a "
       "fast disk"},
      {R"({"cpu_offload": true})",
       "ds.json:1:39: zero_optimization.cpu_offload: needs stage 1, 2 or 3, but the stage is 0"},
  }));
  CAPTURE(row.section);
  CHECK(offload_error(row.section) == row.message);
}
