#include "runtime/model/rope_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/model/config_fields.h"

namespace dstrain::model {
namespace {

using Json = nlohmann::json;
using Rope = RopeScaling::Kind;

using RopeName = std::pair<std::string_view, Rope>;
constexpr std::array<RopeName, 5> rope_kinds{{{"default", Rope::none},
                                              {"linear", Rope::linear},
                                              {"llama3", Rope::llama3},
                                              {"yarn", Rope::yarn},
                                              {"longrope", Rope::longrope}}};
constexpr std::array<RopeName, 3> longrope_kinds{
    {{"default", Rope::none}, {"longrope", Rope::longrope}, {"su", Rope::longrope}}};

/// The section of a config.json that describes the rotation of positions.
class Section {
 public:
  Section(const Json& values, std::string key, const std::string& path)
      : values_(values), key_(std::move(key)), path_(path) {}

  [[nodiscard]] const Json* find(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void refuse(std::string_view name, std::string_view needs, const Json& value) const {
    fail(ErrorCode::input, "{}: {}.{} must be {}, got {}", path_, key_, name, needs, value.dump());
  }
  [[nodiscard]] std::optional<float> number(std::string_view name) const {
    const Json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!is_scale(*value)) refuse(name, "a number above 0", *value);
    return value->get<float>();
  }
  [[noreturn]] void miss(std::string_view name) const {
    fail(ErrorCode::input, "{}: {} has no {}", path_, key_, name);
  }
  [[nodiscard]] float needed(std::string_view name) const {
    const auto value = number(name);
    if (!value) miss(name);
    return *value;
  }
  /// Reads a list with one number above 0 for each frequency of a rotary embedding.
  [[nodiscard]] std::vector<float> needed_numbers(std::string_view name) const;
  [[nodiscard]] Rope kind(std::span<const RopeName> kinds) const;
  /// Checks that the section is the same for all layers.
  void check_plain() const;

 private:
  static bool is_scale(const Json& value) {
    constexpr float most = 1e9F;
    return value.is_number() && value.get<float>() > 0 && value.get<float>() < most;
  }

  const Json& values_;
  std::string key_;
  const std::string& path_;
};

std::vector<float> Section::needed_numbers(std::string_view name) const {
  const Json* const values = find(name);
  if (values == nullptr) miss(name);
  constexpr std::size_t most = ops::Rotary::dims_max / 2;
  if (!values->is_array() || values->size() > most || !std::ranges::all_of(*values, is_scale)) {
    refuse(name, fmt::format("up to {} numbers above 0", most), *values);
  }
  return values->get<std::vector<float>>();
}

Rope Section::kind(std::span<const RopeName> kinds) const {
  std::optional<Rope> stated;
  for (const char* const key : {"rope_type", "type"}) {
    const Json* const type = find(key);
    if (type == nullptr) continue;
    const auto known =
        std::ranges::find_if(kinds, [&](const RopeName& kind) { return *type == kind.first; });
    if (known == kinds.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, kind] : kinds) names.push_back(name);
      fail(ErrorCode::input, "{}: {}.{} is {}; only {} are built", path_, key_, key, type->dump(),
           quoted_list(names));
    }
    if (stated && *stated != known->second) {
      fail(ErrorCode::input, "{}: {}.rope_type is {}, but {}.type is {}; keep one", path_, key_,
           find("rope_type")->dump(), key_, type->dump());
    }
    stated = known->second;
  }
  return stated.value_or(Rope::none);
}

void Section::check_plain() const {
  for (const auto& [name, value] : values_.items()) {
    if (value.is_object()) {
      fail(ErrorCode::input, "{}: {}.{}: only the same rotations for all layers are supported",
           path_, key_, name);
    }
  }
}

/// Rejects a config.json that rotates only some of the dimensions of a head.
void check_whole_heads(const Json& values, const std::string& path) {
  const auto part = values.find("partial_rotary_factor");
  if (part == values.end() || part->is_null() || *part == 1) return;
  fail(ErrorCode::input, "{}: partial_rotary_factor is {}; only 1.0 is built", path, part->dump());
}

