#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/json_value.h"
#include "runtime/config/train_options.h"

namespace dstrain::config {

/// A DeepSpeed configuration file, checked against the schema. It holds only valid values: of the
/// right type and range, and implemented. problems() describes the others; resolve_config() reports
/// them with its own findings. Keys are looked up by canonical path, however the file spells them.
class DsConfig {
 public:
  /// An empty configuration, as if no file were given.
  DsConfig() = default;
  /// `file` is for messages. Throws Error{config} if the text is not JSON.
  static DsConfig parse(std::string text, const std::string& file);
  /// Parses a section of a file of options that was made JSON. `positions`: those of
  /// positions_of() in that file; empty: those of the text.
  static DsConfig parse_section(std::string text,
                                const std::string& file,
                                std::span<const Position> positions);
  /// Also throws Error{input} if the file cannot be read.
  static DsConfig load(const std::filesystem::path& path);
  /// Loads the configuration of --deepspeed, a file or JSON; empty without that option. Where the
  /// options ask for inference, keys for training are dropped with one warning.
  static DsConfig of(const TrainOptions& options);

  [[nodiscard]] bool has(std::string_view path) const { return find(path) != nullptr; }
  /// Returns null if the key is absent.
  [[nodiscard]] const JsonValue* find(std::string_view path) const;
  [[nodiscard]] bool is_auto(std::string_view path) const;
  /// These return the value if it is given and neither "auto" nor null.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view path) const;
  [[nodiscard]] std::optional<double> number(std::string_view path) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view path) const;
  [[nodiscard]] std::optional<std::string> text_of(std::string_view path) const;

  /// The paths of all values that are "auto".
  [[nodiscard]] std::vector<std::string> automatic_paths() const;

  /// One line each: "ds.json:3:7: zero_optimization.stge: unknown key; did you mean \"stage\"?".
  [[nodiscard]] const Problems& problems() const { return problems_; }
  /// Whether a wrong value was given here or in an enclosing section, so that its absence means
  /// nothing.
  [[nodiscard]] bool is_faulty(std::string_view path) const;

  /// Returns the position of a key; the start of the file, or section, if it is absent.
  [[nodiscard]] Position position(std::string_view path) const;
  [[nodiscard]] const std::string& file() const { return file_; }  ///< empty: none given
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::vector<std::string> warnings() const { return problems_.warnings(); }

 private:
  static DsConfig given_to(const TrainOptions& options);
  /// Drops the values that only training reads, and warns of them.
  void keep_inference();

  std::string file_;
  std::string text_;
  Position start_;
  std::map<std::string, JsonValue, std::less<>> values_;
  std::set<std::string, std::less<>> faulty_;
  Problems problems_{""};
};

}  // namespace dstrain::config
