#include "runtime/config/schema_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/shell_word.h"
#include "runtime/base/suggest.h"
#include "runtime/config/choice.h"
#include "runtime/config/native_types.h"
#include "runtime/config/train_flags.h"
#include "runtime/config/value_check.h"

namespace dstrain::config {
namespace {

using Kind = JsonValue::Kind;

std::string joined(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
}

/// Returns the only element of `names` that starts with `word`, or else the only one that contains
/// it.
std::string only_completion(std::string_view word, const std::vector<std::string_view>& names) {
  constexpr std::size_t shortest = 5;
  if (word.size() < shortest) return {};
  std::set<std::string_view> longer;
  std::set<std::string_view> around;
  for (const std::string_view name : names) {
    if (name.starts_with(word)) longer.insert(name);
    if (name.find(word) != std::string_view::npos) around.insert(name);
  }
  if (longer.size() == 1) return std::string(*longer.begin());
  return around.size() == 1 ? std::string(*around.begin()) : std::string{};
}

std::string quoted_home(std::string_view home) {
  return home.empty() ? std::string("at the top level") : fmt::format("in \"{}\"", home);
}

/// Keys under which people keep remarks or sections that they have disabled.
bool is_remark(const JsonMember& member) {
  const bool marked =
      member.key.starts_with('_') || member.key.starts_with("//") || member.key.starts_with('#');
  return marked || (member.value.is(Kind::string) && lower_case(member.key) == "comment");
}

/// Returns jq's path (".deepspeed") to an object with top-level keys inside an unknown key, at any
/// depth; empty: there is none.
std::string way_to_wrapped(const JsonMember& member) {
  const bool plain = member.key.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos;
  if (!plain) return {};
  for (const JsonMember& inner : member.value.members) {
    const std::string& key = inner.key;
    const bool known = key.find('.') == std::string::npos &&
                       (find_key(key) != nullptr || find_alias(key) != nullptr);
    if (known) return "." + member.key;
    if (const std::string way = way_to_wrapped(inner); !way.empty()) return "." + member.key + way;
  }
  return {};
}

/// Advice for an unknown key: the text, and the paths that may have been meant.
struct Advice {
  std::string text;
  std::vector<std::string> meant;
};

/// Other libraries' names for sections and for the parameters of optimizers and schedulers.
std::string_view renamed(std::string_view section, std::string_view key) {
  struct Name {
    std::string_view section, key, own;
  };
  constexpr std::string_view optimizer = "optimizer.params";
  constexpr std::string_view scheduler = "scheduler.params";
  constexpr std::array names{
      Name{"", "zero", "zero_optimization"},
      Name{"", "zero_config", "zero_optimization"},
      Name{"", "lr_scheduler", "scheduler"},
      Name{"", "per_device_train_batch_size", "train_micro_batch_size_per_gpu"},
      Name{optimizer, "learning_rate", "lr"},
      Name{optimizer, "epsilon", "eps"},
      Name{optimizer, "adam_epsilon", "eps"},
      Name{optimizer, "beta1", "betas"},
      Name{optimizer, "beta2", "betas"},
      Name{optimizer, "adam_beta1", "betas"},
      Name{optimizer, "adam_beta2", "betas"},
      Name{scheduler, "learning_rate", "warmup_max_lr"},
      Name{scheduler, "warmup_steps", "warmup_num_steps"},
      Name{scheduler, "num_warmup_steps", "warmup_num_steps"},
      Name{scheduler, "total_steps", "total_num_steps"},
      Name{scheduler, "num_training_steps", "total_num_steps"},
  };
  const auto* const found = std::ranges::find_if(
      names, [&](const Name& name) { return name.section == section && name.key == key; });
  return found == names.end() ? std::string_view{} : found->own;
}

/// Returns the option of `train` that a key names, like the Trainer's "num_epochs".
std::string_view named_option(std::string_view key) {
  const FlagRow* const row = find_flag(key);
  return row != nullptr && row->status == FlagStatus::implemented ? row->name : std::string_view{};
}

/// For a key that exists elsewhere, in a section whose feature is not built.
Advice advice_on_detail(std::string_view key, std::string_view home) {
  const std::string_view feature = unbuilt_feature(*find_key(joined(home, key)));
  const std::string unbuilt = feature.empty() ? std::string("which has no effect here")
                                              : fmt::format("and {} is not implemented", feature);
  return {fmt::format("this key belongs {}, {}; leave it out", quoted_home(home), unbuilt), {}};
}

/// `is_taken`: whether the key's value would be valid at a path.
template <class IsTaken>
Advice advice(std::string_view section, std::string_view key, const IsTaken& is_taken) {
  const auto mean = [&](std::string_view own) {
    return Advice{fmt::format("did you mean \"{}\"?", own), {joined(section, own)}};
  };
  if (const std::string_view own = renamed(section, key); !own.empty()) return mean(own);
  const std::vector<std::string_view> siblings = names_in(section);
  const std::string spelled = suggest_spelling(key, siblings);
  if (!spelled.empty()) return mean(spelled);
  std::vector<std::string_view> homes = homes_of(key, Homes::useful);
  const bool others_type = key == "type" && !section.empty();
  if (others_type) homes.clear();
  const auto takes = [&](std::string_view home) {
    return is_taken(joined(home, key));
  };
  if (std::ranges::any_of(homes, takes)) std::erase_if(homes, std::not_fn(takes));
  constexpr std::size_t too_many = 4;
  if (!homes.empty() && homes.size() < too_many) {
    Advice found;
    std::vector<std::string> places;
    for (const std::string_view home : homes) {
      places.push_back(quoted_home(home));
      found.meant.push_back(joined(home, key));
    }
    found.text = fmt::format("this key belongs {}", fmt::join(places, " or "));
    return found;
  }
  std::string likely = suggest(key, siblings);
  if (likely.empty()) likely = only_completion(key, siblings);
  if (!likely.empty() && !is_taken(joined(section, likely))) likely.clear();
  if (!likely.empty()) return mean(likely);
  if (const std::string_view option = named_option(key); !option.empty()) {
    return {fmt::format("it is an option of train: --{}", option), {}};
  }
  const std::vector<std::string_view> details = homes_of(key, Homes::details);
  const bool detail = !details.empty() && details.size() < too_many && !others_type;
  if (detail) return advice_on_detail(key, details.front());
  std::vector<std::string_view> elsewhere;
  for (const Key& known : all_keys()) {
    elsewhere.push_back(known.path.substr(known.path.rfind('.') + 1));
  }
  const std::string distant = suggest_spelling(key, elsewhere);
  const std::vector<std::string_view> owners = homes_of(distant, Homes::useful);
  if (owners.size() == 1) {
    return {fmt::format("did you mean \"{}\" {}?", distant, quoted_home(owners.front())),
            {joined(owners.front(), distant)}};
  }
  return {"DeepSpeed has no such key here", {}};
}

class Checker {
 public:
  explicit Checker(Problems& problems) : problems_(problems) {}

