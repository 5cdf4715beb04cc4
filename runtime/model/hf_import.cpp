#include "runtime/model/hf_import.h"

#include <algorithm>
#include <unordered_set>

#include "runtime/base/check.h"
#include "runtime/base/error.h"
#include "runtime/model/hf_directory.h"

namespace dstrain::model {
namespace {

constexpr std::string_view prefix = "transformer.";

std::string_view without_prefix(std::string_view name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

/// Causal masks that old exports carry, and the head that is tied to wte.weight.
bool is_ignorable(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name == "lm_head.weight";
}

bool same_shape(const safetensors::Entry& entry, const Shape& shape) {
  const auto extents = shape.extents();
  return std::equal(entry.shape.begin(), entry.shape.end(), extents.begin(), extents.end());
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

HfWeights::HfWeights(const std::string& directory, std::span<const ParameterSpec> parameters)
    : files_(open_hf_directory(directory)) {
  std::vector<std::string> problems;
  std::unordered_set<std::string_view> wanted;
  for (const ParameterSpec& spec : parameters) wanted.insert(spec.name);
  for (std::size_t file = 0; file < files_.size(); ++file) {
    const auto& entries = files_[file].entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string_view name = without_prefix(entries[i].name);
      if (wanted.count(name) == 0) {
        if (!is_ignorable(name)) {
          problems.push_back(fmt::format("{}: tensor '{}' is no parameter of this model",
                                         files_[file].name(), entries[i].name));
        }
      } else if (!places_.emplace(name, Place{file, i}).second) {
        problems.push_back(fmt::format("{}: tensor '{}' is there twice, with and without '{}'",
                                       files_[file].name(), name, prefix));
      }
    }
  }
  for (const ParameterSpec& spec : parameters) {
    const auto found = places_.find(spec.name);
    if (found == places_.end()) {
      problems.push_back(fmt::format("{}: tensor '{}' of shape {} is missing", directory, spec.name,
                                     to_string(spec.shape)));
      continue;
    }
    const safetensors::Entry& stored = entry(found->second);
    const std::string& name = files_[found->second.file].name();
    if (!same_shape(stored, spec.shape)) {
      problems.push_back(fmt::format("{}: tensor '{}' has shape ({}), expected {}", name,
                                     stored.name, fmt::join(stored.shape, ", "),
                                     to_string(spec.shape)));
    } else if (!safetensors::is_readable_dtype(stored.dtype)) {
      problems.push_back(fmt::format("{}: tensor '{}' is {}; only F32, F16 and BF16 are read", name,
                                     stored.name, stored.dtype));
    }
  }
  if (!problems.empty()) fail_listing(problems);
}

DType HfWeights::dtype() const {
  const bool all_bf16 = std::all_of(places_.begin(), places_.end(), [this](const auto& place) {
    return entry(place.second).dtype == "BF16";
  });
  return all_bf16 ? DType::bf16 : DType::f32;
}

void HfWeights::read(const ParameterSpec& spec, std::int64_t begin, std::span<float> values) const {
  const auto found = places_.find(spec.name);
  DSTRAIN_CHECK(found != places_.end(), "{} was not among the parameters", spec.name);
  files_[found->second.file].read(entry(found->second), begin, values);
}

}  // namespace dstrain::model
