#include "runtime/model/hf_names.h"

#include <algorithm>
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
  // Uses the newer name if the file has it; both are one setting.
  const bool newer = document.contains("dtype");
  if (newer) document.erase("torch_dtype");
  document[newer ? "dtype" : "torch_dtype"] = torch_dtype_name(dtype);
  return document.dump(2) + "\n";
}

std::string with_text_tokens(std::string_view config_json, const TextTokens& tokens) {
  parse_json_object(config_json, "config.json");
  auto document = nlohmann::ordered_json::parse(config_json);
  for (const auto& [key, id] :
       {std::pair("bos_token_id", tokens.begin), std::pair("eos_token_id", tokens.end)}) {
    const nlohmann::ordered_json named = id ? nlohmann::ordered_json(*id) : nullptr;
    const nlohmann::ordered_json& before = document[key];
    const bool listed =
        before.is_array() && std::find(before.begin(), before.end(), named) != before.end();
    if (!listed) document[key] = named;
  }
  return document.dump(2) + "\n";
}

}  // namespace dstrain::model
