#include "runtime/model/hf_names.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"

namespace dstrain::model {

std::string hf_name(std::string_view prefix, std::string_view parameter) {
  return fmt::format("{}{}", parameter == hf_head ? "" : prefix, parameter);
}

std::string with_torch_dtype(std::string_view config_json, DType dtype) {
  parse_json_object(config_json, "config.json");
  auto document = nlohmann::ordered_json::parse(config_json);
  document["torch_dtype"] = torch_dtype_name(dtype);
  if (document.contains("dtype")) document["dtype"] = torch_dtype_name(dtype);
  return document.dump(2) + "\n";
}

std::string with_text_tokens(std::string_view config_json, const TextTokens& tokens) {
  parse_json_object(config_json, "config.json");
  auto document = nlohmann::ordered_json::parse(config_json);
  for (const auto& [key, id] :
       {std::pair("bos_token_id", tokens.begin), std::pair("eos_token_id", tokens.end)}) {
    document[key] = nullptr;
    if (id) document[key] = *id;
  }
  return document.dump(2) + "\n";
}

std::optional<std::int32_t> end_token(std::string_view config_json) {
  nlohmann::json id = parse_json_object(config_json, "config.json")["eos_token_id"];
  if (id.is_array() && !id.empty()) id = nlohmann::json(id.front());
  if (!id.is_number_integer()) return std::nullopt;
  return id.get<std::int32_t>();
}

}  // namespace dstrain::model
