#include "runtime/model/rope_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/model/config_fields.h"

namespace dstrain::model {
namespace {

using Json = nlohmann::json;
using Rope = RopeScaling::Kind;

constexpr std::array<std::pair<std::string_view, Rope>, 4> rope_kinds{{{"default", Rope::none},
                                                                       {"linear", Rope::linear},
                                                                       {"llama3", Rope::llama3},
                                                                       {"yarn", Rope::yarn}}};

/// The section of a config.json that says how positions are rotated.
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
    constexpr float most = 1e9F;
    const Json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !(value->get<float>() > 0 && value->get<float>() < most)) {
      refuse(name, "a number above 0", *value);
    }
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
  [[nodiscard]] Rope kind() const;
  /// Of all layers alike.
  void check_plain() const;

 private:
  const Json& values_;
  std::string key_;
  const std::string& path_;
};

Rope Section::kind() const {
  const Json* const type = find("rope_type") != nullptr ? find("rope_type") : find("type");
  if (type == nullptr) return Rope::none;
  for (const auto& [name, kind] : rope_kinds) {
    if (*type == name) return kind;
  }
  fail(ErrorCode::input,
       "{}: {}.rope_type is {}; only \"default\", \"linear\", \"llama3\" and \"yarn\" are built",
       path_, key_, type->dump());
}

void Section::check_plain() const {
  for (const auto& [name, value] : values_.items()) {
    if (value.is_object()) {
      fail(ErrorCode::input, "{}: {}.{}: only rotations that all layers have alike are built",
           path_, key_, name);
    }
  }
}

/// As transformers: rope_scaling, where it says anything, before rope_parameters.
const Json* section_of(const Json& document, std::string& key, const std::string& path) {
  for (const char* const name : {"rope_scaling", "rope_parameters"}) {
    const auto found = document.find(name);
    if (found == document.end() || found->is_null()) continue;
    if (!found->is_object()) {
      fail(ErrorCode::input, "{}: {} must be null or an object, got {}", path, name, found->dump());
    }
    if (found->empty()) continue;
    key = name;
    return &*found;
  }
  return nullptr;
}

/// Older models turn some of the dimensions of a head alone.
void check_whole_heads(const Json& values, const std::string& path) {
  const auto part = values.find("partial_rotary_factor");
  if (part == values.end() || part->is_null() || *part == 1) return;
  fail(ErrorCode::input, "{}: partial_rotary_factor is {}; only 1.0 is built", path, part->dump());
}

std::int64_t original_positions(const Json& document, const Section& section) {
  constexpr std::string_view name = "original_max_position_embeddings";
  const auto top = document.find(name);
  const bool at_top = top != document.end() && !top->is_null();
  const Json* const value = at_top ? &*top : section.find(name);
  if (value == nullptr) section.miss(name);
  constexpr std::int64_t most = 1 << 24;
  const bool whole = value->is_number_integer();
  if (!whole || value->get<std::int64_t>() < 1 || value->get<std::int64_t>() > most) {
    section.refuse(name, "a whole number above 0", *value);
  }
  return value->get<std::int64_t>();
}

/// As the paper has it (Peng et al. 2023), and with DeepSeek's two scales of it.
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

/// Which frequencies yarn leaves, and which it divides: those before and behind a range.
struct YarnRange {
  YarnRange(std::int64_t dims, double theta, const RopeScaling& s) {
    // Where one makes so many turns within the original positions.
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

}  // namespace

RopeScaling read_rope_scaling(const Json& document, const std::string& path) {
  std::string key;
  const Json* const values = section_of(document, key, path);
  check_whole_heads(document, path);
  if (values != nullptr) check_whole_heads(*values, path);
  RopeScaling scaling;
  if (values == nullptr) return scaling;
  const Section section(*values, key, path);
  section.check_plain();
  scaling.kind = section.kind();
  if (scaling.kind == Rope::none) return scaling;
  if (scaling.kind != Rope::linear) {
    scaling.original_positions = original_positions(document, section);
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

ops::Rotary make_rotary(std::int64_t dims, float theta, const RopeScaling& scaling) {
  DSTRAIN_CHECK(dims <= ops::Rotary::dims_max && dims % 2 == 0, "{} features turn", dims);
  ops::Rotary rotary{.dims = dims};
  const auto factor = static_cast<double>(scaling.factor);
  for (std::int64_t i = 0; i < dims / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dims);
    auto frequency = static_cast<double>(1.0F / std::pow(theta, exponent));
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
  if (scaling.kind == Rope::none) return "null";
  nlohmann::ordered_json values;
  for (const auto& [name, kind] : rope_kinds) {
    if (kind == scaling.kind) values["rope_type"] = name;
  }
  values["factor"] = shortest_decimal(scaling.factor);
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