  CheckedConfig check(const JsonValue& root) {
    walk(root, "", "", false);
    check_replaced();
    check_types(values_, problems_);
    check_precision();
    drop_faulty();
    return {std::move(values_), std::move(faulty_)};
  }

 private:
  /// `section` is canonical, `spelled` is as in the file.
  void walk(const JsonValue& object,
            std::string_view section,
            std::string_view spelled,
            bool open) {
    const bool unbuilt = names_unbuilt_type(section, object);
    if (section.empty()) root_ = &object;
    for (const JsonMember& member : object.members) {
      const std::string written = joined(spelled, member.key);
      std::string path = joined(section, member.key);
      if (const Alias* const alias = find_alias(path)) {
        if (!alias->warning.empty()) problems_.warn(member.position, written, alias->warning);
        path = std::string(alias->canonical);
      }
      if (is_remark(member)) {
        problems_.warn(member.position, written, "has no effect: read as a remark");
      } else if (unbuilt && member.key == "params") {
        continue;  // the type was reported and has parameters of its own
      } else if (const Key* const key =
                     member.key.find('.') == std::string::npos ? find_key(path) : nullptr) {
        visit(*key, member, path, written);
      } else {
        unknown(member, section, written, open);
      }
    }
  }

  void visit(const Key& key,
             const JsonMember& member,
             const std::string& path,
             const std::string& written) {
    const auto [earlier, fresh] = spellings_.emplace(path, written);
    if (!fresh) {
      problems_.add(
          member.position, written,
          fmt::format("is another name of {}, which is given too; keep one", earlier->second));
      return;
    }
    if (path == "zero_optimization" && member.value.is(Kind::boolean)) {
      stage_from_boolean(member, written);
      return;
    }
    JsonValue kept = member.value;
    kept.members.clear();
    resolve_word(key, kept, written, problems_);
    check_value(key, kept, written, problems_);
    const bool leads_on = key.type == KeyType::section && member.value.is(Kind::object);
    if (leads_on) walk(member.value, path, written, key.open);
    values_.emplace(path, std::move(kept));
  }