std::int64_t original_positions(const Json& document, const Section& section) {
  constexpr std::string_view name = "original_max_position_embeddings";
  const auto top = document.find(name);
  const bool at_top = top != document.end() && !top->is_null();
  const Json* const own = section.find(name);
  const Json* const value = at_top ? &*top : own;
  if (value == nullptr) section.miss(name);
  if (own != nullptr && *own != *value) {
    section.refuse(name, fmt::format("{}, as {} beside it is", value->dump(), name), *own);
  }
  constexpr std::int64_t most = 1 << 24;
  const bool whole = value->is_number_integer();
  if (!whole || value->get<std::int64_t>() < 1 || value->get<std::int64_t>() > most) {
    section.refuse(name, "a whole number above 0", *value);
  }
  return value->get<std::int64_t>();
}

/// A value that the section repeats from the family's own key must be the same.
void check_original_positions(const Section& section, std::int64_t original_positions) {
  constexpr std::string_view name = "original_max_position_embeddings";
  const Json* const value = section.find(name);
  if (value == nullptr || *value == original_positions) return;
  section.refuse(name, fmt::format("{}, as {} is", original_positions, name), *value);
}

void read_longrope(RopeScaling& scaling, const Section& section) {
  scaling.factor = section.number("factor").value_or(0.0F);
  scaling.attention_factor = section.number("attention_factor").value_or(0.0F);
  scaling.short_factors = section.needed_numbers("short_factor");
  scaling.long_factors = section.needed_numbers("long_factor");
}

/// As in transformers: one value for sequences of all lengths.
float longrope_magnitude(const RopeScaling& scaling, std::int64_t positions) {
  if (scaling.attention_factor > 0) return scaling.attention_factor;
  const auto original = static_cast<double>(scaling.original_positions);
  const double factor = scaling.factor > 0 ? static_cast<double>(scaling.factor)
                                           : static_cast<double>(positions) / original;
  if (factor <= 1) return 1;
  return static_cast<float>(std::sqrt(1 + std::log(factor) / std::log(original)));
}

/// As in the paper (Peng et al. 2023), and with DeepSeek's two scales.
float yarn_attention_factor(const Section& section, float factor) {
  if (const auto given = section.number("attention_factor")) return *given;
  const auto scale = [factor](float by) {
    return factor <= 1 ? 1.0F : 0.1F * by * std::log(factor) + 1.0F;
  };
  const auto mscale = section.number("mscale");
  const auto all = section.number("mscale_all_dim");
  return mscale && all ? scale(*mscale) / scale(*all) : scale(1);
}

void read_yarn(RopeScaling& scaling, const Section& section) {
  scaling.beta_fast = section.number("beta_fast").value_or(scaling.beta_fast);
  scaling.beta_slow = section.number("beta_slow").value_or(scaling.beta_slow);
  scaling.attention_factor = yarn_attention_factor(section, scaling.factor);
  if (const Json* const truncate = section.find("truncate")) {
    if (!truncate->is_boolean()) section.refuse("truncate", "true or false", *truncate);
    scaling.truncate = truncate->get<bool>();
  }
}

constexpr double whole_turn = 2 * std::numbers::pi;

double scale_llama3(double frequency, const RopeScaling& s) {
  const auto [low, high] =
      std::pair(static_cast<double>(s.low_freq_factor), static_cast<double>(s.high_freq_factor));
  const double turns = static_cast<double>(s.original_positions) * frequency / whole_turn;
  const double slow = frequency / static_cast<double>(s.factor);
  if (turns < low) return slow;
  if (turns > high) return frequency;
  const double smooth = (turns - low) / (high - low);
  return (1 - smooth) * slow + smooth * frequency;
}

