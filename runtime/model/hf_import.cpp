#include "runtime/model/hf_import.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/model/finite_values.h"
#include "runtime/model/hf_directory.h"
#include "runtime/model/hf_names.h"

namespace dstrain::model {
namespace {

bool same_shape(const safetensors::Entry& entry, const Shape& shape) {
  const auto extents = shape.extents();
  return std::equal(entry.shape.begin(), entry.shape.end(), extents.begin(), extents.end());
}

bool same_bits(float left, float right) {
  return std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right);
}

[[noreturn]] void fail_listing(const std::vector<std::string>& problems) {
  constexpr std::size_t listed_max = 5;
  const std::size_t listed = std::min(listed_max, problems.size());
  std::string text = fmt::format(
      "{}",
      fmt::join(problems.begin(), problems.begin() + static_cast<std::ptrdiff_t>(listed), "\n"));
  if (listed < problems.size()) {
    text += fmt::format("\n... and {} more", problems.size() - listed);
  }
  fail(ErrorCode::input, "{}", text);
}

}  // namespace

HfWeights::HfWeights(const std::string& directory,
                     std::span<const ParameterSpec> parameters,
                     const HfNames& names)
    : directory_(directory), names_(names), files_(open_hf_directory(directory)) {
  std::vector<std::string> problems;
  std::unordered_set<std::string_view> wanted;
  for (const HfNames::Tied& tied : names_.tied) wanted.insert(tied.name);
  for (const ParameterSpec& spec : parameters) wanted.insert(spec.name);
  find_tensors(wanted, problems);
  for (const ParameterSpec& spec : parameters) {
    check_stored(spec.name, spec.shape, problems);
    for (const std::string& name : tied_to(spec)) check_stored(name, spec.shape, problems);
  }
  if (!problems.empty()) fail_listing(problems);
}

std::string_view HfWeights::without_prefix(std::string_view name) const {
  return name.starts_with(names_.prefix) ? name.substr(names_.prefix.size()) : name;
}

std::vector<std::string> HfWeights::tied_to(const ParameterSpec& spec) const {
  std::vector<std::string> found;
  for (const HfNames::Tied& tied : names_.tied) {
    std::string name(tied.name);
    if (spec.name == tied.parameter && tensors_.contains(name)) found.push_back(std::move(name));
  }
  return found;
}

void HfWeights::find_tensors(const std::unordered_set<std::string_view>& wanted,
                             std::vector<std::string>& problems) {
  const auto is_buffer = [&](std::string_view name) {
    return std::ranges::any_of(names_.buffers,
                               [&](std::string_view ending) { return name.ends_with(ending); });
  };
  for (std::size_t file = 0; file < files_.size(); ++file) {
    const auto& entries = files_[file].entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string_view name = without_prefix(entries[i].name);
      const bool known = wanted.count(name) > 0;
      if (!known && !is_buffer(name)) {
        problems.push_back(fmt::format("{}: tensor '{}' is not a parameter of this model",
                                       files_[file].name(), printable(entries[i].name)));
      }
      if (known && !tensors_.emplace(name, TensorIndex{file, i}).second) {
        problems.push_back(fmt::format("{}: tensor '{}' is there twice, with and without '{}'",
                                       files_[file].name(), name, names_.prefix));
      }
    }
  }
}

void HfWeights::check_stored(const std::string& name,
                             const Shape& shape,
                             std::vector<std::string>& problems) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    problems.push_back(
        fmt::format("{}: tensor '{}' of shape {} is missing", directory_, name, to_string(shape)));
    return;
  }
  const safetensors::Entry& stored = entry(found->second);
  const std::string& file = files_[found->second.file].name();
  if (!same_shape(stored, shape)) {
    problems.push_back(fmt::format("{}: tensor '{}' has shape ({}), expected {}", file, stored.name,
                                   fmt::join(stored.shape, ", "), to_string(shape)));
  } else if (!safetensors::is_readable_dtype(stored.dtype)) {
    problems.push_back(fmt::format("{}: tensor '{}' is {}; only F64, F32, F16 and BF16 are read",
                                   file, stored.name, stored.dtype));
  }
}

DType HfWeights::dtype() const {
  for (const DType half : {DType::bf16, DType::f16}) {
    const bool all = std::all_of(tensors_.begin(), tensors_.end(), [&](const auto& tensor) {
      return entry(tensor.second).dtype == safetensors::dtype_name(half);
    });
    if (all) return half;
  }
  return DType::f32;
}

void HfWeights::read(const ParameterSpec& spec, std::int64_t begin, std::span<float> values) const {
  const auto found = tensors_.find(spec.name);
  DSTRAIN_CHECK(found != tensors_.end(), "{} was not among the parameters", spec.name);
  const safetensors::File& file = files_[found->second.file];
  file.read(entry(found->second), begin, values);
  if (const std::int64_t bad = find_not_finite(begin, values); bad >= 0) {
    fail(ErrorCode::input,
         "{}: tensor '{}' holds {} at {}: weights must be finite; give a model that is whole",
         file.name(), printable(entry(found->second).name),
         values[static_cast<std::size_t>(bad - begin)], index_text(spec.shape, bad));
  }
  for (const std::string& name : tied_to(spec)) check_tied({name, spec.name}, begin, values);
}

void HfWeights::check_tied(const HfNames::Tied& tied,
                           std::int64_t begin,
                           std::span<const float> expected) const {
  const TensorIndex index = tensors_.at(std::string(tied.name));
  std::array<float, 4096> piece{};
  for (std::size_t done = 0; done < expected.size(); done += piece.size()) {
    const auto found = std::span(piece).first(std::min(piece.size(), expected.size() - done));
    const auto wanted = expected.subspan(done, found.size());
    const std::int64_t first = begin + static_cast<std::int64_t>(done);
    files_[index.file].read(entry(index), first, found);
    const auto differs = std::ranges::mismatch(found, wanted, same_bits);
    if (differs.in1 == found.end()) continue;
    fail(ErrorCode::input,
         "{}: {} differs from {} (element {}: {} and {}), but the model ties them",
         files_[index.file].name(), tied.name, tied.parameter,
         first + (differs.in1 - found.begin()), *differs.in1, *differs.in2);
  }
}

}  // namespace dstrain::model
