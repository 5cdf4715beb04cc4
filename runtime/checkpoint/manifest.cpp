#include "runtime/checkpoint/manifest.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

#include "runtime/base/printable.h"

namespace dstrain::checkpoint {
namespace {

constexpr int world_size_max = 1 << 20;
constexpr std::size_t states_max = 64;
constexpr std::size_t name_max = 1024;

bool is_plain_word(std::string_view text) {
  return std::ranges::all_of(text, is_plain);
}

/// Whether the path consists of names in the directory, and does not lead out of it.
bool is_plain_path(std::string_view path) {
  if (path.size() > name_max || !is_plain_word(path)) return false;
  while (true) {
    const std::size_t end = path.find('/');
    const std::string_view name = path.substr(0, end);
    if (name.empty() || name == "." || name == "..") return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= name_max && is_plain_word(name);
}

std::string check_states(const std::vector<StateRecord>& states) {
  if (states.size() > states_max) return fmt::format("there are more than {} states", states_max);
  std::unordered_set<std::string_view> names;
  for (const StateRecord& state : states) {
    if (!is_name(state.name) || state.name.find('.') != std::string::npos) {
      return fmt::format("'{}' is not a valid state name", printable(state.name));
    }
    if (!names.insert(state.name).second) return fmt::format("two states are named {}", state.name);
    if (state.file != optimizer_file && state.file != model_file) {
      return fmt::format("the state {} is in '{}', which is neither optim_states nor model_states",
                         printable(state.name), printable(state.file));
    }
  }
  return {};
}

/// Checks that slices tile the tensor.
class TensorRules {
 public:
  explicit TensorRules(int world_size) : world_size_(world_size) {}

  std::string check(const TensorRecord& tensor) {
    if (!is_name(tensor.name))
      return fmt::format("'{}' is not a valid tensor name", printable(tensor.name));
    if (!names_.insert(tensor.name).second) {
      return fmt::format("two tensors are named {}", tensor.name);
    }
    std::int64_t numel = 1;
    for (const std::int64_t extent : tensor.shape.extents()) {
      if (extent < 1 || __builtin_mul_overflow(numel, extent, &numel) ||
          numel > manifest_number_max) {
        return fmt::format("the tensor {} has the shape {}", tensor.name, to_string(tensor.shape));
      }
    }
    std::int64_t next = 0;
    for (const Slice& slice : tensor.slices) {
      const std::string problem = check(slice, next);
      if (!problem.empty()) return fmt::format("the tensor {}: {}", tensor.name, problem);
      next = slice.end;
    }
    if (next == numel) return {};
    return fmt::format("the tensor {}: its slices end at {} of {} elements", tensor.name, next,
                       numel);
  }

  /// The ranks that have slices. The set stays this small however many ranks a manifest claims.
  [[nodiscard]] const std::set<int>& owners() const { return owners_; }

 private:
  std::string check(const Slice& slice, std::int64_t next) {
    if (slice.rank < 0 || slice.rank >= world_size_) {
      return fmt::format("a slice is of rank {} of {}", slice.rank, world_size_);
    }
    if (slice.begin != next || slice.end <= slice.begin) {
      return fmt::format("a slice is [{}, {}), but the next element is {}", slice.begin, slice.end,
                         next);
    }
    owners_.insert(slice.rank);
    return {};
  }

  int world_size_;
  std::unordered_set<std::string_view> names_;
  std::set<int> owners_;
};

std::string check_file(const FileRecord& file) {
  if (!is_plain_path(file.path) || file.path == manifest_name) {
    return fmt::format("'{}' is not the path of a file in the checkpoint", printable(file.path));
  }
  const Bytes chunks = file.bytes / chunk_bytes + (file.bytes % chunk_bytes == 0 ? 0 : 1);
  if (file.bytes < 0 || file.bytes > manifest_number_max ||
      chunks != static_cast<Bytes>(file.chunks.size())) {
    return fmt::format("the file {} has {} bytes and {} checksums, one for each {} are needed",
                       file.path, file.bytes, file.chunks.size(), chunk_bytes);
  }
  return {};
}

std::string check_files(const std::vector<FileRecord>& files) {
  for (const FileRecord& file : files) {
    std::string problem = check_file(file);
    if (!problem.empty()) return problem;
  }
  const auto unordered =
      std::ranges::adjacent_find(files, std::ranges::greater_equal(), &FileRecord::path);
  if (unordered == files.end()) return {};
  return fmt::format("the files {} and {} are not in the order of their paths, each once",
                     unordered->path, std::next(unordered)->path);
}

}  // namespace

std::string Manifest::shard_path(const StateRecord& state, int rank) const {
  return fmt::format("global_step{}/zero_pp_rank_{}_mp_rank_00_{}.safetensors", step, rank,
                     state.file);
}

std::string broken_rule(const Manifest& manifest) {
  if (!is_plain_word(manifest.program)) return "the program's name is not plain";
  if (manifest.step < 0 || manifest.step > manifest_number_max)
    return fmt::format("the step is {}", manifest.step);
  if (manifest.world_size < 1 || manifest.world_size > world_size_max) {
    return fmt::format("world_size is {}, it must be 1 to {}", manifest.world_size, world_size_max);
  }
  if (std::string problem = check_states(manifest.states); !problem.empty()) return problem;
  if (std::string problem = check_files(manifest.files); !problem.empty()) return problem;
  TensorRules tensors(manifest.world_size);
  for (const TensorRecord& tensor : manifest.tensors) {
    if (std::string problem = tensors.check(tensor); !problem.empty()) return problem;
  }
  for (const int rank : tensors.owners()) {
    for (const StateRecord& state : manifest.states) {
      const std::string shard = manifest.shard_path(state, rank);
      if (!std::ranges::binary_search(manifest.files, shard, {}, &FileRecord::path)) {
        return fmt::format("the file {} is not listed, although rank {} has slices", shard, rank);
      }
    }
  }
  return {};
}

}  // namespace dstrain::checkpoint