/// The range of frequencies in which yarn blends: it leaves those before it and divides those after
/// it.
struct YarnRange {
  YarnRange(std::int64_t dims, double theta, const RopeScaling& s) {
    // The index of the frequency that makes that many turns within the original positions.
    const auto index = [&](float turns) {
      const double length =
          static_cast<double>(s.original_positions) / (static_cast<double>(turns) * whole_turn);
      return static_cast<double>(dims) * std::log(length) / (2 * std::log(theta));
    };
    begin = index(s.beta_fast);
    end = index(s.beta_slow);
    if (s.truncate) {
      begin = std::floor(begin);
      end = std::ceil(end);
    }
    begin = std::max(begin, 0.0);
    end = std::min(end, static_cast<double>(dims - 1));
    if (begin == end) end += 0.001;
  }
  [[nodiscard]] double scale(double frequency, std::int64_t i, double factor) const {
    const double part = std::clamp((static_cast<double>(i) - begin) / (end - begin), 0.0, 1.0);
    return frequency / factor * part + frequency * (1 - part);
  }
  double begin;
  double end;
};

/// Returns theta^(2 i / dims).
float wavelength(float theta, std::int64_t i, std::int64_t dims) {
  return std::pow(theta, static_cast<float>(2 * i) / static_cast<float>(dims));
}

ops::Rotary make_longrope(const RotarySizes& sizes, float theta, const RopeScaling& scaling) {
  const auto count = static_cast<std::size_t>(sizes.dims / 2);
  DSTRAIN_CHECK(scaling.short_factors.size() == count && scaling.long_factors.size() == count,
                "{} features turn, {} and {} factors", sizes.dims, scaling.short_factors.size(),
                scaling.long_factors.size());
  ops::Rotary rotary{.dims = sizes.dims,
                     .magnitude = longrope_magnitude(scaling, sizes.positions),
                     .short_positions = scaling.original_positions};
  for (std::size_t i = 0; i < count; ++i) {
    const float length = wavelength(theta, static_cast<std::int64_t>(i), sizes.dims);
    rotary.frequencies[i] = 1.0F / (scaling.short_factors[i] * length);
    rotary.long_frequencies[i] = 1.0F / (scaling.long_factors[i] * length);
  }
  return rotary;
}

RopeScaling read_section(const RopeSection& stated,
                         const Json& document,
                         const std::string& path,
                         const RopeKeys& keys) {
  RopeScaling scaling{.original_positions = keys.original_positions};
  const Section section(*stated.values, stated.key, path);
  section.check_plain();
  const bool has_original = keys.original_positions > 0;
  scaling.kind = has_original ? section.kind(longrope_kinds) : section.kind(rope_kinds);
  if (has_original) check_original_positions(section, keys.original_positions);
  if (scaling.kind == Rope::none) {
    (void)section.number("factor");  // without effect, but not a wrong one
    return scaling;
  }
  if (!has_original && scaling.kind != Rope::linear) {
    scaling.original_positions = original_positions(document, section);
  }
  if (scaling.kind == Rope::longrope) {
    read_longrope(scaling, section);
    return scaling;
  }
  scaling.factor = section.needed("factor");
  if (scaling.kind == Rope::yarn) read_yarn(scaling, section);
  if (scaling.kind != Rope::llama3) return scaling;
  scaling.low_freq_factor = section.needed("low_freq_factor");
  scaling.high_freq_factor = section.needed("high_freq_factor");
  if (!(scaling.low_freq_factor < scaling.high_freq_factor)) {
    section.refuse("high_freq_factor", "above low_freq_factor", *section.find("high_freq_factor"));
  }
  return scaling;
}

}  // namespace

std::vector<RopeSection> rope_sections(const Json& document, const std::string& path) {
  std::vector<RopeSection> sections;
  for (const char* const key : {"rope_parameters", "rope_scaling"}) {
    const auto found = document.find(key);
    if (found == document.end() || found->is_null()) continue;
    if (!found->is_object()) {
      fail(ErrorCode::input, "{}: {} must be null or an object, got {}", path, key, found->dump());
    }
    if (!found->empty()) sections.push_back({key, &*found});
  }
  return sections;
}

