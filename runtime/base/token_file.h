#pragma once
#include <filesystem>
#include <string>

namespace dstrain {

/// The token of a job whose processes somebody else has started on several nodes, in a file that
/// only its user can read: ~/.dstrain/JOB.token, which one process makes and the others wait for,
/// on a filesystem that the nodes share. DSTRAIN_TOKEN_DIRECTORY names another directory.
class TokenFile {
 public:
  /// @p job names it: letters, digits and "-._", others become "_". Throws Error{usage} where no
  /// directory is to be had.
  explicit TokenFile(const std::string& job);

  /// Makes a random token; it takes the place of one that is there. Throws Error{io}.
  [[nodiscard]] std::string create() const;
  /// Reads it as soon as it is there. Throws Error{timeout} that names the file, Error{input} for
  /// one that somebody else owns, writes or reads.
  [[nodiscard]] std::string wait(double timeout_seconds) const;
  /// Once all have read it; nothing when it is gone.
  void remove() const noexcept;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace dstrain
