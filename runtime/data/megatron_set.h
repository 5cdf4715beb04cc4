#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/id_array.h"
#include "runtime/data/token_stream.h"
#include "runtime/os/mapped_file.h"

namespace dstrain::data {

/// The first bytes of an `.idx`, before its version, which is 1.
inline constexpr std::string_view megatron_magic{"MMIDIDX\0\0", 9};

/// Returns the code of a dtype in an `.idx`.
std::uint8_t megatron_code(IdType type);

/// The contents of the `.idx` of an indexed Megatron set
/// (megatron/core/datasets/indexed_dataset.py).
struct MegatronIndex {
  IdType type = IdType::u16;
  std::int64_t tokens = 0;
  /// The first token of each document, then the number of tokens.
  std::vector<std::int64_t> document_starts;
  /// With a split, the first tokens of its three parts, then the number of tokens.
  std::vector<std::int64_t> cuts{};
};

/// Parses an index; `path` is for messages. @p split weights of three parts of the sequences
/// (`split_samples`), as in GPTDataset (megatron/core/datasets/gpt_dataset.py: for GPT, sets are
/// split by sequence, and preprocess_data.py makes one sequence of each document); empty: there are
/// no cuts. Throws Error{input} for an inconsistent index, and for sequences with gaps between
/// them, which Megatron's own builder never writes.
MegatronIndex parse_megatron_index(std::span<const std::byte> bytes,
                                   const std::string& path,
                                   std::span<const double> split = {});

/// Returns PREFIX if there is a PREFIX.idx and `path` is PREFIX, PREFIX.bin or PREFIX.idx. If
/// PREFIX itself is a file, it means that file.
std::optional<std::string> find_megatron_prefix(const std::filesystem::path& path);

/// Throws Error{input} if `path`, a prefix or a .bin, is named as Megatron names its sets and has a
/// .bin without its index.
void refuse_missing_index(const std::filesystem::path& path);

/// An indexed, mapped Megatron set as one stream of its sequences.
class MegatronSet : public TokenStream {
 public:
  /// Checks the whole index. @p split: see parse_megatron_index(). Throws Error{input}.
  MegatronSet(const std::string& prefix,
              std::int64_t vocabulary,
              std::span<const double> split = {});

  [[nodiscard]] std::int64_t bytes() const override {
    return std::ssize(file_.bytes()) + index_bytes_;
  }
  [[nodiscard]] Checksum digest(std::int64_t blocks) const override;
  [[nodiscard]] bool is_text() const override { return false; }
  [[nodiscard]] std::int64_t size() const override { return ids_.size(); }
  void read(std::int64_t begin, std::span<std::int32_t> tokens) const override {
    ids_.read(begin, tokens, vocabulary_, path());
  }
  [[nodiscard]] bool knows_documents() const override { return true; }
  [[nodiscard]] std::int64_t next_document(std::int64_t token) const override;
  /// See MegatronIndex.
  [[nodiscard]] const std::vector<std::int64_t>& document_starts() const {
    return document_starts_;
  }
  /// See MegatronIndex.
  [[nodiscard]] const std::vector<std::int64_t>& cuts() const { return cuts_; }

 private:
  MappedFile file_;
  std::int64_t vocabulary_;
  std::int64_t index_bytes_ = 0;
  Checksum index_checksum_ = 0;
  std::vector<std::int64_t> document_starts_;
  std::vector<std::int64_t> cuts_;
  IdArray ids_;
};

}  // namespace dstrain::data
