#include <fmt/format.h>

#include "runtime/config/resolve.h"
#include "tests/config/resolved.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::DType;
using dstrain::test::Arguments;
using dstrain::test::contains;
using dstrain::test::error_of;
using dstrain::test::message_of;
using dstrain::test::origin_of;
using dstrain::test::resolved;
using dstrain::test::settings_of;

TEST_CASE("Resolve: bf16 from the file or the option", "[config][resolve]") {
  struct Row {
    std::string bf16;  ///< the section; empty: none
    Arguments flags;
    DType dtype;
    std::string origin;
  };
  const auto row = GENERATE(values<Row>({
      {"", {}, DType::f32, "false default"},
      {"", {"--bf16"}, DType::bf16, "true flag --bf16"},
      {"", {"--bf16", "0"}, DType::f32, "false flag --bf16"},
      {"", {"--bf16", "off"}, DType::f32, "false flag --bf16"},
      {R"("bf16": {})", {"--bf16"}, DType::bf16, "true flag --bf16"},
      {R"("bf16": {"enabled": true})", {}, DType::bf16, "true file"},
      {R"("bf16": {"enabled": true})", {"--bf16", "true"}, DType::bf16, "true file"},
      {R"("bfloat16": {"enabled": true})", {}, DType::bf16, "true file"},
      {R"("bfp16": {"enabled": true})", {}, DType::bf16, "true file"},
      {R"("bf16": {"enabled": false})", {}, DType::f32, "false file"},
      {R"("bf16": {"enabled": "auto"})", {}, DType::f32, "false default"},
      {R"("bfloat16": {"enabled": "auto"})", {"--bf16"}, DType::bf16, "true flag --bf16"},
      {R"("bf16": {"enabled": true, "check_grad_overflow": true, "bf16_optimizer_states": false})",
       {},
       DType::bf16,
       "true file"},
  }));
  CAPTURE(row.bf16, row.flags);
  const std::string section = row.bf16.empty() ? "" : ", " + row.bf16;
  const Resolved result =
      resolved(fmt::format(R"({{"train_batch_size": 4{}}})", section), row.flags);
  CHECK(result.settings.dtype == row.dtype);
  CHECK(origin_of(result, "bf16.enabled") == row.origin);
}

TEST_CASE("Resolve: fp16 and its loss scale", "[config][resolve]") {
  using Machine = LossScaleSettings::Machine;
  const auto fp16 = [](const std::string& more) {
    return fmt::format(R"({{"train_batch_size": 4, "fp16": {{"enabled": true{}}}}})", more);
  };
  const TrainSettings plain = settings_of("", {"--fp16"});
  CHECK(plain.dtype == DType::f16);
  CHECK(plain.loss_scale.machine == Machine::zero);
  CHECK(plain.loss_scale.initial == 65536);
  CHECK(plain.loss_scale.window == 1000);
  CHECK(plain.loss_scale.hysteresis == 2);
  CHECK(plain.loss_scale.least == 1);
  CHECK(plain.max_skipped_steps == 100);
  const TrainSettings given =
      settings_of(fp16(R"(, "initial_scale_power": 40, "loss_scale_window": 5, "hysteresis": 3,
                "consecutive_hysteresis": true, "min_loss_scale": 0.5)"),
                  {"--loss_scaler", "fused", "--max_skipped_steps", "7"});
  CHECK(given.loss_scale.machine == Machine::fused);
  CHECK(given.loss_scale.initial == 0x1p40);
  CHECK(given.loss_scale.window == 5);
  CHECK(given.loss_scale.hysteresis == 3);
  CHECK(given.loss_scale.consecutive_hysteresis);
  CHECK(given.loss_scale.least == 0.5);
  CHECK(given.max_skipped_steps == 7);
  const TrainSettings fixed =
      settings_of(fp16(R"(, "loss_scale": 128, "loss_scale_window": 0, "hysteresis": 0)"));
  CHECK(fixed.warnings.size() == 2);
  CHECK(given.warnings.size() == 2);  // of hysteresis, which fused does not know
  CHECK(settings_of("", {"--loss_scaler", "fused"}).warnings.size() == 1);
  CHECK(contains(error_of(fp16(R"(, "hysteresis": 0)")), "fp16.hysteresis: must be at least 1"));
  CHECK(contains(error_of(fp16(R"(, "min_loss_scale": 1e9)")), "initial loss scale, 65536"));
  CHECK(fixed.loss_scale.machine == Machine::fixed);
  CHECK(fixed.loss_scale.initial == 128);
  CHECK(settings_of(R"({"train_batch_size": 4, "fp16": {"loss_scale": 9}})").loss_scale.initial ==
        1);
}

