#include "runtime/model/hf_import.h"

#include <limits>
#include <numeric>

#include "runtime/model/gpt2_config.h"
#include "runtime/model/other_formats.h"
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using model::HfWeights;
using model::ParameterSpec;
namespace fs = std::filesystem;

struct Tensor {
  std::string name;
  std::string shape;  ///< as in JSON
  std::vector<float> values;
};

std::string file_of(const std::vector<Tensor>& tensors) {
  std::string header;
  std::string data;
  for (const Tensor& tensor : tensors) {
    const std::string bytes = raw(tensor.values);
    header += fmt::format("{}\"{}\":{{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                          header.empty() ? "{" : ",", tensor.name, tensor.shape, data.size(),
                          data.size() + bytes.size());
    data += bytes;
  }
  return safetensors_bytes(header + "}", data);
}

const model::HfNames gpt2_names = model::Gpt2Config().hf_names();
const std::vector<ParameterSpec> specs{{"wte.weight", {3, 2}, {}},
                                       {"h.0.attn.c_attn.bias", {2}, {}}};
const Tensor wte{"wte.weight", "[3,2]", {1, 2, 3, 4, 5, 6}};
const Tensor bias{"h.0.attn.c_attn.bias", "[2]", {7, 8}};

Tensor renamed(Tensor tensor, const std::string& name) {
  tensor.name = name;
  return tensor;
}

std::vector<float> read_whole(const HfWeights& weights, const ParameterSpec& spec) {
  std::vector<float> values(static_cast<std::size_t>(spec.shape.numel()));
  weights.read(spec, 0, values);
  return values;
}

/// What importing `directory` complains of, with the directory written as "DIR".
std::string import_error(const TempDir& directory) {
  std::string message = error_of([&] { HfWeights(directory.path().string(), specs, gpt2_names); });
  const std::string path = directory.path().string();
  for (auto at = message.find(path); at != std::string::npos; at = message.find(path)) {
    message.replace(at, path.size(), "DIR");
  }
  return message;
}

/// By this process so far, from anything.
std::int64_t bytes_read() {
  std::ifstream counters("/proc/self/io");
  std::string name;
  std::int64_t bytes = 0;
  counters >> name >> bytes;
  return bytes;
}

void write_index(const TempDir& directory, const std::string& weight_map) {
  write_file(directory.path() / "model.safetensors.index.json",
             R"({"metadata":{"total_size":32},"weight_map":)" + weight_map + "}");
}

}  // namespace

TEST_CASE("HfWeights: names with and without the prefix are found", "[model][hf]") {
  const std::string prefix = GENERATE("", "transformer.");
  const TempDir directory;
  write_file(directory.path() / "model.safetensors",
             file_of({renamed(bias, prefix + bias.name),
                      renamed(wte, prefix + wte.name),
                      {prefix + "h.0.attn.bias", "[1,1,2,2]", {1, 0, 1, 1}},
                      {prefix + "h.0.attn.masked_bias", "[]", {-1e4F}},
                      {"lm_head.weight", "[3,2]", wte.values}}));
  const HfWeights weights(directory.path().string(), specs, gpt2_names);
  CHECK(read_whole(weights, specs[0]) == wte.values);
  CHECK(read_whole(weights, specs[1]) == bias.values);
  std::vector<float> part(3);
  weights.read(specs[0], 2, part);
  CHECK(part == std::vector<float>{3, 4, 5});
}

TEST_CASE("HfWeights: a head that is not tied is refused", "[model][hf]") {
  const TempDir directory;
  const auto path = directory.path() / "model.safetensors";
  std::vector<float> values(6);
  write_file(path, file_of({wte, bias, {"lm_head.weight", "[3,2]", {1, 2, 3, 4, 9, 6}}}));
  const HfWeights weights(directory.path().string(), specs, gpt2_names);
  CHECK(
      error_of([&] { weights.read(specs[0], 0, values); }) ==
      path.string() +
          ": lm_head.weight differs from wte.weight (element 4: 9 and 5), but the model ties them");
  CHECK_THAT(error_of([&] { weights.read(specs[0], 3, std::span(values).first(2)); }),
             Catch::Matchers::ContainsSubstring("(element 4: 9 and 5)"));
  weights.read(specs[0], 0, std::span(values).first(4));  // a rank that has no part in it
  write_file(path, file_of({wte, bias, {"lm_head.weight", "[2,3]", wte.values}}));
  CHECK(import_error(directory) ==
        "DIR/model.safetensors: tensor 'lm_head.weight' has shape (2, 3), expected (3, 2)");
}

