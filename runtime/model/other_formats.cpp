#include "runtime/model/other_formats.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/shell_word.h"
#include "runtime/base/units.h"
#include "runtime/model/hf_index.h"
#include "runtime/os/file.h"

namespace dstrain::model {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  return entries;
}

bool has_safetensors(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / "model.safetensors", ignored) ||
         fs::exists(directory / hf_index_file, ignored);
}

/// Files saved by DeepSpeed: "mp_rank_00_model_states.pt", and the shards of ZeRO.
struct DeepSpeedFiles {
  fs::path model;  ///< of the first rank; empty: none
  fs::path zero;   ///< any shard; empty: none
};

void find_deepspeed(const fs::path& folder, DeepSpeedFiles& found) {
  for (const fs::path& path : entries_of(folder)) {
    const std::string name = path.filename().string();
    if (name.ends_with("_optim_states.pt")) found.zero = path;
    if (name == "mp_rank_00_model_states.pt") found.model = path;
    if (name.starts_with("zero_pp_rank_") && name.ends_with("_model_states.pt")) found.zero = path;
  }
}

DeepSpeedFiles deepspeed_files(const fs::path& directory) {
  DeepSpeedFiles found;
  find_deepspeed(directory, found);
  for (const fs::path& path : entries_of(directory)) {
    if (path.filename().string().starts_with("global_step")) find_deepspeed(path, found);
  }
  return found;
}

std::string from_weights(const fs::path& directory, std::string_view option) {
  return fmt::format("to start from its weights, give {} {}", option, directory.string());
}

/// Returns the command that makes a readable directory `to`, and the option for it. `code` takes
/// both as arguments.
std::string conversion(const fs::path& from,
                       const std::string& to,
                       const std::string& code,
                       std::string_view option) {
  return fmt::format("\n  python3 -c \"import sys; {}\" {} {}\nand give {} {}", code,
                     shell_path(from.string()), shell_path(to), option, shell_path(to));
}

/// Whether the directory has a tokenizer, which is copied because it is read from beside the model.
bool has_tokenizer(const fs::path& directory) {
  constexpr std::array names{"tokenizer.json", "vocab.json", "tokenizer.model", "spiece.model",
                             "tekken.json"};
  return std::ranges::any_of(names, [&](const char* name) { return is_there(directory / name); });
}

std::string save_tokenizer(const fs::path& directory) {
  return has_tokenizer(directory) ? "; T.from_pretrained(a).save_pretrained(b)" : "";
}

/// Returns transformers' class for the model in a directory.
std::string_view auto_class(const fs::path& directory) {
  constexpr Bytes config_bytes_max = 16 * mebibyte;
  const fs::path path = directory / "config.json";
  if (!is_there(path)) return "AutoModelForCausalLM";
  const auto config =
      nlohmann::json::parse(read_text_file(path.string(), config_bytes_max), nullptr, false);
  const bool pairs =
      config.is_object() && (config.value("model_type", nlohmann::json()) == "t5" ||
                             config.value("is_encoder_decoder", nlohmann::json()) == true);
  return pairs ? "AutoModelForSeq2SeqLM" : "AutoModelForCausalLM";
}

std::string explain_deepspeed(const fs::path& directory,
                              const DeepSpeedFiles& files,
                              std::string_view option) {
  const fs::path& any = files.zero.empty() ? files.model : files.zero;
  const fs::path root =
      any.parent_path() == directory && directory.filename().string().starts_with("global_step")
          ? directory.parent_path()
          : directory;
  const std::string what = fmt::format(
      "{}: is a checkpoint of DeepSpeed in pickled files ({}), which are never read, as they can "
      "run "
      "code",
      directory.string(), any.filename().string());
  if (has_safetensors(root)) return what + "; " + from_weights(root, option);
  const std::string from = root.empty() ? "." : root.string();
  const std::string model = "M.from_config(AutoConfig.from_pretrained(a))";
  const std::string load =
      files.zero.empty() ? fmt::format(
                               "import torch; m = {}; m.load_state_dict(torch.load(a + '/{}', "
                               "weights_only=False)['module'])",
                               model, files.model.lexically_relative(root).string())
                         : fmt::format(
                               "from deepspeed.utils.zero_to_fp32 import "
                               "load_state_dict_from_zero_checkpoint as load; m = load({}, a)",
                               model);
  const std::string code = fmt::format(
      "from transformers import AutoConfig, {} as M, AutoTokenizer as T; a, b = sys.argv[1:]; {}; "
      "m.save_pretrained(b, safe_serialization=True){}",
      auto_class(root), load, save_tokenizer(root));
  return fmt::format(
      "{}; convert its weights where you trust them, with the model's config.json in {}:{}; its "
      "optimizer states cannot be taken over",
      what, from, conversion(from, from + "-safetensors", code, option));
}