TEST_CASE("Resolve: TF32 applies only to fp32 runs", "[config][resolve]") {
  CHECK_FALSE(settings_of("").tf32);
  CHECK(settings_of("", {"--tf32"}).tf32);
  CHECK(settings_of("", {"--tf32", "1"}).tf32);
  CHECK(settings_of("", {"--tf32"}).warnings.empty());
  CHECK_FALSE(settings_of("", {"--tf32", "false"}).tf32);
  CHECK_FALSE(settings_of("", {"--no_tf32"}).tf32);
  const TrainSettings half = settings_of("", {"--tf32", "--bf16"});
  CHECK_FALSE(half.tf32);
  CHECK(half.warnings == Arguments{"--tf32: has no effect: the run multiplies in bf16"});
  // An option stands in no file.
  CHECK(settings_of(R"({"train_batch_size": 4, "bf16": {"enabled": "auto"}})", {"--tf32", "--bf16"})
            .warnings == half.warnings);
  CHECK(settings_of("", {"--no_tf32", "--bf16"}).warnings.empty());
}

TEST_CASE("Resolve: an overflowing step ends the run unless steps may be skipped",
          "[config][resolve]") {
  CHECK(settings_of("").max_skipped_steps == 0);
  CHECK(settings_of("", {"--bf16"}).max_skipped_steps == 0);
  CHECK(settings_of("", {"--max_skipped_steps", "3"}).max_skipped_steps == 3);
  const std::string checked =
      R"({"train_batch_size": 4, "bf16": {"enabled": true, "check_grad_overflow": true}})";
  CHECK(settings_of(checked).max_skipped_steps == 100);
  CHECK(settings_of(checked, {"--max_skipped_steps", "0"}).max_skipped_steps == 0);
}

TEST_CASE("Resolve: gradients of ranks are averaged or summed", "[config][resolve]") {
  const auto text = [](int stage) {
    return fmt::format(R"({{"train_batch_size": 4, "gradient_allreduce_op": "SUM",
                           "zero_optimization": {{"stage": {}}}}})",
                       stage);
  };
  CHECK_FALSE(settings_of("").sums_gradients);
  CHECK(settings_of(text(2)).sums_gradients);
  CHECK(contains(error_of(text(3)), "gradient_allreduce_op: \"sum\" is refused at stage 3"));
}

TEST_CASE("Resolve: precisions that contradict each other", "[config][resolve]") {
  CHECK(error_of(R"({"train_batch_size": 4, "bf16": {"enabled": false}})", {"--bf16"}) ==
        "ds.json:1:45: bf16.enabled: is false here, but --bf16 is true on the command line; give "
        "one of them, or \"auto\" here");
  CHECK(error_of(R"({"train_batch_size": 4, "bf16": {"enabled": true}})", {"--bf16=false"}) ==
        "ds.json:1:45: bf16.enabled: is true here, but --bf16 is false on the command line; give "
        "one of them, or \"auto\" here");
  CHECK(error_of(R"({"train_batch_size": 4, "data_types": {"param_dtype": "fp32"}})", {"--bf16"}) ==
        "ds.json:1:55: data_types.param_dtype: is \"fp32\", but bf16 is enabled; leave out one of "
        "them");
  CHECK(contains(error_of(R"({"train_batch_size": 4, "bf16": {"enabled": true}})", {"--fp16"}),
                 "--fp16: is on, and so is bf16.enabled; leave out one of them"));
  CHECK(contains(error_of("", {"--fp16", "--bf16"}), "leave out one of them"));
  CHECK(contains(
      error_of(R"({"train_batch_size": 4, "fp16": {"enabled": true, "min_loss_scale": 0}})"),
      "fp16.min_loss_scale: must be more than 0"));
}