TEST_CASE("HfWeights: a model may have neither prefix nor buffers nor a tied head", "[model][hf]") {
  const TempDir directory;
  const auto path = directory.path() / "model.safetensors";
  const auto read = [&](const std::vector<Tensor>& tensors, const model::HfNames& own) {
    write_file(path, file_of(tensors));
    return error_of([&] { HfWeights(directory.path().string(), specs, own); });
  };
  CHECK(read({wte, bias}, {}) == "");
  CHECK(read({wte, bias, renamed(wte, "lm_head.weight")}, {}) ==
        path.string() + ": tensor 'lm_head.weight' is not a parameter of this model");
  CHECK(read({wte, bias, renamed(bias, "h.0.attn.bias")}, {}) ==
        path.string() + ": tensor 'h.0.attn.bias' is not a parameter of this model");
  CHECK_THAT(read({renamed(wte, "transformer.wte.weight"), bias}, {}),
             Catch::Matchers::ContainsSubstring("'wte.weight' of shape (3, 2) is missing"));
}

TEST_CASE("HfWeights: reading a range reads little more than the range", "[model][hf]") {
  const TempDir directory;
  constexpr std::size_t count = 1 << 20;
  const std::vector<ParameterSpec> large{{"wte.weight", {count, 1}, {}}};
  write_file(directory.path() / "model.safetensors",
             file_of({{"wte.weight", fmt::format("[{},1]", count), std::vector<float>(count, 2)}}));
  const std::int64_t before_open = bytes_read();
  const HfWeights weights(directory.path().string(), large, gpt2_names);
  const std::int64_t before = bytes_read();
  CHECK(before - before_open < 16 * kibibyte);
  std::vector<float> slice(count / 4);
  weights.read(large[0], count / 2, slice);
  CHECK(bytes_read() - before < static_cast<std::int64_t>(count + 16 * kibibyte));
  CHECK(slice == std::vector<float>(slice.size(), 2));
}

TEST_CASE("HfWeights: a value that is not finite is named with its place", "[model][hf]") {
  const TempDir directory;
  const auto path = directory.path() / "model.safetensors";
  const float bad =
      GENERATE(std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity());
  Tensor spoilt = renamed(wte, "transformer.wte.weight");
  spoilt.values[3] = bad;
  write_file(path, file_of({spoilt, bias}));
  const HfWeights weights(directory.path().string(), specs, gpt2_names);
  std::vector<float> values(4);
  CHECK(error_of([&] { weights.read(specs[0], 2, values); }) ==
        fmt::format("{}: tensor 'transformer.wte.weight' holds {} at [1, 1]: weights must be "
                    "finite; give a model that is whole",
                    path.string(), bad));
  weights.read(specs[0], 0, std::span(values).first(3));
  CHECK(values[2] == wte.values[2]);
}

TEST_CASE("HfWeights: files that do not hold the model are refused", "[model][hf]") {
  const TempDir directory;
  const std::string file = "DIR/model.safetensors: ";
  const auto with = [&](const std::vector<Tensor>& tensors) {
    write_file(directory.path() / "model.safetensors", file_of(tensors));
    return import_error(directory);
  };
  CHECK(with({wte, bias}) == "");
  CHECK(with({bias}) == "DIR: tensor 'wte.weight' of shape (3, 2) is missing");
  CHECK(with({{"wte.weight", "[2,3]", wte.values}, bias}) ==
        file + "tensor 'wte.weight' has shape (2, 3), expected (3, 2)");
  CHECK(with({{"wte.weight", "[3,2,1]", wte.values}, bias}) ==
        file + "tensor 'wte.weight' has shape (3, 2, 1), expected (3, 2)");
  CHECK(with({wte, bias, {"h.1.attn.c_attn.bias", "[2]", {1, 2}}}) ==
        file + "tensor 'h.1.attn.c_attn.bias' is not a parameter of this model");
  CHECK(with({wte, bias, renamed(wte, "transformer.wte.weight")}) ==
        file + "tensor 'wte.weight' is there twice, with and without 'transformer.'");
  std::vector<Tensor> many{wte, bias};
  for (int i = 0; i < 7; ++i) many.push_back(renamed(bias, fmt::format("x{}", i)));
  CHECK_THAT(with(many), Catch::Matchers::EndsWith("\n... and 2 more"));
}

