#include "runtime/model/hf_index.h"

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/printable.h"

namespace dstrain::model {
namespace {

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

/// Removes `expected` from the start of `text`; returns whether it was there.
bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

/// Removes one digit or more in the same way.
bool take_digits(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0;
}

}  // namespace

ShardMap parse_hf_index(std::string_view text, const std::string& path) {
  const nlohmann::json index = parse_json_object(text, path);
  const auto weights = index.find("weight_map");
  if (weights == index.end() || !weights->is_object() || weights->empty()) {
    fail(ErrorCode::input, "{}: has no weight_map of tensors to files", path);
  }
  ShardMap shard_of;
  for (const auto& [tensor, value] : weights->items()) {
    if (!value.is_string() || !is_plain_name(value.get_ref<const std::string&>())) {
      fail(ErrorCode::input,
           "{}: weight_map['{}'] is {}; it must be the plain name of a file beside the index", path,
           printable(tensor), printable(value.dump()));
    }
    shard_of.emplace(tensor, value.get<std::string>());
  }
  return shard_of;
}

std::string hf_index_text(const ShardMap& shard_of, Bytes data_bytes) {
  const nlohmann::json index{{"metadata", {{"total_size", data_bytes}}}, {"weight_map", shard_of}};
  return index.dump(2) + "\n";
}

std::string hf_shard_name(std::size_t shard, std::size_t shards, int digits) {
  return fmt::format("model-{:0{}}-of-{:0{}}.safetensors", shard + 1, digits, shards, digits);
}

bool is_hf_shard_name(std::string_view name) {
  return take(name, "model-") && take_digits(name) && take(name, "-of-") && take_digits(name) &&
         name == ".safetensors";
}

}  // namespace dstrain::model
