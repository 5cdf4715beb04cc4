#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/json_record.h"
#include "runtime/data/sample_order.h"
#include "runtime/data/sample_rows.h"

namespace dstrain::data {

/// Training samples that lie in a file: T inputs each and, one further on, their T labels; for an
/// encoder-decoder also their sources of up to S tokens. Which sample comes when is not its
/// business. Immutable, so threads may share one.
class SampleSource {
 public:
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;
  virtual ~SampleSource() = default;

  /// The file, for messages; of a mixture all of them, with their weights.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The same without directories, which may be others when a run goes on.
  [[nodiscard]] virtual std::string name() const {
    return std::filesystem::path(path_).filename().string();
  }
  /// Of a mixture, what decides which sample of which file comes when; empty: there is one file.
  [[nodiscard]] virtual std::string mixture() const { return {}; }
  [[nodiscard]] const SampleSizes& sizes() const { return sizes_; }
  /// T.
  [[nodiscard]] std::int64_t block_size() const { return sizes_.tokens; }
  /// The size of all its files in bytes, and a digest of their content, by which a run knows its
  /// data again, wherever they lie; of a mixture a digest for each part. See docs/data.md for what
  /// a digest does not notice.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
  [[nodiscard]] virtual std::string digest() const = 0;
  /// Whether several records share a sample; none where there are no records to pack.
  [[nodiscard]] std::optional<bool> packing() const { return packing_; }
  void set_packing(std::optional<bool> packing) { packing_ = packing; }
  /// Files of records, and what theirs hold; of a mixture those of all its parts.
  struct RecordsOf {
    std::string path;
    RecordKind kind;
  };
  [[nodiscard]] const std::vector<RecordsOf>& records() const { return records_; }
  void add_records(RecordsOf records) { records_.push_back(std::move(records)); }
  /// Whether the tokens were made of text, rather than being the ids of a token file.
  [[nodiscard]] virtual bool is_text() const = 0;
  /// Whether as many labels count in one sample as in another, but for a tail.
  [[nodiscard]] virtual bool counts_all_labels() const { return true; }
  /// At least one.
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// The parts that were asked for when it was opened (`SampleOptions::split`).
  [[nodiscard]] const SampleSplit& split() const { return split_; }
  /// Whether they are cut between documents: else between samples, and a document may lie in both.
  [[nodiscard]] bool splits_documents() const { return splits_documents_; }
  /// Cuts between samples.
  void split_by_samples(std::span<const double> weights) {
    split_ = split_samples(samples(), weights);
  }
  /// Writes a sample, with `ignored_label` where no label counts; each has a label that counts.
  /// Throws Error{input} naming file and position of an id that is not below the vocabulary.
  virtual void read(std::int64_t sample, const SampleRows& row) const = 0;
  /// What was done with the data that its owner may not expect, a line each.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  void add_note(std::string note) { notes_.push_back(std::move(note)); }

 protected:
  SampleSource(std::string path, const SampleSizes& sizes)
      : path_(std::move(path)), sizes_(sizes) {}
  void set_split_by_documents(const SampleSplit& split) {
    split_ = split;
    splits_documents_ = true;
  }

 private:
  std::string path_;
  SampleSizes sizes_;
  std::vector<std::string> notes_;
  SampleSplit split_;
  bool splits_documents_ = false;
  std::optional<bool> packing_;
  std::vector<RecordsOf> records_;
};

}  // namespace dstrain::data
