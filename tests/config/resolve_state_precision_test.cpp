#include <fmt/format.h>

#include "runtime/config/resolve.h"
#include "tests/config/resolved.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::DType;
using dstrain::test::contains;
using dstrain::test::error_of;
using dstrain::test::origin_of;
using dstrain::test::resolved;
using dstrain::test::settings_of;

namespace {

constexpr DType f32 = DType::f32;
constexpr DType bf16 = DType::bf16;
constexpr DType f16 = DType::f16;

std::string file(const std::string& keys) {
  return fmt::format(R"({{"train_batch_size": 4{}{}}})", keys.empty() ? "" : ", ", keys);
}

std::string bf16_with(const std::string& more) {
  return fmt::format(R"("bf16": {{"enabled": true{}}})", more);
}

constexpr const char* masters = R"(, "bf16_master_weights_and_grads": true)";
constexpr const char* masters_and_states =
    R"(, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true)";
constexpr const char* adam_with_own_states =
    R"("optimizer": {"type": "Adam", "params": {"fp32_optimizer_states": false}})";

}  // namespace

TEST_CASE("State precision: masters and states and gradients in 16 bits", "[config][precision]") {
  struct Row {
    std::string keys;
    StatePrecision expected;  ///< gradients, communication, masters, optimizer states
    std::size_t warnings;
  };
  const auto row = GENERATE(values<Row>({
      {"", {f32, f32, f32, f32}, 0},
      {bf16_with(""), {f32, f32, f32, f32}, 0},
      {R"("communication_data_type": null)", {f32, f32, f32, f32}, 0},
      {R"("communication_data_type": "FP16")", {f32, f16, f32, f32}, 0},
      {R"("communication_data_type": "bfp16")", {f32, bf16, f32, f32}, 0},
      {bf16_with("") + R"(, "data_types": {"grad_accum_dtype": "torch.bfloat16"})",
       {bf16, bf16, f32, f32},
       0},
      {bf16_with("") +
           R"(, "data_types": {"grad_accum_dtype": "bf16"}, "communication_data_type": "fp32")",
       {bf16, f32, f32, f32},
       0},
      {bf16_with("") + R"(, "data_types": {"grad_accum_dtype": null})", {f32, f32, f32, f32}, 0},
      {bf16_with(masters), {bf16, bf16, bf16, f32}, 1},
      {bf16_with(masters) + R"(, "data_types": {"grad_accum_dtype": "fp32"})",
       {f32, f32, bf16, f32},
       1},
      {bf16_with(masters_and_states), {bf16, bf16, bf16, bf16}, 1},
      {bf16_with(masters) + ", " + adam_with_own_states, {bf16, bf16, bf16, bf16}, 1},
      {bf16_with("") + ", " + adam_with_own_states, {f32, f32, f32, f32}, 1},
      {R"("fp16": {"enabled": true, "fp16_master_weights_and_grads": true})",
       {f16, f16, f16, f32},
       1},
      // Of sections that are off.
      {R"("bf16": {"bf16_master_weights_and_grads": true, "bf16_optimizer_states": true})",
       {f32, f32, f32, f32},
       2},
      {R"("bf16": {"enabled": true, "bf16_master_weights_and_grads": true},
          "fp16": {"enabled": "auto", "fp16_master_weights_and_grads": true})",
       {bf16, bf16, bf16, f32},
       2},
      {R"("torch_autocast": {"enabled": true, "dtype": "float16"},
          "fp16": {"enabled": false, "fp16_master_weights_and_grads": true})",
       {f32, f32, f32, f32},
       2},
  }));
  CAPTURE(row.keys);
  const TrainSettings settings = settings_of(file(row.keys));
  CHECK((settings.precision == row.expected));
  CHECK(settings.warnings.size() == row.warnings);
}

