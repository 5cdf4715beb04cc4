#include "runtime/config/schema.h"

#include <algorithm>
#include <map>
#include <string>

namespace dstrain::config {
namespace {

std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

std::string_view name_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::vector<Key> joined() {
  std::vector<Key> keys;
  for (const auto table : {top_level_keys(), zero_keys(), offload_keys(), optimizer_keys(),
                           precision_keys(), monitor_keys(), runtime_keys(), data_keys()}) {
    keys.insert(keys.end(), table.begin(), table.end());
  }
  return keys;
}

std::map<std::string_view, const Key*> indexed() {
  std::map<std::string_view, const Key*> index;
  for (const Key& key : all_keys()) index.emplace(key.path, &key);
  return index;
}

}  // namespace

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = joined();
  return keys;
}

const Key* find_key(std::string_view path) {
  static const std::map<std::string_view, const Key*> index = indexed();
  const auto found = index.find(path);
  return found == index.end() ? nullptr : found->second;
}

const Alias* find_alias(std::string_view path) {
  const auto all = aliases();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Alias& alias) { return alias.path == path; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string_view> names_in(std::string_view prefix) {
  std::vector<std::string_view> names;
  for (const Key& key : all_keys()) {
    if (parent_of(key.path) == prefix) names.push_back(name_of(key.path));
  }
  for (const Alias& alias : aliases()) {
    if (parent_of(alias.path) == prefix) names.push_back(name_of(alias.path));
  }
  return names;
}

std::vector<std::string_view> homes_of(std::string_view name, Homes which) {
  std::vector<std::string_view> homes;
  const auto consider = [&](std::string_view path, const Key& key) {
    if (key.status == KeyStatus::unread || key.status == KeyStatus::refused) return;
    const bool detail = key.status == KeyStatus::inert;
    if (name_of(path) == name && detail == (which == Homes::details)) {
      homes.push_back(parent_of(path));
    }
  };
  for (const Key& key : all_keys()) consider(key.path, key);
  for (const Alias& alias : aliases()) consider(alias.path, *find_key(alias.canonical));
  return homes;
}

std::string_view unbuilt_feature(const Key& key) {
  for (std::string_view path = key.path; !path.empty(); path = parent_of(path)) {
    const Key* const section = find_key(path);
    if (section->status == KeyStatus::off_only) return section->note;
    const Key* const enabled = find_key(std::string(path) + ".enabled");
    if (enabled != nullptr && enabled->status == KeyStatus::off_only) return enabled->note;
  }
  return {};
}

std::vector<std::string_view> split_choices(std::string_view choices) {
  std::vector<std::string_view> parts;
  while (!choices.empty()) {
    const std::size_t bar = choices.find('|');
    parts.push_back(choices.substr(0, bar));
    choices = bar == std::string_view::npos ? std::string_view{} : choices.substr(bar + 1);
  }
  return parts;
}

}  // namespace dstrain::config
