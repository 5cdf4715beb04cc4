#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "runtime/config/resolve.h"
#include "tests/config/resolved.h"

using namespace dstrain::config;
using dstrain::DType;
using dstrain::test::Arguments;
using dstrain::test::error_of;
using dstrain::test::message_of;
using dstrain::test::origin_of;
using dstrain::test::resolved;

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
}
