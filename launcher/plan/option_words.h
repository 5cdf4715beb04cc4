#pragma once
#include <span>
#include <string>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
class ParseError;
}  // namespace CLI

namespace dstrain::launcher {

/// Describes what is wrong with an option's value or place, in the words of our own checks.
std::string describe(const CLI::ParseError& error);

/// Makes the options of `app` and its subcommands accept only what their types allow: numbers (not
/// "", " 5", "nan" or "inf"), and true or false. CLI11 by itself reads "" as not given, and "010"
/// as 8.
void check_typed_values(CLI::App& app);

/// Shows types in the help of `app` and its subcommands as people write them: "N", "X", "a|b",
/// "(required)", in place of "INT:INT in [1 - 9223372036854775807]".
void show_plain_types(CLI::App& app);

/// Makes the text options of `app`, except the `exempt` ones ("--include"), refuse an empty text.
void refuse_empty_texts(CLI::App& app, std::span<const std::string_view> exempt);

/// Reads `words` into the options of `app`, which may have subcommands. '-' and '_' are the same
/// within an option's name. Throws Error{usage} that begins with `tool`, "checkpoint export", and
/// names the first unknown option ("did you mean"), or else the mistake; passes on what CLI11
/// throws when help is asked for. `hint` returns what to use instead of an unknown option,
/// "--num_beams", or nothing.
void parse_option_words(CLI::App& app,
                        std::span<const std::string> words,
                        std::string_view tool,
                        std::string_view (*hint)(std::string_view name) = nullptr);

}  // namespace dstrain::launcher
