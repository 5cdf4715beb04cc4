#include <algorithm>

#include <fmt/format.h>

#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"
#include "tests/config/resolved.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::Arguments;
using dstrain::test::contains;
using dstrain::test::options_error;

TEST_CASE("TrainOptions: every foreign option does what its status says", "[config][options]") {
  for (const FlagRow& row : foreign_flags()) {
    CAPTURE(row.name);
    REQUIRE_FALSE(row.help.empty());
    const std::string name = fmt::format("--{}", row.name);
    const bool on = row.boolean() && row.off == "false";
    const std::string asks = row.boolean()         ? (on ? "true" : "false")
                             : row.choices.empty() ? "17"
                                                   : std::string(split_choices(row.choices).back());
    std::vector<std::string> quiet;
    for (const std::string_view off : split_choices(row.off)) quiet.emplace_back(off);
    for (const std::string& off : quiet) {
      if (off == asks) continue;
      CHECK(read_train_flags(Arguments{name, off}).warnings.empty());
    }
    if (std::find(quiet.begin(), quiet.end(), asks) != quiet.end()) continue;
    if (row.status == FlagStatus::refused) {
      CHECK(contains(options_error({name, asks}), fmt::format("{} {}: {}", name, asks, row.help)));
    } else {
      CHECK(read_train_flags(Arguments{name, asks}).warnings ==
            Arguments{fmt::format("{}: has no effect: {}", name, row.help)});
    }
  }
}

TEST_CASE("TrainOptions: words are taken in any case and kept in one", "[config][options]") {
  for (const std::string word : {"epoch", "Epoch", "EPOCH"}) {
    CHECK(read_train_flags(Arguments{"--eval_strategy", word}).eval_strategy.value == "epoch");
    CHECK(read_train_flags(Arguments{"--save_strategy", word}).save_strategy.value == "epoch");
  }
  CHECK(read_train_flags(Arguments{"--fp16_backend", "AUTO"}).warnings.empty());
  CHECK(read_train_flags(Arguments{"--no_tf32", "--fsdp", "", "--local_rank", "-1"})
            .warnings.empty());
}
