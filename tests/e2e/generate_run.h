#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/e2e/launch_process.h"
#include "tests/e2e/train_run.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {

using Words = std::vector<std::string>;

Words joined(Words words, const Words& more);

/// What `dstrain LAUNCH generate ...` wrote.
struct TextRun : Outcome {
  /// The objects of its lines; requires that it has succeeded.
  [[nodiscard]] std::vector<nlohmann::json> texts() const;
  /// The same, of runs that write one.
  [[nodiscard]] nlohmann::json text() const;
};

TextRun generate(const Words& launch_options,
                 const std::filesystem::path& model,
                 const Words& arguments);
TextRun generate(const std::filesystem::path& model, const Words& arguments);

/// Launch options of so many ranks on the CPU.
Words cpu_ranks(int count);

std::string write_file(const std::filesystem::path& path, const std::string& text);
/// A file of prompts: a line for each object.
std::string write_prompts(const std::filesystem::path& path,
                          const std::vector<nlohmann::json>& prompts);
/// Objects with `prompt_ids` for write_prompts.
std::vector<nlohmann::json> id_prompts(const std::vector<std::vector<int>>& prompts);

/// A configuration in `folder` that shards parameters in stage 3, and has them where `param` says.
std::string stage3_config(const std::filesystem::path& folder, const nlohmann::json& param);

/// A copy of a golden model, with what its files say of generation; null: nothing.
class ModelCopy {
 public:
  explicit ModelCopy(const std::filesystem::path& model,
                     const nlohmann::json& generation_config = nullptr);
  [[nodiscard]] std::filesystem::path directory() const { return folder_.path() / "model"; }
  /// For files beside the model.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }
  /// Changes config.json.
  void set(const nlohmann::json& keys) const;
  /// Adds the files of a golden tokenizer.
  void add_tokenizer(const std::string& name) const;

 private:
  TempDir folder_;
};

}  // namespace dstrain::test
