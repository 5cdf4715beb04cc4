#include "tests/e2e/generate_run.h"

#include <fstream>
#include <sstream>

#include "tests/support/catch.h"

namespace dstrain::test {

namespace fs = std::filesystem;
using nlohmann::json;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<json> TextRun::texts() const {
  CAPTURE(err, out);
  REQUIRE(status == 0);
  std::vector<json> texts;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) texts.push_back(json::parse(line));
  return texts;
}

json TextRun::text() const {
  const std::vector<json> all = texts();
  REQUIRE(all.size() == 1);
  return all.front();
}

TextRun generate(const Words& launch_options, const fs::path& model, const Words& arguments) {
  const Words command = joined(launch_options, {"generate", "--model_name_or_path", model});
  return {
      run_command(joined(command, arguments), {.env = {}, .directory = golden_folder.string()})};
}

TextRun generate(const fs::path& model, const Words& arguments) {
  return generate({}, model, arguments);
}

Words cpu_ranks(int count) {
  return {"--num_gpus", std::to_string(count), "--device", "cpu", "--oversubscribe"};
}

std::string write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::string write_prompts(const fs::path& path, const std::vector<json>& prompts) {
  std::string lines;
  for (const json& prompt : prompts) lines += prompt.dump() + "\n";
  return write_file(path, lines);
}

std::vector<json> id_prompts(const std::vector<std::vector<int>>& prompts) {
  std::vector<json> objects;
  for (const std::vector<int>& ids : prompts) objects.push_back({{"prompt_ids", ids}});
  return objects;
}

std::string stage3_config(const fs::path& folder, const json& param) {
  json sharding{{"stage", 3}, {"stage3_param_persistence_threshold", 300}};
  if (!param.is_null()) sharding["offload_param"] = param;
  if (param.is_object() && param.at("device") == "nvme") {
    sharding["offload_param"]["nvme_path"] = (folder / "nvme").string();
    fs::create_directory(folder / "nvme");
  }
  return write_file(folder / "ds.json", json{{"zero_optimization", sharding}}.dump());
}

ModelCopy::ModelCopy(const fs::path& model, const json& generation_config) {
  fs::create_directory(directory());
  fs::copy(golden_folder / model, directory());
  if (generation_config.is_null()) return;
  write_file(directory() / "generation_config.json", generation_config.dump());
}

void ModelCopy::set(const json& keys) const {
  json config = read_json(directory() / "config.json");
  config.update(keys);
  write_file(directory() / "config.json", config.dump());
}

void ModelCopy::add_tokenizer(const std::string& name) const {
  for (const fs::directory_entry& file :
       fs::directory_iterator(golden_folder / "tokenizers" / name)) {
    fs::copy_file(file.path(), directory() / file.path().filename());
  }
}

}  // namespace dstrain::test
