// Training on several hosts that a program in place of ssh reaches.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/fake_hosts.h"
#include "tests/e2e/train_run.h"

using namespace dstrain;
using nlohmann::json;

TEST_CASE("Hosts: training gives the losses of one machine", "[e2e][golden]") {
  const test::FakeHosts hosts("n0 slots=1\nlocalhost slots=1\nn1 slots=1\n");
  const json golden = test::read_json(test::golden_folder / "plain.json");
  const test::TempDir folder;
  const test::TrainRun local =
      test::run_train(3, golden.at("ds_config"), folder.path() / "local", golden.at("arguments"));
  const test::TrainRun spread =
      test::run_train(hosts.words({}), golden.at("ds_config"), folder.path() / "spread",
                      golden.at("arguments"), {{"DSTRAIN_COMM", "gloo"}});
  CAPTURE(local.err, spread.err);
  REQUIRE(local.status == 0);
  REQUIRE(spread.status == 0);
  REQUIRE(spread.metrics.size() == local.metrics.size());
  for (std::size_t step = 0; step < local.metrics.size(); ++step) {
    CHECK(spread.metrics[step].at("loss") == local.metrics[step].at("loss"));
  }
}
