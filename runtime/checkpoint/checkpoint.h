#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/checkpoint/manifest.h"
#include "runtime/model/parameter_source.h"

namespace dstrain::checkpoint {

/// A checkpoint opened for reading. All data that is read is first checked against the manifest's
/// checksums, chunk by chunk: damage throws Error{input} that names the file, the byte offset of
/// the chunk, the expected and the found checksum (or size). Thread-safe.
class Checkpoint {
 public:
  /// The files that must be in the directory.
  enum class Files {
    all,
    own  ///< those of this node: reading a missing one is an error
  };
  /// Reads and checks the manifest, and the sizes of all files. Throws Error{input}, and
  /// Error{newer_format} for a checkpoint that only a newer dstrain reads.
  explicit Checkpoint(std::filesystem::path directory, Files files = Files::all);
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  [[nodiscard]] const std::filesystem::path& path() const;
  [[nodiscard]] const Manifest& manifest() const;
  [[nodiscard]] bool has_state(std::string_view state) const;

  /// Returns the text of a small file ("trainer_state.json").
  [[nodiscard]] std::string read_text(const std::string& file) const;

  /// Reads elements [begin, begin + values.size()) of a state of a parameter, row-major; bf16 is
  /// widened. Reads only the chunks that hold them, and the headers of their files.
  void read(std::string_view state,
            std::string_view parameter,
            std::int64_t begin,
            std::span<float> values) const;

  /// Checks every byte of one file. Throws as above.
  void verify_file(const FileRecord& file) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One state of a checkpoint as a source of parameters. The checkpoint must outlive it.
class CheckpointState final : public model::ParameterSource {
 public:
  /// Throws Error{input} if the checkpoint has no such state, Error{config} if it does not hold
  /// exactly `parameters` in these shapes.
  CheckpointState(const Checkpoint& checkpoint,
                  std::string state,
                  std::span<const model::ParameterSpec> parameters);
  void read(const model::ParameterSpec& spec,
            std::int64_t begin,
            std::span<float> values) const override;

 private:
  const Checkpoint& checkpoint_;
  std::string state_;
};

}  // namespace dstrain::checkpoint
