#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace dstrain::checkpoint {

/// Walks over the text of a manifest, which is JSON with one way to write each thing. Every method
/// throws Error{input} with the place at a text that is not what it asks for.
class ManifestScanner {
 public:
  /// 2^53: integers up to it are kept by every reader of JSON.
  static constexpr std::int64_t number_max = std::int64_t{1} << 53;

  /// `file` is for messages. Keeps views of both.
  ManifestScanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void expect(std::string_view literal);
  /// Whether `literal` comes next, which is then passed.
  bool pass(std::string_view literal);
  /// A number in [0, number_max], without leading zeros.
  std::int64_t number();
  /// What stands between double quotes: printable ASCII without escapes.
  std::string_view word();
  void expect_end();

  /// `open`, items that `separator` precedes and commas part, and "]".
  template <class Item>
  void list(std::string_view open, std::string_view separator, Item&& item) {
    expect(open);
    if (pass("]")) return;
    do {
      expect(separator);
      item();
    } while (pass(","));
    expect("]");
  }

  [[noreturn]] void refuse(const std::string& problem) const;

 private:
  [[noreturn]] void unexpected(std::string_view expected) const;

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

/// Whether a string can stand in a manifest as it is.
bool is_plain_word(std::string_view text);

}  // namespace dstrain::checkpoint