RopeScaling read_rope_scaling(const Json& document, const std::string& path, const RopeKeys& keys) {
  if (!keys.partial) check_whole_heads(document, path);
  const std::vector<RopeSection> sections = rope_sections(document, path);
  std::optional<RopeScaling> scaling;
  for (const RopeSection& section : sections) {
    if (!keys.partial) check_whole_heads(*section.values, path);
    const RopeScaling stated = read_section(section, document, path, keys);
    if (scaling && *scaling != stated) {
      fail(ErrorCode::input,
           "{}: rope_parameters is {} and rope_scaling {}: transformers reads rope_scaling alone, "
           "without the other's rope_theta; put all of it into one of them and remove the other",
           path, sections.front().values->dump(), section.values->dump());
    }
    scaling = stated;
  }
  return scaling.value_or(RopeScaling{.original_positions = keys.original_positions});
}

ops::Rotary make_rotary(const RotarySizes& sizes, float theta, const RopeScaling& scaling) {
  const std::int64_t dims = sizes.dims;
  if (scaling.kind == Rope::longrope) return make_longrope(sizes, theta, scaling);
  DSTRAIN_CHECK(dims <= ops::Rotary::dims_max && dims % 2 == 0, "{} features turn", dims);
  ops::Rotary rotary{.dims = dims};
  const auto factor = static_cast<double>(scaling.factor);
  for (std::int64_t i = 0; i < dims / 2; ++i) {
    auto frequency = static_cast<double>(1.0F / wavelength(theta, i, dims));
    if (scaling.kind == Rope::linear) frequency /= factor;
    if (scaling.kind == Rope::llama3) frequency = scale_llama3(frequency, scaling);
    if (scaling.kind == Rope::yarn) {
      const YarnRange range(dims, static_cast<double>(theta), scaling);
      frequency = range.scale(frequency, i, factor);
    }
    rotary.frequencies[static_cast<std::size_t>(i)] = static_cast<float>(frequency);
  }
  if (scaling.kind == Rope::yarn) rotary.magnitude = scaling.attention_factor;
  return rotary;
}

std::string to_json_text(const RopeScaling& scaling) {
  const auto decimals = [](const std::vector<float>& factors) {
    std::vector<double> numbers(factors.size());
    std::ranges::transform(factors, numbers.begin(), shortest_decimal);
    return numbers;
  };
  if (scaling.kind == Rope::none) return "null";
  nlohmann::ordered_json values;
  for (const auto& [name, kind] : rope_kinds) {
    if (kind == scaling.kind) values["rope_type"] = name;
  }
  if (scaling.factor > 0) values["factor"] = shortest_decimal(scaling.factor);
  if (scaling.kind == Rope::longrope) {
    values["short_factor"] = decimals(scaling.short_factors);
    values["long_factor"] = decimals(scaling.long_factors);
    if (scaling.attention_factor > 0) {
      values["attention_factor"] = shortest_decimal(scaling.attention_factor);
    }
  }
  if (scaling.kind == Rope::llama3) {
    values["low_freq_factor"] = shortest_decimal(scaling.low_freq_factor);
    values["high_freq_factor"] = shortest_decimal(scaling.high_freq_factor);
  }
  if (scaling.kind == Rope::yarn) {
    values["beta_fast"] = shortest_decimal(scaling.beta_fast);
    values["beta_slow"] = shortest_decimal(scaling.beta_slow);
    values["attention_factor"] = shortest_decimal(scaling.attention_factor);
    values["truncate"] = scaling.truncate;
  }
  if (scaling.kind != Rope::linear) {
    values["original_max_position_embeddings"] = scaling.original_positions;
  }
  return values.dump();
}

}  // namespace dstrain::model