/// Returns a path that ends with the directory's name, which "ds/", "." and ".." do not.
fs::path named(const fs::path& path) {
  fs::path plain = path.has_filename() ? path : path.parent_path();
  if (plain.filename() != "." && plain.filename() != "..") return plain;
  std::error_code ignored;
  return fs::canonical(plain, ignored);
}

std::string explain_pickled(const fs::path& directory,
                            const fs::path& file,
                            std::string_view option) {
  const std::string code = fmt::format(
      "from transformers import {} as M, AutoTokenizer as T; a, b = sys.argv[1:]; "
      "M.from_pretrained(a).save_pretrained(b, safe_serialization=True){}",
      auto_class(directory), save_tokenizer(directory));
  return fmt::format(
      "{}: pickled weights are never read, as they can run code; convert them where you trust "
      "them:{}",
      file.string(), conversion(directory, directory.string() + "-safetensors", code, option));
}

/// An adapter without a tokenizer uses that of its model.
std::string explain_adapter(const fs::path& directory, std::string_view option) {
  const std::string code = fmt::format(
      "from peft import AutoPeftModelForCausalLM as M; from transformers import AutoTokenizer as "
      "T; a, b = sys.argv[1:]; m = M.from_pretrained(a); m.merge_and_unload().save_pretrained(b); "
      "T.from_pretrained({}).save_pretrained(b)",
      has_tokenizer(directory) ? "a" : "m.peft_config['default'].base_model_name_or_path");
  return fmt::format("{}: is an adapter of PEFT, not a model; merge it into its model first:{}",
                     directory.string(),
                     conversion(directory, directory.string() + "-merged", code, option));
}

/// The hub cache keeps each revision of a model in its own directory, whose name is in refs/main.
std::string explain_hub_cache(const fs::path& directory, std::string_view option) {
  const bool inner = directory.filename() == "snapshots";
  const fs::path snapshots = inner ? directory : directory / "snapshots";
  std::vector<fs::path> models;
  std::error_code ignored;
  for (const fs::path& path : entries_of(snapshots)) {
    if (fs::exists(path / "config.json", ignored)) models.push_back(path);
  }
  if (models.empty()) return {};
  std::string main;
  std::ifstream(snapshots.parent_path() / "refs" / "main") >> main;
  const auto current = std::ranges::find(models, snapshots / main);
  return fmt::format("{}: is a folder of the Hugging Face hub's cache; give {} {}",
                     directory.string(), option,
                     (current == models.end() ? models.front() : *current).string());
}

std::string explain_gguf(const fs::path& file) {
  return fmt::format(
      "{}: is a GGUF file, which is not read; give the model in Hugging Face's format, with "
      "config.json and model.safetensors",
      file.string());
}

}  // namespace

std::string explain_other_format(const fs::path& given, std::string_view option) {
  const fs::path directory = named(given);
  const DeepSpeedFiles deepspeed = deepspeed_files(directory);
  if (!deepspeed.zero.empty() || !deepspeed.model.empty()) {
    return explain_deepspeed(directory, deepspeed, option);
  }
  const bool safe = has_safetensors(directory);
  std::error_code ignored;
  if (safe && fs::exists(directory / "optimizer.pt", ignored)) {
    return fmt::format(
        "{}: is a checkpoint of Hugging Face's Trainer, whose optimizer states are pickled and "
        "never "
        "read, as a pickle can run code; {}",
        directory.string(), from_weights(directory, option));
  }
  if (safe) return {};
  if (fs::exists(directory / "adapter_config.json", ignored)) {
    return explain_adapter(directory, option);
  }
  for (const fs::path& path : entries_of(directory)) {
    const std::string name = path.filename().string();
    if (name.starts_with("pytorch_model") && name.find(".bin") != std::string::npos &&
        fs::is_regular_file(path, ignored)) {
      return explain_pickled(directory, path, option);
    }
    if (name.ends_with(".gguf")) return explain_gguf(path);
  }
  return explain_hub_cache(directory, option);
}

std::string explain_idle_adapter(const fs::path& directory) {
  std::error_code ignored;
  if (directory.empty() || !fs::exists(directory / "adapter_config.json", ignored)) return {};
  return fmt::format(
      "{}: holds an adapter of PEFT beside the weights (adapter_config.json), which is not "
      "applied; "
      "merge it into them with PEFT's merge_and_unload, or move it away",
      directory.string());
}

}  // namespace dstrain::model
