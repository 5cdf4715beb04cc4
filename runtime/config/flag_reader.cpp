#include "runtime/config/flag_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/config/choice.h"
#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using Lines = std::vector<std::string>;

class FlagReader {
 public:
  FlagReader(TrainOptions& options, Lines& problems) : options_(options), problems_(problems) {}

  void read(const FlagRow& row, const std::string& typed_as, const std::string& text) {
    const std::size_t before = problems_.size();
    if (text.starts_with("--")) {  // the next option, taken for the value of this one
      problems_.push_back(fmt::format("{}: needs a value", typed_as));
      return;
    }
    std::visit([&](auto target) { store(row, options_.*target, typed_as, text); }, row.target);
    if (problems_.size() == before) check_built(row, typed_as, text);
  }

 private:
  void store(const FlagRow& row,
             Flag<std::string>& flag,
             const std::string& typed_as,
             const std::string& text) {
    if (text.empty() && !row.value_optional) {
      problems_.push_back(fmt::format("{}: needs a value", typed_as));
    }
    flag = {text, typed_as};
  }

  void store(const FlagRow& row,
             Flag<std::int64_t>& flag,
             const std::string& typed_as,
             const std::string& text) {
    double number = 0;
    if (!parse_number(typed_as, text, "a whole number", number)) return;
    constexpr double largest = 9e15;  // whole numbers are exact below
    if (number != std::trunc(number) || std::abs(number) > largest) {
      problems_.push_back(fmt::format("{}: expected a whole number, got {}", typed_as, text));
    } else if (in_range(row, number, typed_as, text)) {
      flag = {static_cast<std::int64_t>(number), typed_as};
    }
  }

  void store(const FlagRow& row,
             Flag<double>& flag,
             const std::string& typed_as,
             const std::string& text) {
    double number = 0;
    if (!parse_number(typed_as, text, "a number", number)) return;
    if (in_range(row, number, typed_as, text)) flag = {number, typed_as};
  }

  void store(const FlagRow& /*row*/,
             Flag<bool>& flag,
             const std::string& typed_as,
             const std::string& text) {
    const std::string word = lower_case(text);
    const auto is = [&](std::initializer_list<std::string_view> words) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (is({"", "1", "true", "t", "yes", "y"})) {
      flag = {true, typed_as};
    } else if (is({"0", "false", "f", "no", "n"})) {
      flag = {false, typed_as};
    } else {
      problems_.push_back(fmt::format("{}: expected true or false, got \"{}\"", typed_as, text));
    }
  }

  bool parse_number(const std::string& typed_as,
                    const std::string& text,
                    std::string_view wanted,
                    double& number) {
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, number);
    if (!text.empty() && error == std::errc{} && stopped == end && std::isfinite(number))
      return true;
    problems_.push_back(fmt::format("{}: expected {}, got \"{}\"", typed_as, wanted, text));
    return false;
  }

  bool in_range(const FlagRow& row,
                double number,
                const std::string& typed_as,
                const std::string& text) {
    if (number >= row.minimum && number <= row.maximum) return true;
    const std::string range =
        std::isinf(row.maximum)
            ? fmt::format("at least {}", row.minimum)
            : fmt::format("between {} and {}", row.minimum, std::round(row.maximum));
    problems_.push_back(fmt::format("{}: must be {}, got {}", typed_as, range, text));
    return false;
  }

  void check_built(const FlagRow& row, const std::string& typed_as, const std::string& text) {
    if (row.only.empty()) return;
    const auto allowed = split_choices(row.only);
    if (std::holds_alternative<Flag<bool> TrainOptions::*>(row.target)) {
      if (!(options_.*std::get<Flag<bool> TrainOptions::*>(row.target)).value) return;
    } else if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) {
      return;
    }
    problems_.push_back(fmt::format("{}{}{}: not implemented; leave it out or set it to {}",
                                    typed_as, text.empty() ? "" : " ", text,
                                    fmt::join(allowed, " or ")));
  }

  TrainOptions& options_;
  Lines& problems_;
};

}  // namespace

void read_flag(const FlagRow& row,
               const std::string& typed_as,
               const std::string& text,
               TrainOptions& options,
               std::vector<std::string>& problems) {
  FlagReader(options, problems).read(row, typed_as, text);
}

}  // namespace dstrain::config
