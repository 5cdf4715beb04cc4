#include "launcher/plan/option_words.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/base/suggest.h"

namespace dstrain::launcher {
namespace {

/// Not "-", which names a stream, and not a negative number.
bool is_option(const std::string& word) {
  if (word.starts_with("--")) return word.size() > 2;
  return word.size() > 1 && word[0] == '-' &&
         std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

std::vector<std::string> names_in(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not for users
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string with_underscores(std::string name) {
  if (name.starts_with("--")) std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

/// The tool whose words are read.
struct OptionTool {
  std::string_view name;
  std::string_view (*hint)(std::string_view name) = nullptr;
};

[[noreturn]] void refuse_unknown(const CLI::App& app,
                                 const std::string& name,
                                 const OptionTool& tool) {
  const std::string_view hint =
      tool.hint == nullptr ? std::string_view() : tool.hint(with_underscores(name));
  if (!hint.empty()) fail(ErrorCode::usage, "{}: unknown option {}; {}", tool.name, name, hint);
  const std::vector<std::string> names = names_in(app);
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = suggest(name, views);
  if (!near.empty()) {
    fail(ErrorCode::usage, "{}: unknown option {}; did you mean {}?", tool.name, name, near);
  }
  fail(ErrorCode::usage, "{}: unknown option {}; see dstrain {} --help", tool.name, name,
       tool.name.substr(0, tool.name.find(' ')));
}

/// The name that a word gives an option, up to its value: "--num_gpus=2", "-tX".
std::string name_in(const std::string& word) {
  if (!word.starts_with("--")) return word.substr(0, 2);
  return word.substr(0, word.find('='));
}

/// The first word takes a value; the name of another option is probably not meant as one.
void require_value(const CLI::App& app,
                   std::span<const std::string> words,
                   const OptionTool& tool) {
  if (words.size() < 2) return;
  const std::string& next = words[1];
  if (!next.starts_with("--") || !is_option(next)) return;
  if (app.get_option_no_throw(with_underscores(name_in(next))) == nullptr) return;
  fail(ErrorCode::usage,
       "{}: {} needs a value, but {} follows; if that is meant as the value, write {}={}",
       tool.name, words[0], next, words[0], next);
}

/// The first word names an option; refuses a truth value that is empty, as from an unset variable.
void refuse_empty_truth(const CLI::Option& option,
                        std::span<const std::string> words,
                        const OptionTool& tool) {
  const bool flag = option.get_items_expected_max() == 0;
  if (!flag && !option.get_type_name().starts_with("BOOL")) return;
  const std::string name = name_in(words[0]);
  const bool follows = words[0] == name && !flag && words.size() > 1 && words[1].empty();
  if (words[0] != name + "=" && !follows) return;
  fail(ErrorCode::usage, "{}: {}: needs a value: true or false", tool.name, name);
}

/// The words with the names of options as `app` spells them. An option's value may look like
/// another option.
std::vector<std::string> known_spellings(const CLI::App& app,
                                         std::span<const std::string> words,
                                         const OptionTool& tool) {
  std::vector<std::string> spelled;
  int values = 0;  // that the option before still takes
  for (std::size_t at = 0; at < words.size(); ++at) {
    std::string word = words[at];
    if (values > 0) {
      --values;
    } else if (word == "--") {
      spelled.insert(spelled.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
      break;
    } else if (const std::string plain = with_plain_dashes(word);
               !plain.empty() &&
               app.get_option_no_throw(with_underscores(name_in(plain))) != nullptr) {
      fail(ErrorCode::usage, "{}: {}: begins with a typographic dash; write {}", tool.name, word,
           plain);
    } else if (is_option(word)) {
      const std::string name = name_in(word);
      const CLI::Option* const option = app.get_option_no_throw(with_underscores(name));
      if (option == nullptr && !app.get_allow_extras()) refuse_unknown(app, name, tool);
      if (option != nullptr) {
        if (word.size() == name.size()) values = option->get_items_expected_min();
        refuse_empty_truth(*option, words.subspan(at), tool);
        if (values > 0) require_value(app, words.subspan(at), tool);
        word.replace(0, name.size(), with_underscores(name));
      }
    }
    spelled.push_back(std::move(word));
  }
  return spelled;
}

std::string not_a_number(std::string_view word) {
  return fmt::format("must be a number, got \"{}\"", word);
}

/// Returns what is wrong with the word. CLI11 would read "010" as 8, so it gets 10.
std::string take_whole_number(std::string& word) {
  if (const auto number = parse_number<std::int64_t>(word)) {
    word = std::to_string(*number);
    return "";
  }
  return parse_number<std::uint64_t>(word) ? "" : not_a_number(word);
}

std::string take_finite_number(const std::string& word) {
  const std::optional<double> number = parse_number<double>(word);
  return number && std::isfinite(*number) ? "" : not_a_number(word);
}

std::string check_truth(const std::string& word) {
  bool truth = false;
  if (CLI::detail::lexical_cast(word, truth)) return "";
  return fmt::format("must be true or false, got \"{}\"", word);
}

/// The subcommand that the words begin with, else `app`.
const CLI::App& app_of(const CLI::App& app, std::span<const std::string> words) {
  const auto named = app.get_subcommands(
      [&](const CLI::App* one) { return !words.empty() && one->get_name() == words.front(); });
  return named.empty() ? app : *named.front();
}

/// "--device_memory and --host_memory are required": names all missing options, not only the first.
std::string describe_missing(const CLI::App& app, const CLI::RequiredError& error) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_required() && option->count() == 0) names.push_back(option->get_name());
  }
  if (names.empty()) return error.what();  // a subcommand is
  return fmt::format("{} {} required", fmt::join(names, " and "), names.size() == 1 ? "is" : "are");
}

/// "N" of "INT:INT in [1 - 4096]", "llmc|megatron" of "TEXT:{llmc,megatron}".
std::string plain_type(const std::string& type) {
  if (const std::size_t choices = type.find(":{"); choices != type.npos) {
    std::string names = type.substr(choices + 2, type.find('}') - choices - 2);
    std::ranges::replace(names, ',', '|');
    return names;
  }
  const std::string kind = type.substr(0, type.find(':'));
  if (kind == "INT" || kind == "UINT") return "N";
  return kind == "FLOAT" ? "X" : kind;
}

}  // namespace

std::string describe(const CLI::ParseError& error) {
  const std::string_view text = error.what();
  constexpr std::string_view start = "Could not convert: ";
  constexpr std::string_view between = " = ";
  const std::size_t at = text.find(between);
  if (!text.starts_with(start) || at == text.npos) return std::string(text);
  return fmt::format("{}: {}", text.substr(start.size(), at - start.size()),
                     not_a_number(text.substr(at + between.size())));
}

void check_typed_values(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) {
    const std::string type = option->get_type_name();  // and what CLI11's own checks say
    if (type.starts_with("INT") || type.starts_with("UINT")) {
      option->transform(CLI::Validator(take_whole_number, ""));
    } else if (type.starts_with("FLOAT")) {
      option->transform(CLI::Validator(take_finite_number, ""));
    } else if (type.starts_with("BOOL")) {
      option->check(CLI::Validator(check_truth, ""));
    }
  }
  for (CLI::App* const command : app.get_subcommands(nullptr)) check_typed_values(*command);
}

void show_plain_types(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) {
    if (option->get_type_size() == 0 || !option->get_option_text().empty()) continue;
    std::string text = plain_type(option->get_type_name());
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (option->get_required()) text += " (required)";
    option->option_text(text);
  }
  for (CLI::App* const tool : app.get_subcommands([](CLI::App*) { return true; })) {
    show_plain_types(*tool);
  }
}

