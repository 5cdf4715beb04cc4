#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/record_kind.h"
#include "runtime/data/sample_order.h"
#include "runtime/data/sample_rows.h"

namespace dstrain::data {

/// Training samples in a file: T inputs each and, shifted by one, their T labels; for an
/// encoder-decoder also their sources of up to S tokens. It does not choose the order of samples.
/// Immutable, so threads may share one.
class SampleSource {
 public:
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;
  virtual ~SampleSource() = default;

  /// Returns the file, for messages; for a mixture all files, with their weights.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the same without directories, which may change when a run is resumed.
  [[nodiscard]] virtual std::string name() const {
    return std::filesystem::path(path_).filename().string();
  }
  /// For a mixture, returns the settings that determine its order; empty: there is one file.
  [[nodiscard]] virtual std::string mixture() const { return {}; }
  [[nodiscard]] const SampleSizes& sizes() const { return sizes_; }
  /// Returns T.
  [[nodiscard]] std::int64_t block_size() const { return sizes_.tokens; }
  /// Return the size of all its files in bytes, and a digest of their content, by which a run
  /// recognises its data, wherever they are; for a mixture a digest for each part. docs/data.md
  /// says what a digest does not detect.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
  [[nodiscard]] virtual std::string digest() const = 0;
  /// Whether several records share a sample; nothing if there are no records to pack.
  [[nodiscard]] std::optional<bool> packing() const { return packing_; }
  void set_packing(std::optional<bool> packing) { packing_ = packing; }
  /// The files of records, and the kind of their records; for a mixture those of all its parts.
  struct RecordsOf {
    std::string path;
    RecordKind kind;
  };
  [[nodiscard]] const std::vector<RecordsOf>& records() const { return records_; }
  void add_records(RecordsOf records) { records_.push_back(std::move(records)); }
  /// Whether the tokens were made from text, not read from a token file.
  [[nodiscard]] virtual bool is_text() const = 0;
  /// Whether all samples have the same number of counted labels, except for a tail.
  [[nodiscard]] virtual bool counts_all_labels() const { return true; }
  /// Returns the number of samples, at least one.
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  /// Returns the parts that were requested when it was opened (`SampleOptions::split`).
  [[nodiscard]] const SampleSplit& split() const { return split_; }
  /// Whether parts are cut between documents. Otherwise between samples, and a document may be in
  /// both.
  [[nodiscard]] bool splits_documents() const { return splits_documents_; }
  /// Cuts between samples.
  void split_by_samples(std::span<const double> weights) {
    split_ = split_samples(samples(), weights);
  }
  /// Writes a sample, with `ignored_label` where no label counts; each sample has a label that
  /// counts. Throws Error{input} naming file and position of an id that is not below the
  /// vocabulary.
  virtual void read(std::int64_t sample, const SampleRows& row) const = 0;
  /// Notes on unexpected treatment of the data, one per line.
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