  void stage_from_boolean(const JsonMember& member, const std::string& written) {
    const std::int64_t stage = member.value.boolean ? 1 : 0;
    problems_.warn(member.position, written,
                   fmt::format("deprecated form; read as {{\"stage\": {}}}", stage));
    JsonValue value;
    value.kind = Kind::number;
    value.position = member.value.position;
    value.number = static_cast<double>(stage);
    value.integer = stage;
    value.text = fmt::format("{}", stage);
    values_.emplace("zero_optimization.stage", std::move(value));
  }

  void unknown(const JsonMember& member,
               std::string_view section,
               const std::string& written,
               bool open) {
    if (section.empty() && wrapped(member)) return;
    const std::string likely = suggest(member.key, names_in(section));
    if (open && likely.empty()) {
      problems_.warn(member.position, written, "is not checked: the keys of this section vary");
      return;
    }
    const Advice meant = advice(section, member.key, [&](const std::string& path) {
      return refusal_at(path, member).empty();
    });
    const std::string refusal =
        meant.meant.empty() ? std::string{} : refusal_at(meant.meant.front(), member);
    problems_.add(member.position, written,
                  fmt::format("unknown key; {}{}", meant.text,
                              refusal.empty() ? "" : fmt::format(" ({})", refusal)));
    for (const std::string& path : meant.meant) {
      const Alias* const alias = find_alias(path);
      faulty_.emplace(alias == nullptr ? path : alias->canonical);
    }
  }

  /// Reports a configuration that is wrapped in one more object.
  bool wrapped(const JsonMember& member) {
    const std::string way = way_to_wrapped(member);
    if (way.empty()) return false;
    const bool alone = std::ranges::none_of(root_->members, [](const JsonMember& other) {
      return find_key(other.key) != nullptr || find_alias(other.key) != nullptr;
    });
    const std::string program =
        alone ? way : shell_quote(fmt::format("del(.{}) + {}", member.key, way));
    const std::filesystem::path file(problems_.file());
    const std::string target = (file.parent_path() / file.stem()).string() + "-inner.json";
    const std::string command =
        fmt::format("jq {} {} > {}", program, shell_path(file.string()), shell_path(target));
    problems_.add(member.position, member.key,
                  fmt::format("holds {}, which belong at the top level; {}",
                              alone ? "the configuration's keys" : "keys",
                              alone ? "give that object alone" : "put them there"),
                  file.extension().empty() ? "" : command);
    for (const Key& key : all_keys()) faulty_.emplace(key.path);
    return true;
  }

  /// Returns why the value would be refused at this path too, which saves the user a try; else
  /// empty.
  static std::string refusal_at(const std::string& path, const JsonMember& member) {
    const Alias* const alias = find_alias(path);
    const std::string canonical(alias == nullptr ? std::string_view(path) : alias->canonical);
    const Key* const key = find_key(canonical);
    Problems problems("");
    Checker(problems).visit(*key, member, canonical, canonical);
    const std::vector<std::string> lines = problems.lines();
    return lines.empty() ? std::string{} : lines.front();
  }

  void check_replaced() {
    for (const auto& [deprecated, by] : replacements()) {
      const auto found = values_.find(deprecated);
      if (found == values_.end()) continue;
      problems_.warn(found->second.position, deprecated, fmt::format("deprecated; now {}", by));
      if (values_.find(by) == values_.end()) continue;
      problems_.add(found->second.position, deprecated,
                    fmt::format("cannot be given together with {}, which replaces it", by));
    }
  }

  void check_precision() {
    const auto on = [&](std::string_view path) {
      const auto found = values_.find(path);
      return found != values_.end() && found->second.boolean;
    };
    if (!on("fp16.enabled") || !on("bf16.enabled")) return;
    problems_.add(values_.find("bf16.enabled")->second.position, "bf16.enabled",
                  "bf16 and fp16 cannot be enabled together");
  }

  /// Removes wrong values, which were reported, so that nothing is derived from them.
  void drop_faulty() {
    for (auto at = values_.begin(); at != values_.end();) {
      const bool faulty = problems_.any_at(at->second.position);
      if (faulty) faulty_.insert(at->first);
      at = faulty ? values_.erase(at) : std::next(at);
    }
  }

  Problems& problems_;
  const JsonValue* root_ = nullptr;
  CheckedValues values_;
  std::set<std::string, std::less<>> faulty_;
  std::map<std::string, std::string> spellings_;  // canonical path -> as first written
};

}  // namespace

CheckedConfig check_against_schema(const JsonValue& root, Problems& problems) {
  return Checker(problems).check(root);
}

}  // namespace dstrain::config