void refuse_empty_texts(CLI::App& app, std::span<const std::string_view> exempt) {
  for (CLI::Option* const option : app.get_options()) {
    const bool may_be_empty = std::ranges::any_of(
        exempt, [&](std::string_view name) { return option->check_name(std::string(name)); });
    if (may_be_empty || !option->get_type_name().starts_with("TEXT")) continue;
    const auto check = [](const std::string& word) {
      return std::string(word.empty() ? "must not be empty" : "");
    };
    option->check(CLI::Validator(check, ""));
  }
}

void parse_option_words(CLI::App& app,
                        std::span<const std::string> words,
                        std::string_view tool,
                        std::string_view (*hint)(std::string_view name)) {
  check_typed_values(app);
  std::vector<std::string> reversed = known_spellings(app_of(app, words), words, {tool, hint});
  std::ranges::reverse(reversed);  // as CLI11 wants them
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    throw;
  } catch (const CLI::ExtrasError&) {
    fail(ErrorCode::usage, "{}: \"{}\" does not belong here; see dstrain {} --help", tool,
         app.remaining(true).front(), tool.substr(0, tool.find(' ')));
  } catch (const CLI::RequiredError& error) {
    fail(ErrorCode::usage, "{}: {}; see dstrain {} --help", tool,
         describe_missing(app_of(app, words), error), tool.substr(0, tool.find(' ')));
  } catch (const CLI::ParseError& error) {
    fail(ErrorCode::usage, "{}: {}; see dstrain {} --help", tool, describe(error),
         tool.substr(0, tool.find(' ')));
  }
}

}  // namespace dstrain::launcher
