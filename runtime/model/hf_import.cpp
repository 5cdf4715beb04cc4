#include "runtime/model/hf_import.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/model/finite_values.h"
#include "runtime/model/hf_directory.h"
#include "runtime/model/hf_names.h"

namespace dstrain::model {
namespace {

constexpr const char* embedding = "wte.weight";
constexpr const char* head = "lm_head.weight";  ///< tied to it

std::string_view without_prefix(std::string_view name) {
  return name.starts_with(hf_prefix) ? name.substr(hf_prefix.size()) : name;
}

/// Causal masks that old exports carry.
bool is_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

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

HfWeights::HfWeights(const std::string& directory, std::span<const ParameterSpec> parameters)
    : directory_(directory), files_(open_hf_directory(directory)) {
  std::vector<std::string> problems;
  std::unordered_set<std::string_view> wanted{head};
  for (const ParameterSpec& spec : parameters) wanted.insert(spec.name);
  find_tensors(wanted, problems);
  for (const ParameterSpec& spec : parameters) {
    check_stored(spec.name, spec.shape, problems);
    if (spec.name == embedding && places_.contains(head)) check_stored(head, spec.shape, problems);
  }
  if (!problems.empty()) fail_listing(problems);
}

void HfWeights::find_tensors(const std::unordered_set<std::string_view>& wanted,
                             std::vector<std::string>& problems) {
  for (std::size_t file = 0; file < files_.size(); ++file) {
    const auto& entries = files_[file].entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string_view name = without_prefix(entries[i].name);
      const bool known = wanted.count(name) > 0;
      if (!known && !is_mask(name)) {
        problems.push_back(fmt::format("{}: tensor '{}' is no parameter of this model",
                                       files_[file].name(), entries[i].name));
      }
      if (known && !places_.emplace(name, Place{file, i}).second) {
        problems.push_back(fmt::format("{}: tensor '{}' is there twice, with and without '{}'",
                                       files_[file].name(), name, hf_prefix));
      }
    }
  }
}

void HfWeights::check_stored(const std::string& name,
                             const Shape& shape,
                             std::vector<std::string>& problems) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
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
    problems.push_back(fmt::format("{}: tensor '{}' is {}; only F32, F16 and BF16 are read", file,
                                   stored.name, stored.dtype));
  }
}

DType HfWeights::dtype() const {
  for (const DType half : {DType::bf16, DType::f16}) {
    const bool all = std::all_of(places_.begin(), places_.end(), [&](const auto& place) {
      return entry(place.second).dtype == safetensors::dtype_name(half);
    });
    if (all) return half;
  }
  return DType::f32;
}

void HfWeights::read(const ParameterSpec& spec, std::int64_t begin, std::span<float> values) const {
  const auto found = places_.find(spec.name);
  DSTRAIN_CHECK(found != places_.end(), "{} was not among the parameters", spec.name);
  const safetensors::File& file = files_[found->second.file];
  file.read(entry(found->second), begin, values);
  if (const std::int64_t bad = find_not_finite(begin, values); bad >= 0) {
    fail(ErrorCode::input,
         "{}: tensor '{}' holds {} at {}: weights must be finite; give a model that is whole",
         file.name(), entry(found->second).name, values[static_cast<std::size_t>(bad - begin)],
         index_text(spec.shape, bad));
  }
  if (spec.name == embedding && places_.contains(head)) check_head(begin, values);
}

void HfWeights::check_head(std::int64_t begin, std::span<const float> embedded) const {
  const Place place = places_.at(head);
  std::array<float, 4096> piece{};
  for (std::size_t done = 0; done < embedded.size(); done += piece.size()) {
    const auto found = std::span(piece).first(std::min(piece.size(), embedded.size() - done));
    const auto expected = embedded.subspan(done, found.size());
    const std::int64_t first = begin + static_cast<std::int64_t>(done);
    files_[place.file].read(entry(place), first, found);
    const auto differs = std::ranges::mismatch(found, expected, same_bits);
    if (differs.in1 == found.end()) continue;
    fail(ErrorCode::input,
         "{}: lm_head.weight differs from wte.weight (element {}: {} and {}), but only heads that "
         "are tied to the embedding are built",
         files_[place.file].name(), first + (differs.in1 - found.begin()), *differs.in1,
         *differs.in2);
  }
}

}  // namespace dstrain::model
