#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/base/shell_word.h"
#include "runtime/config/foreign_remedies.h"
#include "runtime/config/missing_directory.h"
#include "runtime/config/train_options.h"
#include "runtime/config/trainer_checkpoint.h"
#include "runtime/os/file.h"
#include "runtime/os/shared_place.h"
#include "runtime/rank/output_lock.h"

namespace dstrain::config {
namespace {

namespace fs = std::filesystem;

/// Whether this is the prefix of Megatron's indexed data: PREFIX.bin and PREFIX.idx exist.
bool is_megatron_prefix(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path + ".idx", ignored) && fs::exists(path + ".bin", ignored);
}

/// Other programs write "A=0.7,B=0.3", put all words into one pair of quotes, or expand patterns
/// themselves.
std::string remedy(const std::string& path, bool is_pattern) {
  if (is_pattern) {
    const std::vector<std::string> files = any_paths_matching(path);
    constexpr std::size_t named_max = 4;
    if (files.size() > named_max) return "; give the pattern without quotes";
    std::string names;
    for (const std::string& file : files) names += " " + shell_path(file);
    return names.empty()
               ? "; patterns name token files, 'data/*.bin'"
               : "; a pattern in quotes is not expanded; give the files that it matches:" + names;
  }
  const bool looks_like_one = path.find_first_of("=, ") != std::string_view::npos;
  return looks_like_one ? "; write a mixture as separate words: 0.7 A 0.3 B" : "";
}

void check_data(const Flag<std::vector<DataFile>>& flag, std::vector<std::string>& problems) {
  std::error_code ignored;
  for (const auto& [path, weight] : flag.value) {
    // The contents of a directory or pattern are looked up when the data is opened.
    const bool is_pattern = path.find_first_of("*?[") != std::string::npos;
    if ((is_pattern && path.ends_with(".bin")) || is_megatron_prefix(path) ||
        fs::exists(path, ignored)) {
      continue;
    }
    problems.push_back(
        fmt::format("{} {}: no such file{}", flag.typed_as, path, remedy(path, is_pattern)));
  }
}

void check_model(const Flag<std::string>& flag, std::vector<std::string>& problems) {
  std::error_code ignored;
  if (!flag.typed() || fs::is_directory(flag.value, ignored)) return;
  problems.push_back(fmt::format("{} {}", flag.typed_as, missing_directory(flag.value)));
}

void check_tokenizer(const Flag<std::string>& flag, std::vector<std::string>& problems) {
  if (!flag.typed()) return;
  std::string problem = missing_tokenizer(flag.typed_as, flag.value);
  if (!problem.empty()) problems.push_back(std::move(problem));
}

bool is_checkpoint_name(std::string_view name) {
  constexpr std::string_view prefix = "checkpoint-";
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

/// Returns the checkpoints in a directory, by their names.
std::vector<fs::path> checkpoints_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (is_checkpoint_name(entry->path().filename().string())) found.push_back(entry->path());
  }
  return found;
}

/// Whether a directory is or holds a checkpoint, by names.
bool has_checkpoint(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) return false;
  return is_checkpoint_name(directory.filename().string()) || !checkpoints_in(directory).empty();
}

/// Ignores what a killed job leaves behind, which only names its owner.
bool holds_nothing(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().filename() != OutputLock::file_name) return false;
  }
  return true;
}

/// Whether the run resumes in its output directory, rather than from a checkpoint elsewhere.
bool continues_in(const fs::path& directory, const TrainOptions& options) {
  const std::string source = resume_source(options);
  if (source.empty()) return false;
  if (source == "latest" || source == "true") return true;
  std::error_code ignored;
  return fs::equivalent(source, directory, ignored) ||
         fs::equivalent(fs::path(source) / "..", directory, ignored);
}

/// Explains why a new run cannot start in a directory that is not empty.
std::string occupied(const fs::path& directory) {
  const std::vector<fs::path> checkpoints = checkpoints_in(directory);
  if (checkpoints.empty()) {
    return "is not empty; choose another, or add --overwrite_output_dir";
  }
  const auto trainers = std::ranges::find_if(checkpoints, is_trainer_checkpoint);
  if (trainers != checkpoints.end()) {
    return fmt::format(
        "holds {}, a checkpoint of Hugging Face's Trainer or DeepSpeed, which cannot be resumed; "
        "choose another directory",
        trainers->filename().string());
  }
  return "holds checkpoints of a run; add --resume_from_checkpoint latest to resume it, or choose "
         "another directory";
}

/// Suggests the checkpoint that a missing path may have meant; empty: none.
std::string meant_checkpoint(const std::string& source, const fs::path& output) {
  std::error_code ignored;
  if (source == "last" || source == "auto") return "; give latest for the newest";
  const fs::path inside = output / source;
  if (fs::is_directory(inside, ignored)) return fmt::format("; give {}", inside.string());
  const std::vector<fs::path> checkpoints = checkpoints_in(output);
  if (checkpoints.empty()) return {};
  return fmt::format("; {} holds {}, and latest is the newest", output.string(),
                     checkpoints.front().filename().string());
}

