#pragma once
#include <span>
#include <string>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
class ParseError;
}  // namespace CLI

namespace dstrain::launcher {

/// What is wrong with an option's value or its place, in the words of our own checks.
std::string describe(const CLI::ParseError& error);

/// Makes the options of `app` and its subcommands take only what their types allow: numbers, but
/// neither "", " 5", "nan" nor "inf", and true or false. CLI11 by itself reads "" as not given,
/// and "010" as 8.
void check_typed_values(CLI::App& app);

/// Lets the options of `app` that take a text, but for the `exempt` ones ("--include"), take no
/// empty one.
void refuse_empty_texts(CLI::App& app, std::span<const std::string_view> exempt);

/// Reads `words` into the options of `app`, which may have subcommands. '-' and '_' are the same
/// within an option's name. Throws Error{usage} that begins with `tool`, "checkpoint export", and
/// names the first option that is unknown ("did you mean"), or else the mistake; what CLI11 throws
/// when help is asked for goes through. `hint` says what to do instead of an option that is
/// unknown,
/// "--num_beams", or nothing.
void parse_option_words(CLI::App& app,
                        std::span<const std::string> words,
                        std::string_view tool,
                        std::string_view (*hint)(std::string_view name) = nullptr);

}  // namespace dstrain::launcher
