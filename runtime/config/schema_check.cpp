#include "runtime/config/schema_check.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/config/choice.h"
#include "runtime/config/native_types.h"
#include "runtime/config/suggest.h"
#include "runtime/config/value_check.h"

namespace dstrain::config {
namespace {

using Kind = JsonValue::Kind;

std::string joined(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
}

/// The only one of `names` that starts with `word`, or else the only one that contains it.
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

/// Keys under which people keep remarks, or a section that they have switched off.
bool is_remark(const JsonMember& member) {
  const bool marked =
      member.key.starts_with('_') || member.key.starts_with("//") || member.key.starts_with('#');
  return marked || (member.value.is(Kind::string) && lower_case(member.key) == "comment");
}

/// What the user may have meant by an unknown key: what to say, and the paths.
struct Advice {
  std::string text;
  std::vector<std::string> meant;
};

Advice advice(std::string_view section, std::string_view key) {
  const std::vector<std::string_view> siblings = names_in(section);
  std::string likely = suggest(key, siblings);
  if (likely.empty()) likely = only_completion(key, siblings);
  if (!likely.empty()) {
    return {fmt::format("did you mean \"{}\"?", likely), {joined(section, likely)}};
  }
  std::vector<std::string> homes;
  std::vector<std::string> meant;
  for (const std::string_view home : homes_of(key)) {
    homes.push_back(quoted_home(home));
    meant.push_back(joined(home, key));
  }
  constexpr std::size_t too_many = 4;
  if (!homes.empty() && homes.size() < too_many) {
    return {fmt::format("this key belongs {}", fmt::join(homes, " or ")), std::move(meant)};
  }
  std::vector<std::string_view> elsewhere;
  for (const Key& known : all_keys())
    elsewhere.push_back(known.path.substr(known.path.rfind('.') + 1));
  const std::string distant = suggest_spelling(key, elsewhere);
  const std::vector<std::string_view> owners = homes_of(distant);
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
        continue;  // the type is told, and has parameters of its own
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
    const std::string likely = suggest(member.key, names_in(section));
    if (open && likely.empty()) {
      problems_.warn(member.position, written, "is not checked: the keys of this section vary");
      return;
    }
    const Advice meant = advice(section, member.key);
    problems_.add(member.position, written, fmt::format("unknown key; {}", meant.text));
    for (const std::string& path : meant.meant) {
      const Alias* const alias = find_alias(path);
      faulty_.emplace(alias == nullptr ? path : alias->canonical);
    }
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

  /// What is wrong has been told; nobody shall draw conclusions from it.
  void drop_faulty() {
    for (auto at = values_.begin(); at != values_.end();) {
      const bool faulty = problems_.any_at(at->second.position);
      if (faulty) faulty_.insert(at->first);
      at = faulty ? values_.erase(at) : std::next(at);
    }
  }

  Problems& problems_;
  CheckedValues values_;
  std::set<std::string, std::less<>> faulty_;
  std::map<std::string, std::string> spellings_;  // canonical path -> as first written
};

}  // namespace

CheckedConfig check_against_schema(const JsonValue& root, Problems& problems) {
  return Checker(problems).check(root);
}

}  // namespace dstrain::config