/// Reports a missing checkpoint to resume from; returns whether it is missing.
bool check_resume_path(const TrainOptions& options, std::vector<std::string>& problems) {
  const std::string source = resume_source(options);
  std::error_code ignored;
  if (source.empty() || source == "latest" || source == "true" ||
      fs::is_directory(source, ignored)) {
    return false;
  }
  problems.push_back(fmt::format("--resume_from_checkpoint {}: no such directory{}", source,
                                 meant_checkpoint(source, options.output_dir.value)));
  return true;
}

void check_output(const TrainOptions& options, std::vector<std::string>& problems) {
  if (check_resume_path(options, problems)) return;
  const fs::path directory = options.output_dir.value;
  const std::string& name = options.output_dir.value;
  if (name.starts_with("~/") || name == "~") {
    problems.push_back(fmt::format(
        "--output_dir {}: the shell has not replaced ~; write $HOME, or leave out quotes and =",
        name));
  } else if (name.find("://") != std::string::npos) {
    problems.push_back(
        fmt::format("--output_dir {}: is a URL; give a directory of a mounted file system", name));
  }
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) return;
  if (!fs::is_directory(directory, ignored)) {
    problems.push_back(fmt::format("--output_dir {}: is not a directory", directory.string()));
  } else if (trains(options) && !holds_nothing(directory) && !options.overwrite_output_dir.value &&
             !continues_in(directory, options)) {
    problems.push_back(fmt::format("--output_dir {}: {}", directory.string(), occupied(directory)));
  }
}

/// The parent must exist by now: it may be the output directory.
void check_profile(const Flag<std::string>& flag) {
  if (!flag.typed()) return;
  const fs::path path = flag.value;
  const auto refuse = [&](const std::string& reason) {
    fail(ErrorCode::usage, "--profile {}: {}", path.string(), reason);
  };
  std::error_code ignored;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::file_type type = fs::status(path, ignored).type();
  if (path.empty()) refuse("is no file");
  if (!fs::is_directory(parent, ignored)) refuse("there is no such directory");
  if (type != fs::file_type::regular && type != fs::file_type::not_found) {
    refuse("is not a regular file");
  }
  refuse_foreign_link(path);
  const bool exists = type == fs::file_type::regular;
  if (::access(exists ? path.c_str() : parent.c_str(), exists ? W_OK : W_OK | X_OK) != 0) {
    refuse("cannot be written: " + std::generic_category().message(errno));
  }
}

}  // namespace

std::string resume_source(const TrainOptions& options) {
  const Flag<std::string>& resume = options.resume_from_checkpoint;
  if (!trains(options)) return {};
  if (resume.typed()) return resume.value == "false" ? "" : resume.value;
  return options.load.typed() && has_checkpoint(options.load.value) ? options.load.value : "";
}

bool resumes(const TrainOptions& options) {
  return !resume_source(options).empty();
}

void check_train_paths(const TrainOptions& options) {
  std::vector<std::string> problems;
  check_data(options.train_file, problems);
  check_data(options.validation_file, problems);
  check_model(options.model_name_or_path, problems);
  check_tokenizer(options.tokenizer, problems);
  std::error_code ignored;
  const std::string config = ds_config_file(options);
  if (!config.empty() && !is_json_text(config) && !fs::exists(config, ignored)) {
    const int stage = zero_stage_named(config);
    problems.push_back(
        fmt::format("--deepspeed {}: no such file{}", config,
                    stage < 0 ? "" : fmt::format("; use --zero_stage {} without it", stage)));
  }
  check_output(options, problems);
  if (!problems.empty()) fail(ErrorCode::usage, "{}", printable_list(problems));
}

void prepare_output_directory(const TrainOptions& options) {
  const fs::path directory = options.output_dir.value;
  const auto refuse = [&](const std::string& reason) {
    fail(ErrorCode::usage, "--output_dir {}: {}", directory.string(), reason);
  };
  std::error_code error = make_directories(directory);
  if (error) refuse("cannot be created: " + error.message());
  const std::vector<const char*> written =
      trains(options)
          ? std::vector<const char*>{"metrics.jsonl", "config.json", "model.safetensors"}
          : std::vector<const char*>{"eval_results.json", "all_results.json"};
  for (const char* const name : written) {
    const fs::file_type type = fs::status(directory / name, error).type();
    if (type != fs::file_type::regular && type != fs::file_type::not_found) {
      refuse(fmt::format("{} is in the way: it is not a regular file", name));
    }
  }
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    refuse("cannot be written to: " + std::generic_category().message(errno));
  }
  check_profile(options.profile);
}

}  // namespace dstrain::config
