#include <fmt/format.h>

#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"

namespace dstrain::config {
namespace {

constexpr std::string_view head =
    "Usage: dstrain [launch options] train [options]\n"
    "\n"
    "Train a language model. Options have the names and defaults [in brackets] of Hugging\n"
    "Face's TrainingArguments; dashes and underscores are interchangeable. A value given here and\n"
    "in the configuration must agree, or be \"auto\" there.\n";

constexpr std::string_view tail =
    "\n"
    "Booleans may carry true, false, 1 or 0. The last of a repeated option counts, except that\n"
    "--train_file and --validation_file may not be repeated: give all files to one. Several files\n"
    "form a mixture, with weights as in --train_file 0.7 A 0.3 B, or without: each sample once an\n"
    "epoch. Schedules are constant, constant_with_warmup, linear, cosine, polynomial and\n"
    "inverse_sqrt, as Hugging Face computes them; a scheduler in the configuration replaces them.\n"
    "`dstrain config show FILE` prints the settings that a configuration and options result in.\n";

constexpr std::string_view more =
    "\n"
    "`dstrain train --help-all` shows every option, its other names, and the options of other\n"
    "programs that are accepted or refused.\n";

constexpr std::size_t width = 98;

/// Returns the names of an option and its value, on several lines if there are many.
std::string spelled(const FlagRow& row, HelpScope scope) {
  std::string text = fmt::format("--{}", row.name);
  std::size_t line = 0;
  const auto aliases = split_choices(scope == HelpScope::all ? row.aliases : std::string_view{});
  for (const std::string_view alias : aliases) {
    text += ",";
    if (text.size() - line + alias.size() + row.value.size() + 4 > width) {
      line = text.size();
      text += "\n   ";
    }
    text += fmt::format(" --{}", alias);
  }
  if (!row.value.empty()) {
    text += row.value_optional ? fmt::format(" [{}]", row.value) : fmt::format(" {}", row.value);
  }
  return text;
}

/// Returns all names of a status, in lines.
std::string name_list(FlagStatus status) {
  std::string text;
  std::size_t column = width;
  for (const FlagRow& row : foreign_flags()) {
    if (row.status != status) continue;
    if (column + row.name.size() + 3 > width) {
      text += text.empty() ? " " : "\n ";
      column = 1;
    }
    text += fmt::format(" --{}", row.name);
    column += row.name.size() + 3;
  }
  return text + "\n";
}

}  // namespace

std::string help_text(HelpScope scope) {
  std::string text(head);
  std::string_view group;
  for (const FlagRow& row : implemented_flags()) {
    if (row.rare && scope == HelpScope::everyday) continue;
    if (row.group != group) text += fmt::format("\n{}\n", row.group);
    group = row.group;
    constexpr std::size_t column = 34;
    const std::string names = spelled(row, scope);
    const std::string pad(names.size() < column ? column - names.size() : 0, ' ');
    const std::string gap = pad.empty() ? fmt::format("\n  {:{}}", "", column) : pad;
    text += fmt::format("  {}{} {}\n", names, gap, row.help);
  }
  if (scope == HelpScope::all) {
    text += "\nAccepted from other programs' commands without effect; a warning says why\n";
    text += name_list(FlagStatus::hint);
    text += "\nCompared with the model, and refused where they say something else of it\n";
    text += name_list(FlagStatus::stated);
    text += "\nRefused with the reason, unless their value turns them off\n";
    text += name_list(FlagStatus::refused);
  }
  text += tail;
  if (scope == HelpScope::everyday) text += more;
  return text;
}

}  // namespace dstrain::config
