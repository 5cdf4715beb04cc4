#pragma once
#include <string>
#include <vector>

#include "runtime/data/content_digest.h"
#include "runtime/data/sample_source.h"
#include "runtime/data/token_set.h"
#include "runtime/data/token_stream.h"

namespace dstrain::data {

/// A JSON-lines file, or a text, that is the source of a token set.
struct RecordFile {
  std::string path;
  std::int64_t bytes = 0;
  Checksum digest = 0;          ///< of its content
  std::int64_t vocabulary = 0;  ///< V of the model: every id must be below it
};

/// The tokens of all records one after another.
class RecordStream : public TokenStream {
 public:
  /// `documents`: whether each record is a document; otherwise their starts are unknown.
  RecordStream(RecordFile file, TokenSet set, bool documents);
  [[nodiscard]] std::int64_t bytes() const override { return file_.bytes; }
  [[nodiscard]] Checksum digest(std::int64_t /*blocks*/) const override { return file_.digest; }
  [[nodiscard]] bool is_text() const override { return true; }
  [[nodiscard]] std::int64_t size() const override { return set_.ids().size(); }
  void read(std::int64_t begin, std::span<std::int32_t> tokens) const override {
    set_.ids().read(begin, tokens, file_.vocabulary, path());
  }
  [[nodiscard]] bool knows_documents() const override { return documents_; }
  [[nodiscard]] std::int64_t next_document(std::int64_t token) const override;

 private:
  RecordFile file_;
  TokenSet set_;
  bool documents_;
};

/// Rows of T + 1 tokens, filled with whole records in order: one each, or as many as fit. The first
/// T tokens of a row are its inputs, the last T its labels. The tokens that the record counts are
/// counted, except its first token, which has no predecessor in the record, and the padding at the
/// row's end. A record longer than a row loses its end; one that then has no counted label is left
/// out. Notes report both.
///
/// Each record of a row is a document, and so is the padding.
class RecordSamples : public SampleSource {
 public:
  enum class Packing { one_per_row, many_per_row };
  /// Throws Error{input} if no record has a label.
  RecordSamples(RecordFile file, TokenSet set, const SampleSizes& sizes, Packing packing);

  [[nodiscard]] std::int64_t bytes() const override { return file_.bytes; }
  [[nodiscard]] std::string digest() const override { return digest_text(file_.digest); }
  [[nodiscard]] bool is_text() const override { return true; }
  [[nodiscard]] bool counts_all_labels() const override { return false; }
  [[nodiscard]] std::int64_t samples() const override { return std::ssize(row_begins_) - 1; }
  void read(std::int64_t sample, const SampleRows& row) const override;
  /// Returns the records of a row, in order.
  [[nodiscard]] std::span<const std::int64_t> row_records(std::int64_t sample) const;

 private:
  [[nodiscard]] TokenRange tokens_of(std::int64_t record) const;
  [[nodiscard]] bool counts_any() const;
  [[nodiscard]] bool has_label(const TokenRange& range) const;
  void lay_rows(Packing packing);
  static void fill_document(const SampleRows& row, std::size_t at);

  RecordFile file_;
  TokenSet set_;
  std::vector<std::int64_t> records_;  ///< the records that are used
  /// Positions in records_: row k holds [row_begins_[k], row_begins_[k + 1]).
  std::vector<std::int64_t> row_begins_;
};

}  // namespace dstrain::data
