#include "runtime/tokenizer/special_names.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/os/file.h"
#include "runtime/tokenizer/json_field.h"

namespace dstrain::tokenizer {
namespace {

constexpr Bytes config_bytes_max = 16 * mebibyte;

/// "<s>", or {"content": "<s>", ...}.
std::string name_of(const JsonField& field) {
  return field.value().is_object() ? field.member("content").text() : field.text();
}

void add_name(const std::string& name, SpecialNames& names) {
  if (!name.empty() && std::ranges::find(names.all, name) == names.all.end()) {
    names.all.push_back(name);
  }
}

/// Returns a role's name, which both files may set. For files of transformers since 4.34, which
/// list their added tokens, the first file decides; for older ones, the second one matters too.
void take_name(const JsonField& field, bool first_counts, std::optional<std::string>& name) {
  const std::string found = name_of(field);
  if (!name || name->empty()) {
    name = found;
  } else if (!first_counts && !found.empty() && found != *name) {
    field.refuse(
        fmt::format("is \"{}\", and \"{}\" in tokenizer_config.json; versions of "
                    "transformers differ in which they take: make them agree",
                    found, *name));
  }
}

void read_names(const JsonField& root, bool first_counts, SpecialNames& names) {
  constexpr std::array<const char*, 5> others{"unk_token", "sep_token", "pad_token", "cls_token",
                                              "mask_token"};
  const auto read = [&](std::string_view key, std::optional<std::string>& name) {
    const auto field = root.find(key);
    if (!field) return;
    take_name(*field, first_counts, name);
    add_name(name_of(*field), names);
  };
  read("bos_token", names.bos);
  read("eos_token", names.eos);
  for (const char* const key : others) {
    if (const auto field = root.find(key)) add_name(name_of(*field), names);
  }
  if (const auto field = root.find("additional_special_tokens")) {
    field->for_each([&](const JsonField& each) { add_name(name_of(each), names); });
  }
}

}  // namespace

SpecialNames read_special_names(const std::filesystem::path& directory) {
  SpecialNames names;
  bool first_counts = false;
  for (const char* const name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path path = directory / name;
    if (!std::filesystem::exists(path)) continue;
    const nlohmann::json document =
        parse_json_object(read_text_file(path, config_bytes_max), path.string());
    const JsonField root(document, path.string() + ": ");
    first_counts |= root.find("added_tokens_decoder").has_value();
    read_names(root, first_counts, names);
    names.add_bos |= root.flag_or("add_bos_token", false);
    names.add_eos |= root.flag_or("add_eos_token", false);
  }
  return names;
}

}  // namespace dstrain::tokenizer
