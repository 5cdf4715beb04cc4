#include "runtime/model/hf_export.h"

#include <algorithm>

#include "runtime/model/families.h"
#include "runtime/model/hf_import.h"
#include "runtime/os/file.h"
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"
#include "tests/support/strict_safetensors.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

const std::vector<model::ParameterSpec> export_specs{{"wte.weight", {3, 2}, {}},
                                                     {"ln_f.bias", {2}, {}}};

}  // namespace

TEST_CASE("HfExport: what is exported can be imported", "[model][hf]") {
  const TempDir directory;
  const auto output = directory.path() / "a" / "model";
  const std::string config = model::model_preset("gpt2")->to_json();
  const model::HfNames names = model::model_preset("gpt2")->hf_names();
  model::HfExport writer(output, config, export_specs, {.name_prefix = names.prefix});
  std::vector<float> wte{1, 2, 3, 4, 5, 6};
  std::vector<float> bias{7, 8};
  writer.write(export_specs[0], flat(wte).part(0, {3}));
  writer.write(export_specs[1], flat(bias));
  writer.write(export_specs[0], flat(wte).part(3, {3}));
  CHECK_FALSE(std::filesystem::exists(output / "config.json"));
  writer.finish();
  CHECK(read_text_file(output / "config.json", mebibyte) == config);
  const auto file = open_safetensors(output / "model.safetensors");
  CHECK(file.entries().at(1).name == "transformer.wte.weight");
  const model::HfWeights weights(output.string(), export_specs, names);
  std::vector<float> values(6);
  weights.read(export_specs[0], 0, values);
  CHECK(values == wte);
  CHECK(weights.dtype() == DType::f32);
}

TEST_CASE("HfExport: bf16 values keep their bits", "[model][hf]") {
  const TempDir directory;
  const std::string config = model::model_preset("gpt2")->to_json();
  std::vector<float> wte{1, -2, 0.5F, 0x1.02p-120F, -0.0F, 0x1.FEp127F};  // all exact in bf16
  std::vector<BFloat16> wte_16(wte.size());
  std::vector<BFloat16> bias(2, to_bfloat16(3));
  std::transform(wte.begin(), wte.end(), wte_16.begin(), to_bfloat16);
  model::HfExport writer(directory.path(), config, export_specs, {DType::bf16});
  writer.write(export_specs[1], flat(bias));
  writer.write(export_specs[0], flat(wte_16));
  writer.finish();
  CHECK_THAT(read_text_file(directory.path() / "config.json", mebibyte),
             Catch::Matchers::ContainsSubstring("\"torch_dtype\": \"bfloat16\""));
  const auto file = open_safetensors(directory.path() / "model.safetensors");
  CHECK(file.entries().at(0).dtype == "BF16");
  CHECK(file.entries().at(1).end == 16);
  const model::HfWeights weights(directory.path().string(), export_specs, {});
  std::vector<float> values(6);
  weights.read(export_specs[0], 0, values);
  CHECK(values == wte);
  CHECK(weights.dtype() == DType::bf16);
}

TEST_CASE("HfExport: companion files are written beside the model", "[model][hf]") {
  const TempDir directory;
  write_file(directory.path() / "tokenizer.json", "of an older model");
  const std::vector<model::CompanionFile> companions{{"generation_config.json", "{\"x\":1}"},
                                                     {"tokenizer.json", std::string("\0\xff", 2)}};
  {
    std::vector<float> wte(6);
    std::vector<float> bias(2);
    model::HfExport writer(directory.path(), "{}", export_specs, {.companions = companions});
    writer.write(export_specs[0], flat(wte));
    writer.write(export_specs[1], flat(bias));
    CHECK(read_text_file(directory.path() / "tokenizer.json", 100) == "of an older model");
    writer.finish();
  }
  const auto found = model::read_companions(directory.path().string());
  REQUIRE(found.size() == 2);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].name == companions[i].name);
    CHECK(found[i].bytes == companions[i].bytes);
  }
}

TEST_CASE("HfExport: companions may be symbolic links and go out as files", "[model][hf]") {
  const TempDir directory;
  const TempDir elsewhere;
  write_file(elsewhere.path() / "merges", "h e");
  std::filesystem::create_symlink(elsewhere.path() / "merges", directory.path() / "merges.txt");
  const auto found = model::read_companions(directory.path().string());
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == "merges.txt");
  CHECK(found[0].bytes == "h e");
  std::filesystem::remove(elsewhere.path() / "merges");
  CHECK_THAT(error_of([&] { model::read_companions(directory.path().string()); }),
             Catch::Matchers::ContainsSubstring("merges.txt: a symbolic link to"));
}

TEST_CASE("HfExport: an unfinished export leaves the old model", "[model][hf]") {
  const TempDir directory;
  write_file(directory.path() / "config.json", "old");
  write_file(directory.path() / "model.safetensors", "old");
  {
    model::HfExport writer(directory.path(), "{}", export_specs, {});
    std::vector<float> bias{7, 8};
    writer.write(export_specs[1], flat(bias));
  }
  CHECK(read_text_file(directory.path() / "config.json", 10) == "old");
  CHECK(read_text_file(directory.path() / "model.safetensors", 10) == "old");
}

TEST_CASE("HfExport: f16 tensors are named so", "[model][hf]") {
  const TempDir directory;
  std::vector<std::uint16_t> bits{0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
  model::HfExport writer(directory.path(), "{}", export_specs, {DType::f16});
  writer.write(export_specs[0], {bits.data(), DType::f16, {6}});
  writer.write(export_specs[1], {bits.data(), DType::f16, {2}});
  writer.finish();
  CHECK(read_text_file(directory.path() / "config.json", mebibyte) ==
        "{\n  \"torch_dtype\": \"float16\"\n}\n");
  CHECK(safetensors_faults(directory.path() / "model.safetensors").empty());
  const model::HfWeights weights(directory.path().string(), export_specs, {});
  std::vector<float> values(6);
  weights.read(export_specs[0], 0, values);
  CHECK(values == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("HfExport: a directory that another process writes is left alone", "[model][hf]") {
  const TempDir directory;
  const model::HfExport first(directory.path(), "{}", export_specs, {});
  CHECK_THAT(error_of([&] { model::HfExport(directory.path(), "{}", export_specs, {}); }),
             Catch::Matchers::ContainsSubstring("another process is writing a model there"));
}

TEST_CASE("HfExport: a directory that cannot be made is named", "[model][hf]") {
  const TempDir directory;
  write_file(directory.path() / "file", "");
  const auto output = directory.path() / "file" / "model";
  CHECK_THAT(error_of([&] { model::HfExport(output, "{}", export_specs, {}); }),
             Catch::Matchers::ContainsSubstring("create directory " + output.string()));
}

}  // namespace dstrain::test
