#include "runtime/checkpoint/export.h"

#include <fstream>
#include <limits>

#include "runtime/checkpoint/checkpoint_weights.h"
#include "runtime/model/families.h"
#include "runtime/model/hf_import.h"
#include "runtime/model/random_source.h"
#include "runtime/os/file.h"
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"
#include "tests/support/largest_allocation.h"
#include "tests/support/model_checkpoint.h"
#include "tests/support/strict_safetensors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_gpt2.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoint;
using model::ParameterSpec;

/// The same value everywhere but in one element.
class OneValue final : public model::ParameterSource {
 public:
  explicit OneValue(float value) : value_(value) {}
  void read(const ParameterSpec& spec, std::int64_t begin, std::span<float> values) const override {
    std::ranges::fill(values, 0.5F);
    const std::int64_t index = 3 - begin;
    const bool here = index >= 0 && index < static_cast<std::int64_t>(values.size());
    if (spec.name == "b" && here) values[static_cast<std::size_t>(index)] = value_;
  }

 private:
  float value_;
};

const std::string gpt2 = R"({"model_type": "gpt2"})";
const model::HfNames names = model::Gpt2Config().hf_names();
const std::vector<ParameterSpec> two{{"a", {2, 2}, {}}, {"b", {5}, {}}};

fs::path write_two(const TempDir& folder, float value) {
  return write_model_checkpoint(folder.path(), {.step = 1, .world = 2, .config_json = gpt2}, two,
                                OneValue(value));
}

std::vector<float> read_whole(const model::ParameterSource& source, const ParameterSpec& spec) {
  std::vector<float> values(static_cast<std::size_t>(spec.shape.numel()));
  source.read(spec, 0, values);
  return values;
}

float rounded(float value, DType dtype) {
  if (dtype == DType::bf16) return to_float(to_bfloat16(value));
  return dtype == DType::f16 ? to_float(to_float16(value)) : value;
}

}  // namespace

TEST_CASE("Export: the model of any number of ranks in any type and shards", "[checkpoint]") {
  const int world = GENERATE(1, 3, 4);
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Bytes shard_bytes = GENERATE(Bytes{1} << 30, Bytes{40'000});
  const TempDir folder;
  const model::Model toy = toy_gpt2();
  const std::vector<ParameterSpec> specs = toy.parameters();
  const model::RandomSource source(7, specs);
  const fs::path saved =
      write_model_checkpoint(folder.path(), {5, world, toy.config_json}, specs, source);
  const fs::path output = folder.path() / "hf";
  const auto exported = export_checkpoint(Checkpoint(saved), output, {dtype, shard_bytes});
  CHECK(exported.parameters == toy.parameter_count());
  CHECK((exported.files > 1) == (shard_bytes < gibibyte));
  CHECK(read_text_file(output / "config.json", mebibyte) ==
        model::load_model_config(output.string())->to_json(dtype));
  std::size_t files = 0;
  for (const auto& item : fs::directory_iterator(output)) {
    if (item.path().extension() != ".safetensors") continue;
    CHECK(safetensors_faults(item.path()) == std::vector<std::string>{});
    ++files;
  }
  CHECK(files == exported.files);
  const model::HfWeights weights(output.string(), specs, toy.hf_names);
  for (const ParameterSpec& spec : specs) {
    std::vector<float> expected = read_whole(source, spec);
    for (float& value : expected) value = rounded(value, dtype);
    CHECK((read_whole(weights, spec) == expected));
  }
}

TEST_CASE("Export: a value beyond the type is named and the old model stays", "[checkpoint]") {
  const TempDir folder;
  const fs::path output = folder.path() / "hf";
  export_checkpoint(Checkpoint(write_two(folder, 7)), output, {});
  const fs::path saved = write_two(folder, 65'520);
  CHECK(error_of([&] { export_checkpoint(Checkpoint(saved), output, {DType::f16}); }) ==
        "tensor 'b' holds 65520 (element 3), which is beyond float16; export it as fp32 or bf16");
  CHECK(read_whole(model::HfWeights(output.string(), two, names), two[1])[3] == 7);
  CHECK(std::distance(fs::directory_iterator(output), {}) == 2);
  export_checkpoint(Checkpoint(saved), output, {DType::bf16});
  CHECK(read_whole(model::HfWeights(output.string(), two, names), two[1])[3] == 65'536);
}

TEST_CASE("CheckpointWeights: a value that is not finite is named", "[checkpoint]") {
  const TempDir folder;
  const fs::path saved = write_two(folder, std::numeric_limits<float>::infinity());
  const checkpoint::CheckpointWeights weights(saved, two);
  CHECK(error_of([&] { read_whole(weights, two[1]); }) ==
        (saved / "global_step1/zero_pp_rank_1_mp_rank_00_optim_states.safetensors").string() +
            ": 'fp32.b' holds inf at [3]: weights must be finite; give a checkpoint that is sound");
  CHECK(read_whole(weights, two[0]) == std::vector<float>(4, 0.5F));
}

TEST_CASE("Export: damage is found and the old model stays", "[checkpoint]") {
  const TempDir folder;
  const fs::path output = folder.path() / "hf";
  const fs::path saved = write_two(folder, 7);
  export_checkpoint(Checkpoint(saved), output, {});
  const fs::path shard = saved / "global_step1/zero_pp_rank_1_mp_rank_00_optim_states.safetensors";
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x7f');
  file.close();
  CHECK_THAT(
      error_of([&] { export_checkpoint(Checkpoint(saved), output, {}); }),
      Catch::Matchers::ContainsSubstring("zero_pp_rank_1_mp_rank_00_optim_states.safetensors"));
  CHECK(read_whole(model::HfWeights(output.string(), two, names), two[1])[3] == 7);
  CHECK(std::distance(fs::directory_iterator(output), {}) == 2);
}

TEST_CASE("Export: a large tensor passes in small pieces", "[checkpoint]") {
  const TempDir folder;
  const std::vector<ParameterSpec> large{{"a", {12 * mebibyte}, {}}};
  const fs::path saved = write_model_checkpoint(folder.path(), {1, 3, gpt2}, large, OneValue(0));
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  take_largest_allocation();
  export_checkpoint(Checkpoint(saved), folder.path() / "hf", {dtype});
  CHECK(take_largest_allocation() <= 4 * mebibyte);
}

}  // namespace dstrain::test
