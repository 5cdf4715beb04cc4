#include "runtime/model/hf_export.h"

#include <catch2/catch.hpp>

#include "runtime/base/file.h"
#include "runtime/model/gpt2_config.h"
#include "runtime/model/hf_import.h"
#include "tests/model/safetensors_files.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

const std::vector<model::ParameterSpec> specs{{"wte.weight", {3, 2}, {}}, {"ln_f.bias", {2}, {}}};

}  // namespace

TEST_CASE("HfExport: what is exported can be imported", "[model][hf]") {
  const TempDir directory;
  const auto output = directory.path() / "a" / "model";
  const std::string config = model::to_json(model::gpt2_preset("gpt2"));
  model::HfExport writer(output, config, specs);
  writer.write(specs[0], std::vector<float>{1, 2, 3});
  writer.write(specs[1], std::vector<float>{7, 8});
  writer.write(specs[0], std::vector<float>{4, 5, 6});
  CHECK_FALSE(std::filesystem::exists(output / "config.json"));
  writer.finish();
  CHECK(read_text_file(output / "config.json", mebibyte) == config);
  const auto file = open_safetensors(output / "model.safetensors");
  CHECK(file.entries().at(1).name == "transformer.wte.weight");
  const model::HfWeights weights(output.string(), specs);
  std::vector<float> values(6);
  weights.read(specs[0], 0, values);
  CHECK(values == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("HfExport: an unfinished export leaves the old model", "[model][hf]") {
  const TempDir directory;
  write_file(directory.path() / "config.json", "old");
  write_file(directory.path() / "model.safetensors", "old");
  {
    model::HfExport writer(directory.path(), "new", specs);
    writer.write(specs[1], std::vector<float>{7, 8});
  }
  CHECK(read_text_file(directory.path() / "config.json", 10) == "old");
  CHECK(read_text_file(directory.path() / "model.safetensors", 10) == "old");
}

TEST_CASE("HfExport: a directory that cannot be made is named", "[model][hf]") {
  const TempDir directory;
  write_file(directory.path() / "file", "");
  const auto output = directory.path() / "file" / "model";
  CHECK_THAT(error_of([&] { model::HfExport(output, "", specs); }),
             Catch::Contains("create directory " + output.string()));
}

}  // namespace dstrain::test