TEST_CASE("HfWeights: a dtype that is not read is refused", "[model][hf]") {
  const TempDir directory;
  write_file(directory.path() / "model.safetensors",
             safetensors_bytes(
                 R"({"wte.weight":{"dtype":"I64","shape":[3,2],"data_offsets":[0,48]},)"
                 R"("h.0.attn.c_attn.bias":{"dtype":"F32","shape":[2],"data_offsets":[48,56]}})",
                 std::string(56, '\0')));
  CHECK(import_error(directory) ==
        "DIR/model.safetensors: tensor 'wte.weight' is I64; only F64, F32, F16 and BF16 are read");
}

TEST_CASE("HfWeights: shards are read through their index", "[model][hf]") {
  const TempDir directory;
  write_file(directory.path() / "model-1.safetensors",
             file_of({renamed(wte, "transformer.wte.weight")}));
  write_file(directory.path() / "model-2.safetensors", file_of({bias}));
  write_index(directory, R"({"transformer.wte.weight":"model-1.safetensors",)"
                         R"("h.0.attn.c_attn.bias":"model-2.safetensors"})");
  const HfWeights weights(directory.path().string(), specs, gpt2_names);
  CHECK(read_whole(weights, specs[0]) == wte.values);
  CHECK(read_whole(weights, specs[1]) == bias.values);

  write_index(directory, R"({"transformer.wte.weight":"model-1.safetensors"})");
  CHECK(import_error(directory) == "DIR: tensor 'h.0.attn.c_attn.bias' of shape (2) is missing");
  write_index(directory, R"({"wte.weight":"model-1.safetensors"})");
  CHECK(import_error(directory) ==
        "DIR/model-1.safetensors: holds tensor 'transformer.wte.weight', which the index does not "
        "name");
  write_index(directory, R"({"transformer.wte.weight":"model-1.safetensors",)"
                         R"("h.0.attn.c_attn.bias":"model-1.safetensors"})");
  CHECK(import_error(directory) ==
        "DIR/model-1.safetensors: has no tensor 'h.0.attn.c_attn.bias', which the index says it "
        "holds");
  write_index(directory, R"({"wte.weight":"model-3.safetensors"})");
  CHECK(import_error(directory) == "DIR/model-3.safetensors: no such file, but the index names it");
}

TEST_CASE("HfWeights: an index never leads out of its directory", "[model][hf]") {
  const TempDir directory;
  const TempDir elsewhere;
  const fs::path outside = elsewhere.path() / "m.safetensors";
  write_file(outside, file_of({wte, bias}));
  for (const std::string& name :
       {outside.string(), "../" + elsewhere.path().filename().string() + "/m.safetensors",
        std::string(".."), std::string("."), std::string(""), std::string("a/m.safetensors"),
        std::string("m\\u0000.safetensors")}) {
    write_index(directory, "{\"wte.weight\":\"" + name + "\"}");
    CHECK_THAT(import_error(directory),
               Catch::Matchers::ContainsSubstring("must be the plain name of a file"));
  }
  write_index(directory, R"({"wte.weight":7})");
  CHECK_THAT(import_error(directory),
             Catch::Matchers::ContainsSubstring("weight_map['wte.weight'] is 7;"));
  write_index(directory, "[]");
  CHECK_THAT(import_error(directory), Catch::Matchers::ContainsSubstring("has no weight_map"));
  write_index(directory,
              R"({"wte.weight":"l.safetensors","h.0.attn.c_attn.bias":"l.safetensors"})");
  fs::create_directory(directory.path() / "l.safetensors");
  CHECK(import_error(directory) == "DIR/l.safetensors: not a regular file");
}

TEST_CASE("HfWeights: symbolic links are followed wherever they lead", "[model][hf]") {
  const TempDir cache;
  const fs::path snapshot = cache.path() / "snapshots" / "abc";
  fs::create_directories(snapshot);
  fs::create_directories(cache.path() / "blobs");
  write_file(cache.path() / "blobs" / "0123abcdef", file_of({wte, bias}));
  fs::create_symlink("../../blobs/0123abcdef", snapshot / "model.safetensors");
  CHECK(read_whole(HfWeights(snapshot.string(), specs, gpt2_names), specs[0]) == wte.values);
  const TempDir linked;
  fs::create_symlink(snapshot / "model.safetensors", linked.path() / "l.safetensors");
  write_index(linked, R"({"wte.weight":"l.safetensors","h.0.attn.c_attn.bias":"l.safetensors"})");
  CHECK(read_whole(HfWeights(linked.path().string(), specs, gpt2_names), specs[0]) == wte.values);
  fs::remove(cache.path() / "blobs" / "0123abcdef");
  CHECK_THAT(error_of([&] { HfWeights(snapshot.string(), specs, gpt2_names); }),
             Catch::Matchers::EndsWith("model.safetensors: a symbolic link to "
                                       "../../blobs/0123abcdef, which is not there"));
}

