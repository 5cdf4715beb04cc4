#include "runtime/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/safetensors/file.h"
#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"

namespace dstrain::checkpoint {
namespace {

/// Widens, in place, the values in the second half of `values`.
template <class Half>
void widen_in_place(std::span<float> values) {
  const std::byte* const halves = std::as_bytes(values).data() + values.size() * sizeof(Half);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Half half;
    std::memcpy(&half, halves + i * sizeof half, sizeof half);
    values[i] = to_float(half);
  }
}

/// Returns the differences between the tensors and `parameters`, one per line.
std::vector<std::string> differences(const Manifest& manifest,
                                     std::span<const model::ParameterSpec> parameters) {
  std::vector<std::string> problems;
  std::unordered_map<std::string_view, const Shape*> wanted;
  for (const model::ParameterSpec& spec : parameters) wanted.emplace(spec.name, &spec.shape);
  for (const TensorRecord& tensor : manifest.tensors) {
    const auto found = wanted.find(tensor.name);
    if (found == wanted.end()) {
      problems.push_back(fmt::format("tensor '{}' is not a parameter of this model", tensor.name));
      continue;
    }
    if (tensor.shape != *found->second) {
      problems.push_back(fmt::format("tensor '{}' has shape {}, expected {}", tensor.name,
                                     to_string(tensor.shape), to_string(*found->second)));
    }
    wanted.erase(found);
  }
  for (const model::ParameterSpec& spec : parameters) {
    if (wanted.contains(spec.name)) {
      problems.push_back(
          fmt::format("tensor '{}' of shape {} is missing", spec.name, to_string(spec.shape)));
    }
  }
  return problems;
}

}  // namespace

struct Checkpoint::Impl {
  /// The offsets of a shard's tensors, by name.
  struct Shard {
    std::unordered_map<std::string, safetensors::Entry> entries;
    std::uint64_t data_offset = 0;
  };

  /// A tensor of the manifest, and the offsets of its slices in the tensors of the ranks' files.
  struct Tensor {
    explicit Tensor(const TensorRecord& described) : record(described) {
      for (const Slice& slice : record.slices) {
        std::int64_t& held = numel[slice.rank];
        before.push_back(held);
        held += slice.end - slice.begin;
      }
    }
    const TensorRecord& record;
    std::vector<std::int64_t> before;   ///< per slice: elements of earlier slices of its rank
    std::map<int, std::int64_t> numel;  ///< by rank
  };

  explicit Impl(std::filesystem::path directory) : files(std::move(directory)) {
    for (const TensorRecord& tensor : files.manifest().tensors) {
      tensors.emplace(tensor.name, tensor);
    }
  }

  [[nodiscard]] const StateRecord& state(std::string_view name) const {
    const auto found = std::ranges::find(files.manifest().states, name, &StateRecord::name);
    if (found == files.manifest().states.end()) {
      fail(ErrorCode::input, "{}: has no state '{}'", files.path().string(), name);
    }
    return *found;
  }

  [[nodiscard]] const Tensor& tensor(std::string_view name) const {
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      fail(ErrorCode::input, "{}: has no parameter '{}'", files.path().string(), name);
    }
    return found->second;
  }

  const Shard& shard(const FileRecord& file) {
    const std::scoped_lock lock(shards_mutex);
    const auto [found, fresh] = shards.try_emplace(file.path);
    if (fresh) {
      try {
        found->second = read_shard(file);
      } catch (...) {
        shards.erase(found);
        throw;
      }
    }
    return found->second;
  }

  Shard read_shard(const FileRecord& file) {
    constexpr std::uint64_t header_bytes_max = 100'000'000;
    std::uint64_t header_bytes = 0;
    const auto file_bytes = static_cast<std::uint64_t>(file.bytes);
    if (file_bytes >= sizeof header_bytes) {
      files.read(file, 0, std::as_writable_bytes(std::span(&header_bytes, 1)));
    }
    Shard shard{{}, sizeof header_bytes + header_bytes};
    if (header_bytes > header_bytes_max || shard.data_offset > file_bytes) {
      fail(ErrorCode::input, "{}: no safetensors file", files.name_of(file.path));
    }
    std::string header(static_cast<std::size_t>(header_bytes), '\0');
    files.read(file, sizeof header_bytes, std::as_writable_bytes(std::span(header)));
    for (safetensors::Entry& entry : safetensors::parse_header(
             header, file_bytes - shard.data_offset, files.name_of(file.path))) {
      std::string name = entry.name;
      shard.entries.emplace(std::move(name), std::move(entry));
    }
    return shard;
  }

  /// Reads elements [begin, begin + values.size()) of one slice.
  void read_slice(const StateRecord& state,
                  const Tensor& tensor,
                  std::size_t index,
                  std::int64_t begin,
                  std::span<float> values) {
    const Slice& slice = tensor.record.slices[index];
    const FileRecord& file = files.record(files.manifest().shard_path(state, slice.rank));
    const Shard& contents = shard(file);
    const std::int64_t numel = tensor.numel.at(slice.rank);
    const std::string name = state.name + "." + tensor.record.name;
    const auto entry = contents.entries.find(name);
    const char* const dtype = safetensors::dtype_name(state.dtype);
    if (entry == contents.entries.end() || entry->second.dtype != dtype ||
        entry->second.shape != std::vector{numel}) {
      fail(ErrorCode::input, "{}: has no tensor '{}' of {} {}, which the manifest puts there",
           files.name_of(file.path), name, numel, dtype);
    }
    const auto element = static_cast<std::size_t>(size_of(state.dtype));
    const std::span<std::byte> target = std::as_writable_bytes(values);
    files.read(file,
               contents.data_offset + entry->second.begin +
                   static_cast<std::uint64_t>(tensor.before[index] + begin - slice.begin) * element,
               target.last(values.size() * element));
    if (state.dtype == DType::bf16) widen_in_place<BFloat16>(values);
    if (state.dtype == DType::f16) widen_in_place<Float16>(values);
  }

  CheckpointFiles files;
  std::unordered_map<std::string_view, Tensor> tensors;
  std::mutex shards_mutex;
  std::map<std::string, Shard> shards;  ///< shards that were read from; nodes have stable addresses
};

