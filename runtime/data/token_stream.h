#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/file.h"

namespace dstrain::data {

/// How to read a token file.
struct TokenOptions {
  std::int64_t vocabulary = 0;     ///< V: every id must be below it
  std::string tokenizer = "byte";  ///< for text
};

/// The tokens of one file, in order, mapped: UTF-8 text through the byte tokenizer, or an llm.c
/// `.bin` (u16 ids, magic 20240520; u32 ids, magic 20240801). Safe from several threads.
class TokenStream {
 public:
  /// Checks the whole structure of the file. Throws Error{input} naming the file and, for text, the
  /// byte that is not UTF-8.
  TokenStream(const std::string& path, const TokenOptions& options);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::int64_t size() const { return count_; }
  /// Whether the tokens are the bytes of text, rather than ids from a token file.
  [[nodiscard]] bool is_text() const { return token_bytes_ == 1; }

  /// Writes tokens [begin, begin + tokens.size()). Throws Error{input} naming the file and position
  /// of an id that is not below the vocabulary.
  void read(std::int64_t begin, std::span<std::int32_t> tokens) const;

 private:
  void open_text(const TokenOptions& options);
  void open_llmc();

  std::string path_;
  MappedFile file_;
  std::int64_t vocabulary_ = 0;
  std::int64_t count_ = 0;
  std::int64_t data_offset_ = 0;  ///< in bytes
  int token_bytes_ = 1;           ///< 1, 2 or 4
};

}  // namespace dstrain::data
