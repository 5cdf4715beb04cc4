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

  /// The file, for messages.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The size of all its files in bytes.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
  /// Of the content of all its files, by which a run knows them again; of the size and of `blocks`
  /// blocks where a file is large and not read whole (`sampled_checksum`).
  [[nodiscard]] virtual Checksum digest(std::int64_t blocks) const = 0;
  /// Whether the tokens were made of text, rather than being the ids of a token file.
  [[nodiscard]] virtual bool is_text() const = 0;
  /// How many tokens there are.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Writes tokens [begin, begin + tokens.size()). Throws Error{input} naming the file and position
  /// of an id that is not below the vocabulary.
  virtual void read(std::int64_t begin, std::span<std::int32_t> tokens) const = 0;
  /// Whether it is known where documents begin.
  [[nodiscard]] virtual bool knows_documents() const { return false; }
  /// Where the document behind the one of a token begins, or the stream ends. Only if known.
  [[nodiscard]] virtual std::int64_t next_document(std::int64_t /*token*/) const { return size(); }

 protected:
  explicit TokenStream(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

}  // namespace dstrain::data
