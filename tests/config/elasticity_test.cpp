// Batches that many numbers of ranks can share: the published vectors, DeepSpeed's own code, and
// what a configuration makes of them.
#include "runtime/config/elasticity.h"

#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/config/resolved.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::config;
using dstrain::test::contains;
using dstrain::test::error_of;
using nlohmann::json;
using Counts = std::vector<std::int64_t>;

namespace {

Elasticity elasticity_of(const json& section) {
  const double version = section.value("version", 0.2);
  return {.version = version == 0.1 ? Elasticity::Version::v0_1 : Elasticity::Version::v0_2,
          .max_train_batch_size = section.at("max_train_batch_size"),
          .micro_batch_sizes = section.at("micro_batch_sizes"),
          .min_gpus = section.value("min_gpus", 1),
          .max_gpus = section.value("max_gpus", 10'000),
          .prefer_larger_batch = section.value("prefer_larger_batch", true),
          .num_gpus_per_node = section.value("num_gpus_per_node", 1),
          .model_parallel_size = section.value("model_parallel_size", 1)};
}

const Elasticity published{.version = Elasticity::Version::v0_1,
                           .max_train_batch_size = 10'000,
                           .micro_batch_sizes = {8, 12, 16, 17},
                           .min_gpus = 32,
                           .max_gpus = 1500};

/// A configuration whose section has these members beside "enabled".
std::string enabled(const std::string& members, const std::string& more = "") {
  return R"({"elasticity": {"enabled": true, )" + members + "}" + more + "}";
}

constexpr const char* small =
    R"("max_train_batch_size": 100, "micro_batch_sizes": [8, 10, 12], "version": 0.1)";

}  // namespace

TEST_CASE("Elasticity: the published vectors of version 0.1", "[config][elasticity]") {
  struct Row {
    Elasticity elasticity;
    std::int64_t batch;
    Counts counts;
  };
  const auto of = [](std::int64_t most, Counts micro, std::int64_t counts_max = 10'000) {
    return Elasticity{.version = Elasticity::Version::v0_1,
                      .max_train_batch_size = most,
                      .micro_batch_sizes = std::move(micro),
                      .max_gpus = counts_max};
  };
  const auto row = GENERATE_COPY(values<Row>({
      {published, 9792, {32,  34,  36,  48,  51,  64,  68,  72,  96,  102, 136, 144,
                         153, 192, 204, 272, 288, 306, 408, 576, 612, 816, 1224}},
      {of(32, {1, 2, 3, 7}), 24, {1, 2, 3, 4, 6, 8, 12, 24}},
      {of(100, {8, 10, 12}), 96, {1, 2, 3, 4, 6, 8, 12}},
      {of(2000, {2, 4, 6}), 1680, {1,  2,  3,   4,   5,   6,   7,   8,   10,  12, 14,
                                   15, 20, 21,  24,  28,  30,  35,  40,  42,  56, 60,
                                   70, 84, 105, 120, 140, 168, 210, 280, 420, 840}},
      {of(4, {1, 2, 3, 4}, 4), 4, {1, 2, 4}},
  }));
  const Result<ElasticBatch> found = elastic_batch(row.elasticity);
  REQUIRE(found.ok());
  CHECK(found.value().train_batch_size == row.batch);
  CHECK(found.value().valid_counts == row.counts);
}

TEST_CASE("Elasticity: the largest micro batch that fits", "[config][elasticity]") {
  CHECK(share_elastic_batch(published, 64).value().micro == 17);
  CHECK(share_elastic_batch(published, 64).value().accumulation == 9);
  Elasticity other = published;
  other.max_train_batch_size = 32;
  other.micro_batch_sizes = {1, 2, 3, 7};
  other.min_gpus = 1;
  CHECK(share_elastic_batch(other, 4).value().micro == 3);
  other.max_train_batch_size = 4;
  other.micro_batch_sizes = {1, 2, 3, 4};
  CHECK(share_elastic_batch(other, 2).value().micro == 2);
  const Result<Batch> none = share_elastic_batch(published, 128);
  REQUIRE_FALSE(none.ok());
  CHECK(contains(none.error(), "128 ranks cannot share its batch of 9792"));
  CHECK(contains(none.error(), "nearest that can: 102 and 136"));
}

TEST_CASE("Elasticity: version 0.2 counts nodes and finds another batch", "[config][elasticity]") {
  Elasticity by_node = published;
  by_node.version = Elasticity::Version::v0_2;
  by_node.num_gpus_per_node = 8;
  by_node.model_parallel_size = 4;
  const Result<ElasticBatch> found = elastic_batch(by_node, 4);
  REQUIRE(found.ok());
  CHECK(found.value().train_batch_size == 9996);
  CHECK(found.value().valid_counts == Counts{4});
  by_node.model_parallel_size = 16;
  CHECK(contains(elastic_batch(by_node).error(),
                 "elasticity.num_gpus_per_node: 8 is not a multiple"));
  by_node.version = Elasticity::Version::v0_1;
  CHECK(contains(elastic_batch(by_node).error(), "needs elasticity.version 0.2"));
}

TEST_CASE("Elasticity: agrees with DeepSpeed's code on generated sections",
          "[config][elasticity]") {
  std::ifstream file(std::string(DSTRAIN_SOURCE_DIR) + "/tests/golden/elasticity.json");
  int found_some = 0;
  for (const json& row : json::parse(file)) {
    CAPTURE(row.dump());
    const Elasticity elasticity = elasticity_of(row.at("elasticity"));
    const std::int64_t ranks = row.at("ranks");
    const Result<ElasticBatch> batch = elastic_batch(elasticity, ranks);
    const json& found = row.at("found");
    REQUIRE(batch.ok() == !found.is_null());
    if (!batch.ok()) continue;
    ++found_some;
    CHECK(batch.value().train_batch_size == found.at("batch"));
    CHECK(batch.value().valid_counts == found.at("counts").get<Counts>());
    if (found.at("micro").is_null()) continue;
    CHECK(share_elastic_batch(elasticity, ranks).value().micro == found.at("micro"));
  }
  CHECK(found_some > 150);
}

TEST_CASE("Elasticity: a configuration's batch follows from it", "[config][elasticity]") {
  const config::Context context{.world_size = 4};
  const config::Resolved result = test::resolved(enabled(small), {}, context);
  CHECK(result.settings.train_batch_size == 96);
  CHECK(result.settings.micro_batch_size == 12);
  CHECK(result.settings.accumulation_steps == 2);
  CHECK(test::origin_of(result, "train_batch_size") == "96 derived");
  CHECK(result.settings.warnings.empty());
  // Without a number of ranks there is a batch, and no micro batch yet.
  CHECK(test::settings_of(enabled(small), {}, {}).train_batch_size == 96);
  const config::Context odd{.world_size = 5};
  CHECK(
      contains(test::message_of([&] { test::settings_of(enabled(small), {}, odd); }),
               "elasticity: 5 ranks cannot share its batch of 96; the nearest that can: 4 and 6"));
}

TEST_CASE("Elasticity: version 0.2 warns of a batch that only one count fits",
          "[config][elasticity]") {
  const config::Context context{.world_size = 5};
  const std::string file = enabled(R"("max_train_batch_size": 100, "micro_batch_sizes": [8, 12])");
  const TrainSettings settings = test::settings_of(file, {}, context);
  CHECK(settings.train_batch_size == 80);
  REQUIRE(settings.warnings.size() == 1);
  CHECK(contains(settings.warnings.front(), "5 ranks cannot share its batch of 96"));
}

TEST_CASE("Elasticity: other batch sizes are refused or ignored", "[config][elasticity]") {
  const std::string sizes = R"(, "train_batch_size": 8, "gradient_accumulation_steps": "auto")";
  CHECK(contains(error_of(enabled(small, sizes)), "train_batch_size: 8: elasticity decides it"));
  CHECK(contains(error_of(enabled(small), {"--per_device_train_batch_size", "4"}),
                 "4 (flag --per_device_train_batch_size): elasticity decides it"));
  const std::string ignoring =
      enabled(std::string(small) + R"(, "ignore_non_elastic_batch_info": true)", sizes);
  const TrainSettings settings = test::settings_of(ignoring);
  CHECK(settings.train_batch_size == 96);
  CHECK(contains(settings.warnings.at(0), "8 has no effect"));
}

TEST_CASE("Elasticity: errors name key and value and remedy", "[config][elasticity]") {
  const auto [members, told] = GENERATE(table<std::string, std::string>({
      {R"("micro_batch_sizes": [2])", "elasticity.max_train_batch_size: is missing"},
      {R"("max_train_batch_size": 4)", "elasticity.micro_batch_sizes: is missing"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [])", "micro_batch_sizes: is empty"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": 5)", "expected a list, got 5"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [1, -1])",
       "elasticity.micro_batch_sizes: micro batches must be whole numbers of at least 1, got -1"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": ["a"])", R"(got "a")"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [null])", "got null"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [2, 0.5])", "got 0.5"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [2, 8])",
       "elasticity.micro_batch_sizes: 8 on 1 rank is more than"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [2], "version": 0.3)",
       "elasticity.version: must be 0.1 or 0.2, got 0.3"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [2], "min_gpus": -1)", "got -1"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [2], "max_gpus": 0)", "got 0"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [2], "min_gpus": 3, "max_gpus": 2)",
       "elasticity.min_gpus: 3 is more than elasticity.max_gpus 2"},
      {R"("max_train_batch_size": 4, "micro_batch_sizes": [2], "min_gpus": 5,
          "version": 0.1)",
       "elasticity.min_gpus: no batch up to elasticity.max_train_batch_size 4"},
      {R"("max_train_batch_size": 8, "micro_batch_sizes": [2], "max_gpus": 2,
          "num_gpus_per_node": 4)",
       "elasticity.max_gpus: 2 is less than a node has"},
      {R"("max_train_batch_size": 8, "micro_batch_sizes": [1], "num_gpus_per_node": 2,
          "model_parallel_size": 2)",
       "elasticity.model_parallel_size: 2: tensor parallelism is not implemented"},
  }));
  CAPTURE(members);
  const std::string error = error_of(enabled(members));
  CAPTURE(error);
  CHECK(contains(error, told));
  CHECK(contains(error, "ds.json:"));
}

TEST_CASE("Elasticity: a section given to the scheduler must agree", "[config][elasticity]") {
  Elasticity elasticity = published;
  const json told{
      {"max_train_batch_size", 10'000}, {"micro_batch_sizes", {8, 12, 16, 17}}, {"version", 0.1}};
  CHECK(differs_from_scheduler(elasticity, told.dump()) == "");
  CHECK(contains(differs_from_scheduler(elasticity, "[]"), "must be a JSON object"));
  CHECK(contains(differs_from_scheduler(elasticity, "{}"), "max_train_batch_size is 10000 here"));
  for (const char* const key : {"max_train_batch_size", "micro_batch_sizes", "version"}) {
    json other = told;
    other[key] = 7;
    CHECK(contains(differs_from_scheduler(elasticity, other.dump()), std::string(key) + " is "));
  }
  elasticity.version = Elasticity::Version::v0_2;
  CHECK(contains(differs_from_scheduler(elasticity, told.dump()), "version is 0.2 here"));
}