TEST_CASE("HfWeights: a directory without safetensors is explained", "[model][hf]") {
  const TempDir directory;
  CHECK_THAT(import_error(directory),
             Catch::Matchers::StartsWith("DIR: holds neither model.safetensors nor"));
  write_file(directory.path() / "adapter_config.json", "{}");
  CHECK_THAT(
      import_error(directory),
      Catch::Matchers::StartsWith("DIR: is an adapter of PEFT, not a model") &&
          Catch::Matchers::ContainsSubstring("merge_and_unload") &&
          Catch::Matchers::ContainsSubstring("T.from_pretrained(m.peft_config['default'].") &&
          Catch::Matchers::EndsWith(" DIR DIR-merged\nand give --model_name_or_path DIR-merged"));
  write_file(directory.path() / "tokenizer.json", "{}");
  CHECK_THAT(import_error(directory),
             Catch::Matchers::ContainsSubstring("T.from_pretrained(a).save_pretrained(b)"));
  CHECK_THAT(model::explain_idle_adapter(directory.path()),
             Catch::Matchers::ContainsSubstring("adapter_config.json), which is not applied"));
  fs::remove(directory.path() / "adapter_config.json");
  CHECK(model::explain_idle_adapter(directory.path()).empty());
  write_file(directory.path() / "pytorch_model.bin", "\x80\x02");
  CHECK_THAT(import_error(directory),
             Catch::Matchers::StartsWith("DIR/pytorch_model.bin: pickled weights are never read") &&
                 Catch::Matchers::ContainsSubstring("import AutoModelForCausalLM as M") &&
                 Catch::Matchers::ContainsSubstring(
                     "safe_serialization=True); T.from_pretrained(a).save_pretrained(b)\" DIR "
                     "DIR-safetensors\nand give --model_name_or_path DIR-safetensors"));
  write_file(directory.path() / "config.json", R"({"model_type": "t5"})");
  CHECK_THAT(import_error(directory),
             Catch::Matchers::ContainsSubstring("import AutoModelForSeq2SeqLM as M"));
  fs::remove(directory.path() / "config.json");
  fs::remove(directory.path() / "tokenizer.json");
  CHECK_THAT(import_error(directory),
             Catch::Matchers::ContainsSubstring("safe_serialization=True)\" DIR "));
  fs::remove(directory.path() / "pytorch_model.bin");
  write_file(directory.path() / "model-q4.gguf", "GGUF");
  CHECK_THAT(import_error(directory),
             Catch::Matchers::StartsWith("DIR/model-q4.gguf: is a GGUF file, which is not read"));
  fs::remove(directory.path() / "model-q4.gguf");
  for (const std::string revision : {"0a", "1b"}) {
    fs::create_directories(directory.path() / "snapshots" / revision);
    write_file(directory.path() / "snapshots" / revision / "config.json", "{}");
  }
  fs::create_directories(directory.path() / "refs");
  write_file(directory.path() / "refs/main", "1b");
  CHECK(import_error(directory) ==
        "DIR: is a folder of the Hugging Face hub's cache; give --model_name_or_path "
        "DIR/snapshots/1b");
  fs::remove_all(directory.path() / "snapshots");
  for (const std::string tag : {"", "global_step4"}) {
    fs::create_directories(directory.path() / tag);
    write_file(directory.path() / tag / "zero_pp_rank_0_mp_rank_00_optim_states.pt", "\x80\x02");
    write_file(directory.path() / tag / "mp_rank_00_model_states.pt", "\x80\x02");
    CHECK_THAT(import_error(directory),
               Catch::Matchers::StartsWith("DIR: is a checkpoint of DeepSpeed in pickled files "
                                           "(zero_pp_rank_0_mp_rank_00_optim_states.pt)") &&
                   Catch::Matchers::ContainsSubstring("load_state_dict_from_zero_checkpoint") &&
                   Catch::Matchers::ContainsSubstring("--model_name_or_path DIR-safetensors"));
    fs::remove(directory.path() / tag / "zero_pp_rank_0_mp_rank_00_optim_states.pt");
    CHECK_THAT(import_error(directory),
               Catch::Matchers::ContainsSubstring("torch.load(a + '/" + tag));
    fs::remove(directory.path() / tag / "mp_rank_00_model_states.pt");
  }
  CHECK_THAT(error_of([&] { HfWeights((directory.path() / "no").string(), specs, gpt2_names); }),
             Catch::Matchers::EndsWith("/no: missing"));
}

}  // namespace dstrain::test
