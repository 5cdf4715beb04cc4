#pragma once
#include <cstdint>
#include <string>

#include "runtime/data/id_array.h"
#include "runtime/data/token_stream.h"
#include "runtime/os/mapped_file.h"

namespace dstrain::data {

/// llm.c's `.bin`: 256 i32, of which the first three are magic, version and number of tokens, then
/// the ids (llm.c, dev/data/data_common.py).
inline constexpr std::int64_t llmc_header_bytes = 1024;
struct LlmcKind {
  std::int32_t magic;
  std::int32_t version;
};
inline constexpr LlmcKind llmc_u16{20240520, 1};
inline constexpr LlmcKind llmc_u32{20240801, 7};

/// The tokens of one mapped file: UTF-8 text, with each byte a token, or an llm.c `.bin` of u16 or
/// u32 ids.
class TokenFile final : public TokenStream {
 public:
  /// Checks the whole structure of the file; ids must be below `vocabulary`. Throws Error{input}
  /// naming the file and, for text, the byte that is not UTF-8.
  TokenFile(const std::string& path, std::int64_t vocabulary);

  [[nodiscard]] std::int64_t bytes() const override { return std::ssize(file_.bytes()); }
  [[nodiscard]] Checksum digest(std::int64_t blocks) const override;
  [[nodiscard]] bool is_text() const override { return is_text_; }
  [[nodiscard]] std::int64_t size() const override { return ids_.size(); }
  void read(std::int64_t begin, std::span<std::int32_t> tokens) const override {
    ids_.read(begin, tokens, vocabulary_, path());
  }

 private:
  void refuse_raw_ids() const;
  void open_text();
  void open_llmc();

  MappedFile file_;
  std::int64_t vocabulary_;
  IdArray ids_;
  bool is_text_ = false;
  Checksum text_checksum_ = 0;
};

}  // namespace dstrain::data
