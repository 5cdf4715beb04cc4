#include "runtime/model/hf_export.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/model/hf_names.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/file.h"
#include "runtime/os/shared_place.h"

namespace dstrain::model {
namespace {

using safetensors::TensorInfo;

constexpr const char* single_file = "model.safetensors";
constexpr const char* config_file = "config.json";

std::filesystem::path created(const std::filesystem::path& directory) {
  const std::error_code error = make_directories(directory);
  if (error) fail_errno(error.value(), "create directory " + directory.string());
  return directory;
}

/// Returns a lock that one export holds while it writes; it is released when the process ends in
/// any way. None if the file system does not support such locks.
UniqueFd locked(const std::filesystem::path& directory) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail_errno(errno, "open " + directory.string());
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    fail(ErrorCode::io, "{}: another process is writing a model there", directory.string());
  }
  return fd;
}

/// Returns the tensors ordered by name, as in Hugging Face's own files.
std::vector<TensorInfo> tensors_of(std::span<const ParameterSpec> parameters,
                                   const HfExportOptions& options) {
  std::vector<TensorInfo> tensors;
  for (const ParameterSpec& spec : parameters) {
    tensors.push_back({hf_name(options.name_prefix, spec.name), options.dtype, spec.shape});
  }
  std::ranges::sort(tensors, {}, &TensorInfo::name);
  return tensors;
}

Bytes bytes_of(const TensorInfo& tensor) {
  return tensor.shape.numel() * size_of(tensor.dtype);
}

/// Cuts the tensors into consecutive runs, each as long as fits.
std::vector<std::span<const TensorInfo>> cut(std::span<const TensorInfo> tensors, Bytes bytes_max) {
  std::vector<std::span<const TensorInfo>> shards;
  std::size_t begin = 0;
  Bytes bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (i > begin && bytes_of(tensors[i]) > bytes_max - bytes) {
      shards.push_back(tensors.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += bytes_of(tensors[i]);
  }
  shards.push_back(tensors.subspan(begin));
  return shards;
}

/// Returns names that no file there has yet, except for the one file that is renamed over.
std::vector<std::string> file_names(const std::filesystem::path& directory, std::size_t shards) {
  if (shards == 1) return {single_file};
  const auto named = [shards](int digits) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < shards; ++i) names.push_back(hf_shard_name(i, shards, digits));
    return names;
  };
  const auto taken = [&](const std::string& name) {
    return std::filesystem::exists(directory / name);
  };
  int digits = 5;
  while (std::ranges::any_of(named(digits), taken)) ++digits;
  return named(digits);
}

bool is_temporary(std::string_view name) {
  constexpr std::string_view ending = ".tmp";
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  return name == single_file || name == config_file || name == hf_index_file ||
         is_hf_shard_name(name);
}

void remove_file(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_errno(errno, "remove " + path.string());
}

/// Otherwise weights of the same shapes would be read as a model that was never trained.
void remove_other_config(const std::filesystem::path& path, std::string_view text) {
  std::error_code ignored;
  const bool same = std::filesystem::file_size(path, ignored) == text.size() &&
                    read_text_file(path, static_cast<Bytes>(text.size())) == text;
  if (same) return;
  remove_file(path);
  flush_directory(path.parent_path());
}

template <class Predicate>
void remove_files(const std::filesystem::path& directory, Predicate&& unwanted) {
  std::vector<std::filesystem::path> paths;
  for (const auto& item : std::filesystem::directory_iterator(directory)) {
    if (unwanted(item.path().filename().string())) paths.push_back(item.path());
  }
  for (const std::filesystem::path& path : paths) remove_file(path);
}

}  // namespace

HfExport::HfExport(const std::filesystem::path& directory,
                   std::string_view config_json,
                   std::span<const ParameterSpec> parameters,
                   HfExportOptions options)
    : directory_(created(directory)),
      lock_(locked(directory_)),
      name_prefix_(options.name_prefix),
      config_json_(with_torch_dtype(config_json, options.dtype)),
      companions_(options.companions) {
  remove_files(directory_, is_temporary);
  const std::vector<TensorInfo> tensors = tensors_of(parameters, options);
  const auto shards = cut(tensors, options.shard_bytes_max);
  const std::vector<std::string> names = file_names(directory_, shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const TensorInfo& tensor : shards[i]) {
      file_of_.emplace(tensor.name, names[i]);
      data_bytes_ += bytes_of(tensor);
    }
    writers_.emplace(names[i],
                     std::make_unique<safetensors::Writer>(directory_ / names[i], shards[i]));
  }
}

void HfExport::write(const ParameterSpec& spec, HostView values) {
  const auto found = file_of_.find(hf_name(name_prefix_, spec.name));
  DSTRAIN_CHECK(found != file_of_.end(), "no parameter named {}", spec.name);
  writers_.at(found->second)->write(found->first, values);
}

void HfExport::finish() {
  for (const auto& [name, writer] : writers_) writer->flush();
  remove_other_config(directory_ / config_file, config_json_);
  for (const auto& [name, writer] : writers_) writer->finish();
  const bool sharded = writers_.size() > 1;
  if (sharded) {
    write_text_file(directory_ / hf_index_file, hf_index_text(file_of_, data_bytes_));
    flush_directory(directory_);
    remove_file(directory_ / single_file);
  }
  for (const CompanionFile& file : companions_) {
    write_text_file(directory_ / file.name, file.bytes);
  }
  write_text_file(directory_ / config_file, config_json_);
  remove_files(directory_, [&](const std::string& name) {
    return (name == hf_index_file && !sharded) ||
           (is_hf_shard_name(name) && !writers_.contains(name));
  });
  flush_directory(directory_);
}

}  // namespace dstrain::model