TEST_CASE("State precision: contradictory dtypes are refused", "[config][precision]") {
  struct Row {
    std::string keys;
    std::string message;
  };
  const auto row = GENERATE(values<Row>({
      {bf16_with(masters_and_states) +
           R"(, "optimizer": {"type": "Adam", "params": {"fp32_optimizer_states": true}})",
       "optimizer.params.fp32_optimizer_states: is true, and so is bf16.bf16_optimizer_states"},
      {bf16_with(std::string(masters) + R"(, "bf16_optimizer_states": false)") + ", " +
           adam_with_own_states,
       "optimizer.params.fp32_optimizer_states: is false, and so is bf16.bf16_optimizer_states"},
      {bf16_with(R"(, "bf16_optimizer_states": true)"),
       "bf16.bf16_optimizer_states: needs bf16.bf16_master_weights_and_grads"},
      {std::string(R"("fp16": {"enabled": true, "fp16_master_weights_and_grads": true}, )") +
           adam_with_own_states,
       "optimizer.params.fp32_optimizer_states: fp16 cannot hold the squares"},
      {R"("data_types": {"grad_accum_dtype": "bf16"})",
       "data_types.grad_accum_dtype: gradients are kept in fp32 or in the dtype of the weights, "
       "which is fp32"},
      {bf16_with("") + R"(, "data_types": {"grad_accum_dtype": "fp16"})", "which is bf16"},
      {bf16_with(masters) + R"(, "communication_data_type": "fp16")",
       "communication_data_type: is fp16, but gradients are kept in bf16"},
  }));
  CAPTURE(row.keys);
  CHECK(contains(error_of(file(row.keys)), row.message));
}

TEST_CASE("State precision: the report shows the effective values", "[config][precision]") {
  const Resolved by_section = resolved(file(bf16_with(masters_and_states)));
  CHECK(origin_of(by_section, "bf16.bf16_optimizer_states") == "true file");
  CHECK(origin_of(by_section, "optimizer.params.fp32_optimizer_states") == "false derived");
  const Resolved by_optimizer = resolved(file(bf16_with(masters) + ", " + adam_with_own_states));
  CHECK(origin_of(by_optimizer, "bf16.bf16_optimizer_states") == "true derived");
  CHECK(origin_of(by_optimizer, "optimizer.params.fp32_optimizer_states") == "false file");
}

TEST_CASE("State precision: evaluation gives no warnings about updates", "[config][precision]") {
  const TrainSettings settings =
      settings_of(file(bf16_with(masters)), {"--do_eval", "--validation_file", "x.txt"});
  for (const std::string& warning : settings.warnings) CHECK(!contains(warning, "fp32 master"));
}

TEST_CASE("torch_autocast: taken as the precision of the whole run", "[config][precision]") {
  const auto autocast = [](const std::string& more) {
    return file(fmt::format(R"("torch_autocast": {{"enabled": true{}}})", more));
  };
  const TrainSettings in_bf16 = settings_of(autocast(R"(, "dtype": "torch.bfloat16")"));
  CHECK(in_bf16.dtype == bf16);
  CHECK(in_bf16.warnings.size() == 1);
  const TrainSettings in_fp16 = settings_of(
      autocast(R"(, "dtype": "float16", "lower_precision_safe_modules": ["torch.nn.Linear"])"));
  CHECK(in_fp16.dtype == f16);
  CHECK(in_fp16.warnings.size() == 2);
  CHECK(in_fp16.loss_scale.initial == 65536);
  CHECK(in_fp16.loss_scale.window == 2000);
  CHECK(in_fp16.loss_scale.hysteresis == 1);
  CHECK(settings_of(file(R"("torch_autocast": {"enabled": false, "dtype": "bfloat16"})"))
            .warnings.empty());
  CHECK(contains(error_of(autocast("")), "torch_autocast.dtype: is missing"));
  const std::string wrong = error_of(autocast(R"(, "dtype": "float64")"));
  CHECK((contains(wrong, "must be one of") && !contains(wrong, "is missing")));
}

TEST_CASE("torch_autocast: bf16 may be enabled beside bfloat16 alone", "[config][precision]") {
  const auto beside = [](const std::string& section, const char* dtype) {
    return file(
        fmt::format(R"({}, "torch_autocast": {{"enabled": true, "dtype": "{}"}})", section, dtype));
  };
  const TrainSettings both = settings_of(beside(bf16_with(masters), "bfloat16"));
  CHECK(both.dtype == bf16);
  CHECK(both.precision.masters == bf16);
  CHECK(settings_of(beside("\"gradient_clipping\": 1", "bfloat16"), {"--bf16"}).dtype == bf16);
  CHECK(contains(error_of(beside(bf16_with(""), "float16")),
                 "torch_autocast.enabled: is on, and so is bf16.enabled; leave out one of them"));
  CHECK(contains(error_of(beside(R"("fp16": {"enabled": true})", "float16")),
                 "torch_autocast.enabled: is on, and so is fp16.enabled; leave out one of them"));
}
