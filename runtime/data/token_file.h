#pragma once
#include <string>

#include "runtime/base/file.h"
#include "runtime/data/id_array.h"
#include "runtime/data/token_stream.h"

namespace dstrain::data {

/// The tokens of one mapped file: UTF-8 text, of which each byte is a token, or an llm.c `.bin`
/// (u16 ids, magic 20240520; u32 ids, magic 20240801).
class TokenFile final : public TokenStream {
 public:
  /// Checks the whole structure of the file; ids must be below `vocabulary`. Throws Error{input}
  /// naming the file and, for text, the byte that is not UTF-8.
  TokenFile(const std::string& path, std::int64_t vocabulary);

  [[nodiscard]] std::int64_t bytes() const override { return std::ssize(file_.bytes()); }
  [[nodiscard]] bool is_text() const override { return is_text_; }
  [[nodiscard]] std::int64_t size() const override { return ids_.size(); }
  void read(std::int64_t begin, std::span<std::int32_t> tokens) const override {
    ids_.read(begin, tokens, vocabulary_, path());
  }

 private:
  void open_text();
  void open_llmc();

  MappedFile file_;
  std::int64_t vocabulary_;
  IdArray ids_;
  bool is_text_ = false;
};

}  // namespace dstrain::data
