#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "runtime/base/checksum.h"

namespace dstrain::data {

/// Tokens in order, without an end between them. Immutable, so threads may share one.
class TokenStream {
 public:
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;
  virtual ~TokenStream() = default;

  /// Returns the file, for messages.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the size of all its files in bytes.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
  /// Returns a digest of the content of all its files, by which a run recognises them; for a large
  /// file that is not read completely, of the size and of `blocks` blocks (`sampled_checksum`).
  [[nodiscard]] virtual Checksum digest(std::int64_t blocks) const = 0;
  /// Whether the tokens were made from text, not read from a token file.
  [[nodiscard]] virtual bool is_text() const = 0;
  /// Returns the number of tokens.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Writes tokens [begin, begin + tokens.size()). Throws Error{input} naming the file and position
  /// of an id that is not below the vocabulary.
  virtual void read(std::int64_t begin, std::span<std::int32_t> tokens) const = 0;
  /// Whether the starts of documents are known.
  [[nodiscard]] virtual bool knows_documents() const { return false; }
  /// Returns the start of the document after that of a token, or the stream's end. Only if known.
  [[nodiscard]] virtual std::int64_t next_document(std::int64_t /*token*/) const { return size(); }

 protected:
  explicit TokenStream(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

}  // namespace dstrain::data
