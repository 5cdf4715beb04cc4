#include "runtime/optim/schedule.h"

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "runtime/config/resolve.h"
#include "tests/support/catch.h"

using namespace dstrain;
using nlohmann::json;

namespace {

config::ScheduleSettings schedule_of(const json& golden) {
  const bool file = golden.contains("ds_config");
  const config::DsConfig ds_config =
      file ? config::DsConfig::parse(golden.at("ds_config").dump(), "ds.json") : config::DsConfig();
  const auto arguments = golden.at("arguments").get<std::vector<std::string>>();
  const config::TrainOptions options = config::read_train_flags(arguments);
  return config::resolve_config(options, ds_config, {.world_size = 1}).settings.schedule;
}

/// 0 is 0; else to the last digit, give or take what a mathematical library rounds.
bool same(double value, double truth) {
  constexpr double tolerance = 1e-15;
  return std::abs(value - truth) <= tolerance * std::abs(truth);
}

std::vector<json> golden_schedules() {
  std::ifstream file(std::string(DSTRAIN_SOURCE_DIR) + "/tests/golden/schedules.json");
  return json::parse(file).get<std::vector<json>>();
}

}  // namespace

TEST_CASE("learning_rate: every step is that of DeepSpeed or Hugging Face", "[optim][schedule]") {
  const std::vector<json> cases = golden_schedules();
  REQUIRE(cases.size() == 156);
  for (const json& golden : cases) {
    CAPTURE(golden.value("ds_config", json()).dump(), golden.at("arguments").dump());
    const config::ScheduleSettings schedule = schedule_of(golden);
    const auto rates = golden.at("rates").get<std::vector<double>>();
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const double rate = optim::learning_rate(schedule, static_cast<std::int64_t>(i) + 1);
      CAPTURE(i, rate, rates[i]);
      CHECK(same(rate, rates[i]));
    }
  }
}

TEST_CASE("scheduled_betas: every step is that of DeepSpeed", "[optim][schedule]") {
  const rules::Betas own{0.85, 0.98};  // the optimizer's, in every golden case
  int cycled = 0;
  for (const json& golden : golden_schedules()) {
    CAPTURE(golden.value("ds_config", json()).dump());
    const config::ScheduleSettings schedule = schedule_of(golden);
    if (golden.contains("betas")) ++cycled;
    for (std::int64_t step = 1; step <= std::ssize(golden.at("rates")); ++step) {
      const rules::Betas found = optim::scheduled_betas(schedule, step).value_or(own);
      const auto at = static_cast<std::size_t>(step - 1);
      const json truth = golden.contains("betas") ? golden.at("betas")[at] : json{0.85, 0.98};
      CAPTURE(step, found.beta1, truth.dump());
      CHECK(same(found.beta1, truth[0].get<double>()));
      CHECK(found.beta2 == truth[1].get<double>());
    }
  }
  CHECK(cycled == 14);
}

TEST_CASE("learning_rate: constant without a schedule", "[optim][schedule]") {
  const config::ScheduleSettings schedule{.learning_rate = 0.25};
  CHECK(optim::learning_rate(schedule, 1) == 0.25);
  CHECK(optim::learning_rate(schedule, 1000) == 0.25);
}
