// Exports in shards, over exports of every kind, with every step of them failing.
#include <set>

#include <nlohmann/json.hpp>

#include "runtime/model/hf_export.h"
#include "runtime/model/hf_import.h"
#include "runtime/os/file.h"
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"
#include "tests/support/file_steps.h"
#include "tests/support/strict_safetensors.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

/// 24, 8, 8 and 8 bytes, in the order of their names.
const std::vector<model::ParameterSpec> shard_specs{
    {"a", {3, 2}, {}}, {"b", {2}, {}}, {"c", {1, 2}, {}}, {"d", {2}, {}}};
constexpr Bytes one_file = 1000;
constexpr Bytes two_files = 32;
constexpr Bytes three_files = 16;
constexpr Bytes four_files = 1;

/// Every element of every parameter is `value`.
void export_constant(const fs::path& directory,
                     float value,
                     Bytes shard_bytes_max,
                     const std::string& config = "{}") {
  model::HfExport writer(directory, config, shard_specs,
                         {.dtype = DType::f32, .shard_bytes_max = shard_bytes_max});
  for (const auto& spec : shard_specs) {
    std::vector<float> values(static_cast<std::size_t>(spec.shape.numel()), value);
    writer.write(spec, flat(values));
  }
  writer.finish();
}

/// The value that the model in the directory holds everywhere; −1 when there is none, −2 when it is
/// a mixture.
float found_constant(const fs::path& directory) {
  std::set<float> found;
  try {
    const model::HfWeights weights(directory.string(), shard_specs, {});
    for (const auto& spec : shard_specs) {
      std::vector<float> values(static_cast<std::size_t>(spec.shape.numel()));
      weights.read(spec, 0, values);
      found.insert(values.begin(), values.end());
    }
  } catch (const Error&) {
    return -1;
  }
  return found.size() == 1 ? *found.begin() : -2;
}

Names names_in(const fs::path& directory) {
  Names names;
  for (const auto& item : fs::directory_iterator(directory)) {
    names.insert(item.path().filename().string());
  }
  return names;
}

}  // namespace

TEST_CASE("HfExport: shards hold no more than asked and the index names them", "[model][hf]") {
  const TempDir directory;
  export_constant(directory.path(), 1, two_files);
  const std::string first = "model-00001-of-00002.safetensors";
  const std::string second = "model-00002-of-00002.safetensors";
  CHECK(names_in(directory.path()) ==
        Names{"config.json", "model.safetensors.index.json", first, second});
  CHECK(read_text_file(directory.path() / "model.safetensors.index.json", mebibyte) ==
        "{\n  \"metadata\": {\n    \"total_size\": 48\n  },\n  \"weight_map\": {\n"
        "    \"a\": \"" +
            first + "\",\n    \"b\": \"" + first +
            "\",\n"
            "    \"c\": \"" +
            second + "\",\n    \"d\": \"" + second +
            "\"\n"
            "  }\n}\n");
  CHECK(safetensors_faults(directory.path() / first).empty());
  CHECK(safetensors_faults(directory.path() / second).empty());
  CHECK(open_safetensors(directory.path() / first).entries().size() == 2);
  CHECK(found_constant(directory.path()) == 1);
}

TEST_CASE("HfExport: a tensor that is too large has a shard for itself", "[model][hf]") {
  const TempDir directory;
  export_constant(directory.path(), 1, four_files);
  CHECK(names_in(directory.path()).size() == 4 + 2);
  CHECK(found_constant(directory.path()) == 1);
}

TEST_CASE("HfExport: a model is replaced atomically whatever was there before", "[model][hf]") {
  const Bytes old_size = GENERATE(one_file, two_files, three_files);
  const Bytes new_size = GENERATE(one_file, two_files, three_files);
  CAPTURE(old_size, new_size);
  for (int failing = 1;; ++failing) {
    const TempDir directory;
    export_constant(directory.path(), 1, old_size);
    std::vector<float> seen;
    int steps = 0;
    std::string error;
    {
      const FileSteps watched([&] {
        seen.push_back(found_constant(directory.path()));
        return ++steps == failing ? EIO : 0;
      });
      error = error_of([&] { export_constant(directory.path(), 2, new_size); });
    }
    CAPTURE(failing, error);
    seen.push_back(found_constant(directory.path()));
    CHECK(std::set<float>(seen.begin(), seen.end()).contains(1));
    CHECK(std::is_sorted(seen.begin(), seen.end()));
    CHECK(seen.front() == 1);
    CHECK(seen.back() <= 2);
    CHECK((!error.empty() || seen.back() == 2));
    export_constant(directory.path(), 3, new_size);
    CHECK(found_constant(directory.path()) == 3);
    const std::size_t weights = new_size == one_file ? 1 : new_size == two_files ? 3 : 4;
    CHECK(names_in(directory.path()).size() == weights + 1);
    if (steps < failing) break;
  }
}

TEST_CASE("HfExport: no config.json lies beside the weights of another model", "[model][hf]") {
  const Bytes old_size = GENERATE(one_file, two_files);
  const Bytes new_size = GENERATE(one_file, two_files);
  CAPTURE(old_size, new_size);
  for (int failing = 1;; ++failing) {
    const TempDir directory;
    const fs::path config = directory.path() / "config.json";
    const auto fits = [&] {
      if (!fs::exists(config)) return true;
      const auto found = nlohmann::json::parse(read_text_file(config, mebibyte));
      return found.at("n_head") == found_constant(directory.path());
    };
    export_constant(directory.path(), 1, old_size, R"({"n_head": 1})");
    int steps = 0;
    bool fitted = fits();
    {
      const FileSteps watched([&] {
        fitted = fitted && fits();
        return ++steps == failing ? EIO : 0;
      });
      error_of([&] { export_constant(directory.path(), 2, new_size, R"({"n_head": 2})"); });
    }
    CAPTURE(failing);
    CHECK((fitted && fits()));
    if (steps < failing) break;
  }
}

TEST_CASE("HfExport: leftovers of a killed export are removed", "[model][hf]") {
  const TempDir directory;
  const Names foreign{"model-00001.safetensors", "model-1-of-x.safetensors", "tokenizer.json",
                      "tokenizer.json.tmp"};
  for (const std::string& name : foreign) write_file(directory.path() / name, "kept");
  for (const char* const name : {"model-00001-of-00007.safetensors.tmp", "model.safetensors.tmp",
                                 "model-00001-of-00007.safetensors", "config.json.tmp",
                                 "model.safetensors.index.json.tmp"}) {
    write_file(directory.path() / name, "left");
  }
  export_constant(directory.path(), 1, one_file);
  Names expected = foreign;
  expected.insert({"model.safetensors", "config.json"});
  CHECK(names_in(directory.path()) == expected);
}

}  // namespace dstrain::test