Checkpoint::Checkpoint(std::filesystem::path directory, Files files)
    : impl_(std::make_unique<Impl>(std::move(directory))) {
  if (files == Files::own) return;
  for (const FileRecord& file : impl_->files.manifest().files)
    const CheckedFile there = impl_->files.open(file);
}

Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const std::filesystem::path& Checkpoint::path() const {
  return impl_->files.path();
}

const Manifest& Checkpoint::manifest() const {
  return impl_->files.manifest();
}

bool Checkpoint::has_state(std::string_view state) const {
  return std::ranges::find(impl_->files.manifest().states, state, &StateRecord::name) !=
         impl_->files.manifest().states.end();
}

std::string Checkpoint::read_text(const std::string& file) const {
  const FileRecord& record = impl_->files.record(file);
  const CheckedFile opened = impl_->files.open(record);
  std::string text(static_cast<std::size_t>(record.bytes), '\0');
  opened.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void Checkpoint::read(std::string_view state,
                      std::string_view parameter,
                      std::int64_t begin,
                      std::span<float> values) const {
  const StateRecord& wanted = impl_->state(state);
  const Impl::Tensor& tensor = impl_->tensor(parameter);
  const Shape& shape = tensor.record.shape;
  const auto count = static_cast<std::int64_t>(values.size());
  DSTRAIN_CHECK(begin >= 0 && begin <= shape.numel() - count, "{}+{} of {} {}", begin, count,
                parameter, to_string(shape));
  const std::vector<Slice>& slices = tensor.record.slices;
  const auto first = std::ranges::upper_bound(slices, begin, {}, &Slice::end);
  for (auto index = static_cast<std::size_t>(first - slices.begin()); !values.empty(); ++index) {
    const auto size = std::min(values.size(), static_cast<std::size_t>(slices[index].end - begin));
    impl_->read_slice(wanted, tensor, index, begin, values.first(size));
    values = values.subspan(size);
    begin += static_cast<std::int64_t>(size);
  }
}

void Checkpoint::verify_file(const FileRecord& file) const {
  impl_->files.open(file).verify();
}

CheckpointState::CheckpointState(const Checkpoint& checkpoint,
                                 std::string state,
                                 std::span<const model::ParameterSpec> parameters)
    : checkpoint_(checkpoint), state_(std::move(state)) {
  if (!checkpoint.has_state(state_)) {
    fail(ErrorCode::input, "{}: has no state '{}'", checkpoint.path().string(), state_);
  }
  const std::vector<std::string> problems = differences(checkpoint.manifest(), parameters);
  if (problems.empty()) return;
  constexpr std::size_t listed_max = 5;
  const std::span listed = std::span(problems).first(std::min(problems.size(), listed_max));
  const std::size_t more = problems.size() - listed.size();
  fail(ErrorCode::config, "{}: is of another model:\n{}{}", checkpoint.path().string(),
       fmt::join(listed, "\n"), more > 0 ? fmt::format("\n... and {} more", more) : "");
}

void CheckpointState::read(const model::ParameterSpec& spec,
                           std::int64_t begin,
                           std::span<float> values) const {
  checkpoint_.read(state_, spec.name, begin, values);
}

}  // namespace dstrain::checkpoint
