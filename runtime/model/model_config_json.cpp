#include <algorithm>
#include <iterator>
#include <optional>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/model/model_config.h"
#include "runtime/model/model_family.h"

namespace dstrain::model {
namespace {

using Json = nlohmann::json;
using Document = nlohmann::ordered_json;
using Access = ConfigAccess::Kind;

constexpr const char* tokenizer_key = "dstrain_tokenizer";

/// A config.json and its path.
struct Source {
  const Json& document;
  const std::string& path;

  /// Returns the value of a key; null counts as absent.
  [[nodiscard]] const Json* find(std::string_view key) const {
    const auto found = document.find(key);
    return found == document.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] bool is_null(std::string_view key) const {
    const auto found = document.find(key);
    return found != document.end() && found->is_null();
  }
  [[noreturn]] void refuse(std::string_view key, std::string_view needs, const Json& value) const {
    fail(ErrorCode::input, "{}: {} must be {}, got {}", path, key, needs, value.dump());
  }
};

void check_fixed(const Source& source, const FixedOption& option) {
  const Json* const value = source.find(option.key);
  if (value == nullptr || *value == Json::parse(option.built)) return;
  if (option.same.empty()) {
    fail(ErrorCode::input, "{}: {} is {}; only {} is built", source.path, option.key, value->dump(),
         option.built);
  }
  if (*value == Json::parse(option.same)) return;
  fail(ErrorCode::input, "{}: {} is {}; only {} and {} are built", source.path, option.key,
       value->dump(), option.built, option.same);
}

std::int64_t whole_number(const Source& source, std::string_view key, const Json& value) {
  // A number beyond 2^63 is unsigned; the range check would see it wrapped around.
  const bool whole = value.is_number_integer() &&
                     !(value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 != 0);
  if (!whole) source.refuse(key, "a whole number", value);
  return value.get<std::int64_t>();
}

ConfigValue value_of(const Source& source,
                     const ConfigField& field,
                     std::string_view key,
                     const Json& value) {
  switch (field.access.kind) {
    case Access::size:
      return whole_number(source, key, value);
    case Access::rate:
      if (!value.is_number()) source.refuse(key, "a number", value);
      return value.get<float>();
    case Access::flag:
      if (!value.is_boolean()) source.refuse(key, "true or false", value);
      return value.get<bool>();
    case Access::choice: {
      const std::int64_t choice =
          value.is_string() ? choice_named(field, value.get_ref<const std::string&>()) : -1;
      if (choice < 0) {
        fail(ErrorCode::input, "{}: {} is {}; only {} are built", source.path, key, value.dump(),
             choice_list(field));
      }
      return choice;
    }
    case Access::text:
      break;
  }
  DSTRAIN_CHECK(false, "{} is not read by the table", key);
}

/// Returns the value under the field's own name or its alias; both must agree.
std::optional<ConfigValue> stated_value(const Source& source, const ConfigField& field) {
  std::optional<ConfigValue> stated;
  for (const std::string_view key : {field.name, field.alias}) {
    const Json* const value = key.empty() ? nullptr : source.find(key);
    if (value == nullptr) continue;
    const ConfigValue found = value_of(source, field, key, *value);
    if (stated && *stated != found) {
      fail(ErrorCode::input, "{}: {} is {}, but {} is {}", source.path, field.name,
           text_of(field, *stated), key, text_of(field, found));
    }
    stated = found;
  }
  return stated;
}

/// Sets a field if the document has it. Returns whether it is derived instead: then a size is 1 so
/// far.
bool read_field(ModelConfig& config, const ConfigField& field, const Source& source) {
  if (field.access.kind == Access::text) return false;
  if (const auto stated = stated_value(source, field)) {
    field.access.set(config, *stated);
    return false;
  }
  const bool null = source.is_null(field.name);
  if (field.null_is_zero && null) field.access.set(config, std::int64_t{0});
  if (field.derived == nullptr) return false;
  if (field.access.kind == Access::flag) return true;
  const bool follows = null || field.access.get(config) == ConfigValue(std::int64_t{0});
  if (follows) field.access.set(config, std::int64_t{1});
  return follows;
}

Document written_value(const ModelConfig& config, const ConfigField& field) {
  const ConfigValue value = field.access.get(config);
  if (field.access.kind == Access::choice) return text_of(field, value);
  if (const auto* const rate = std::get_if<float>(&value)) return shortest_decimal(*rate);
  if (const auto* const flag = std::get_if<bool>(&value)) return *flag;
  const auto size = std::get<std::int64_t>(value);
  const bool null =
      (field.null_is_zero && size == 0) || (field.null_when_derived && is_derived(config, field));
  return null ? Document() : Document(size);
}

std::pair<const char*, std::optional<std::int32_t>> default_id(const ModelFamily& family,
                                                               bool begin) {
  if (begin) return {"bos_token_id", family.text_tokens.begin};
  return {"eos_token_id", family.text_tokens.end};
}

/// Removes ids of special tokens beyond the vocabulary; from a list only those.
void drop_lost_ids(Document& document, const ModelConfig& config) {
  const auto lost = [&](const Document& one) {
    return one.is_number() && one.get<double>() >= static_cast<double>(config.vocabulary());
  };
  const auto drop = [&](const char* key, const Document& otherwise) {
    const Document id = document.contains(key) ? document[key] : otherwise;
    if (lost(id)) document[key] = nullptr;
    if (!id.is_array()) return;
    Document kept = Document::array();
    std::remove_copy_if(id.begin(), id.end(), std::back_inserter(kept), lost);
    document[key] = kept.empty() ? Document() : kept;
  };
  for (const bool begin : {true, false}) {
    const auto [key, id] = default_id(config.family(), begin);
    drop(key, id ? Document(*id) : Document());
  }
  const std::optional<std::int32_t> padding = config.family().padding;
  drop("pad_token_id", padding ? Document(*padding) : Document());
}

/// Whether the source has the value in `config` of a field.
bool is_kept(const Document& source,
             const ConfigField& field,
             const ModelConfig& before,
             const ModelConfig& config) {
  if (field.access.get(before) != field.access.get(config)) return false;
  const auto stated = [&](std::string_view key) {
    return !key.empty() && source.contains(key) && !source.at(std::string(key)).is_null();
  };
  return field.derived == nullptr || stated(field.name) || stated(field.alias) ||
         is_derived(config, field) == is_derived(before, field);
}

/// Returns "bfloat16" for "torch.bfloat16".
std::string dtype_word(const Json& value) {
  std::string word = value.is_string() ? value.get<std::string>() : value.dump();
  if (word.starts_with("torch.")) word.erase(0, 6);
  return word;
}

/// transformers 5 writes dtype, 4 wrote torch_dtype. Training uses its own dtype, but the file must
/// not contradict itself.
void check_dtypes(const Source& from) {
  const Json* const newer = from.find("dtype");
  const Json* const older = from.find("torch_dtype");
  if (newer == nullptr || older == nullptr || dtype_word(*newer) == dtype_word(*older)) return;
  fail(ErrorCode::input,
       "{}: dtype is {} and torch_dtype is {}: they are one setting; leave out one", from.path,
       newer->dump(), older->dump());
}

}  // namespace

void ModelConfig::read(const std::string& text, const std::string& path) {
  const Json document = parse_json_object(text, path);
  const Source from{document, path};
  for (const FixedOption& option : family().fixed_options) check_fixed(from, option);
  if (from.find("quantization_config") != nullptr) {
    fail(ErrorCode::input, "{}: quantization_config: quantized weights cannot be trained", path);
  }
  check_dtypes(from);
  source = text;
  byte_tokens = document.value(tokenizer_key, Json()) == "byte";
  std::vector<const ConfigField*> following;
  for (const ConfigField& field : family().fields) {
    if (read_field(*this, field, from)) following.push_back(&field);
  }
  read_more(document, path);
  if (range_problems(*this).empty()) {
    for (const ConfigField* field : following) field->access.set(*this, field->derived(*this));
  }
  try {
    check();
  } catch (const Error& error) {
    fail(ErrorCode::input, "{}: {}", path, error.what());
  }
}

/// Makes the document of a model without a source.
Document ModelConfig::new_document() const {
  Document document{{"architectures", Document::array({family().architecture})},
                    {"model_type", family().model_type}};
  for (const FixedOption& option : family().fixed_options) {
    document[option.key] = Document::parse(option.built);
  }
  document["torch_dtype"] = nullptr;
  for (const ConfigField& field : family().fields) {
    if (field.access.kind == Access::text) continue;
    document[field.name] = written_value(*this, field);
    if (!field.mirror.empty()) document[field.mirror] = document[field.name];
  }
  for (const bool begin : {true, false}) {
    const auto [key, id] = default_id(family(), begin);
    document[key] = id && *id < vocabulary() ? Document(*id) : Document();
  }
  if (family().padding) {
    document["pad_token_id"] =
        *family().padding < vocabulary() ? Document(*family().padding) : Document();
  }
  return document;
}

/// Returns the source with the changes.
Document ModelConfig::changed_document() const {
  auto document = Document::parse(source);
  const std::unique_ptr<ModelConfig> before = family().defaults();
  before->read(source, "config.json");
  document["architectures"] = Document::array({family().architecture});
  for (const ConfigField& field : family().fields) {
    if (field.access.kind == Access::text) continue;
    if (!field.alias.empty() && document.contains(field.name)) {
      document.erase(std::string(field.alias));  // they agree, so one is enough
    }
    if (is_kept(document, field, *before, *this)) continue;
    document[field.name] = written_value(*this, field);
    if (!field.alias.empty()) document.erase(std::string(field.alias));
    const bool mirrored = !field.mirror.empty() && document.contains(field.mirror);
    if (mirrored) document[field.mirror] = document[field.name];
  }
  if (before->vocabulary() != vocabulary()) drop_lost_ids(document, *this);
  return document;
}

std::string ModelConfig::to_json(DType dtype) const {
  Document document = source.empty() ? new_document() : changed_document();
  write_more(document);
  if (byte_tokens) document[tokenizer_key] = "byte";
  return with_torch_dtype(document.dump(), dtype);
}

}  // namespace dstrain::model
