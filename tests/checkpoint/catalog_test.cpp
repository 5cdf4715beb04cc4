#include "runtime/checkpoint/catalog.h"

#include <fstream>

#include "runtime/base/error.h"
#include "tests/checkpoint/checkpoint_files.h"
#include "tests/support/catch.h"
#include "tests/support/newer_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using namespace checkpoint;

fs::path save_step(const fs::path& output, std::int64_t step) {
  SavedModel model = random_model(0, 2, {10, 20});
  model.step = step;
  return save(output, model);
}

void damage(const fs::path& directory) {
  std::ofstream(directory / "config.json", std::ios::in) << "[";
}

std::vector<std::int64_t> steps_in(const fs::path& output) {
  std::vector<std::int64_t> steps;
  for (const Found& found : list_checkpoints(output)) steps.push_back(found.step);
  return steps;
}

using Steps = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("Catalog: the newest comes first and other names do not count", "[checkpoint]") {
  const TempDir output;
  for (const char* const name :
       {"checkpoint-9", "checkpoint-10", "checkpoint-0", "checkpoint-007", "checkpoint-1x",
        "checkpoint-", "checkpoint--1", "checkpoint-+1", "checkpoint- 1", "checkpoint-3.tmp-a-b",
        "checkpoint-99999999999999999999", "xcheckpoint-4"}) {
    fs::create_directory(output.path() / name);
  }
  std::ofstream(output.path() / "checkpoint-5") << "a file";
  CHECK(steps_in(output.path()) == Steps{10, 9, 0});
  CHECK_THROWS_AS(list_checkpoints(output.path() / "missing"), Error);
  CHECK_THROWS_AS(list_checkpoints(output.path() / "checkpoint-5"), Error);
}

TEST_CASE("Prune: keeps the newest intact checkpoints", "[checkpoint]") {
  const TempDir output;
  for (const std::int64_t step : {1, 2, 10, 20}) save_step(output.path(), step);
  CHECK(prune(output.path(), 4).empty());
  const std::vector<Pruned> removed = prune(output.path(), 2);
  REQUIRE(removed.size() == 2);
  CHECK(removed.front().path == output.path() / "checkpoint-2");
  CHECK(removed.back().path == output.path() / "checkpoint-1");
  CHECK(removed.front().damage.empty());
  CHECK(steps_in(output.path()) == Steps{20, 10});
  CHECK(std::distance(fs::directory_iterator(output.path()), {}) == 2);
}

TEST_CASE("Prune: newer damaged ones never push out the newest whole one", "[checkpoint]") {
  const TempDir output;
  for (const std::int64_t step : {1, 2, 3, 4, 5}) save_step(output.path(), step);
  damage(output.path() / "checkpoint-4");
  damage(output.path() / "checkpoint-5");
  damage(output.path() / "checkpoint-2");
  const std::vector<Pruned> removed = prune(output.path(), 1);
  CHECK(steps_in(output.path()) == Steps{3});
  REQUIRE(removed.size() == 4);
  CHECK_FALSE(removed.front().damage.empty());
  CHECK(removed.back().damage.empty());
}

TEST_CASE("Prune: keeps directories of other programs", "[checkpoint]") {
  const TempDir output;
  for (const std::int64_t step : {1, 2, 3}) save_step(output.path(), step);
  for (const char* name : {"checkpoint-2", "checkpoint-9"}) {
    fs::remove_all(output.path() / name);
    fs::create_directory(output.path() / name);
    std::ofstream(output.path() / name / "pytorch_model.bin") << "weights";
  }
  REQUIRE(prune(output.path(), 1).size() == 1);
  CHECK(steps_in(output.path()) == Steps{9, 3, 2});
}

TEST_CASE("Prune: removes nothing while too few are intact", "[checkpoint]") {
  const TempDir output;
  for (const std::int64_t step : {1, 2, 3}) save_step(output.path(), step);
  damage(output.path() / "checkpoint-3");
  damage(output.path() / "checkpoint-1");
  CHECK(prune(output.path(), 2).empty());
  damage(output.path() / "checkpoint-2");
  CHECK(prune(output.path(), 1).empty());
  CHECK(steps_in(output.path()) == Steps{3, 2, 1});
}

TEST_CASE("Prune: a foreign file does not make a checkpoint damaged", "[checkpoint]") {
  const TempDir output;
  for (const std::int64_t step : {1, 2, 3}) save_step(output.path(), step);
  std::ofstream(output.path() / "checkpoint-3" / "pytorch_model.bin") << "foreign";
  fs::create_directory(output.path() / "checkpoint-2" / "model");
  SECTION("read") {
    prune(output.path(), 1);
  }
  SECTION("known") {
    prune(output.path(), 1, Steps{3});
  }
  CHECK(steps_in(output.path()) == Steps{3});
  CHECK(verify(output.path() / "checkpoint-3").foreign ==
        std::vector<std::string>{"pytorch_model.bin"});
}

TEST_CASE("Prune: known intact checkpoints are not read but must exist", "[checkpoint]") {
  const TempDir output;
  for (const std::int64_t step : {1, 2, 3}) save_step(output.path(), step);
  damage(output.path() / "checkpoint-3");
  fs::remove(output.path() / "checkpoint-2" / "latest");
  const Steps known{2, 3};
  prune(output.path(), 1, known);
  CHECK(steps_in(output.path()) == Steps{3});
}

TEST_CASE("Prune: keeps the guarded checkpoint and the newest other one", "[checkpoint]") {
  struct Row {
    std::int64_t keep;
    std::string guarded;
    Steps left;
  };
  const Row row = GENERATE(values<Row>({{1, "checkpoint-1", {4, 1}},
                                        {1, "checkpoint-4", {4}},
                                        {2, "checkpoint-1", {4, 1}},
                                        {3, "checkpoint-1", {4, 3, 1}},
                                        {3, "checkpoint-3", {4, 3, 2}},
                                        {2, "checkpoint-9", {4, 3}}}));
  CAPTURE(row.keep, row.guarded);
  const TempDir output;
  for (const std::int64_t step : {1, 2, 3, 4}) save_step(output.path(), step);
  prune(output.path(), row.keep, {}, row.guarded);
  CHECK(steps_in(output.path()) == row.left);
}

TEST_CASE("Prune: keeps a newer format without counting it", "[checkpoint]") {
  const std::int64_t newer = GENERATE(1, 3);
  const TempDir output;
  for (const std::int64_t step : {1, 2, 3}) save_step(output.path(), step);
  const fs::path path = output.path() / directory_name(newer);
  make_newer(path);
  const Verification found = verify(path);
  CHECK(found.damage.empty());
  CHECK_FALSE(found.intact());
  CHECK_THAT(found.newer, Catch::Matchers::ContainsSubstring("dstrain 7.3.0 wrote it"));
  prune(output.path(), 1);
  CHECK(steps_in(output.path()) == (newer == 1 ? Steps{3, 1} : Steps{3, 2}));
}

}  // namespace dstrain::test
