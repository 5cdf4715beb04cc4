#pragma once
#include <filesystem>
#include <string>
#include <utility>

namespace dstrain {

/// The token of a job whose processes somebody else has started on several nodes, in a file that
/// only its user can read: ~/.dstrain/JOB.token, on a filesystem that the nodes share. One process
/// makes it, and the file is gone with that process's object; the others wait for it.
/// DSTRAIN_TOKEN_DIRECTORY names another directory. Of @p job letters, digits, "-" and "." stay,
/// all else becomes "_".
class JobTokenFile {
 public:
  /// Makes a random token, in place of one that is there. Throws Error{usage} where no directory is
  /// to be had, Error{io}, Error{input} when others may read or write the directory.
  static JobTokenFile create(const std::string& job);
  /// Reads it as soon as it is there. Throws Error{timeout} that names the file, Error{input} for
  /// one that somebody else owns, writes or reads.
  static JobTokenFile wait_for(const std::string& job, double timeout_seconds);
  JobTokenFile(const JobTokenFile&) = delete;
  JobTokenFile& operator=(const JobTokenFile&) = delete;
  JobTokenFile(JobTokenFile&& other) noexcept
      : path_(std::exchange(other.path_, {})), token_(std::move(other.token_)) {}
  JobTokenFile& operator=(JobTokenFile&&) = delete;
  ~JobTokenFile();

  [[nodiscard]] const std::string& token() const { return token_; }

 private:
  JobTokenFile(std::filesystem::path path, std::string token)
      : path_(std::move(path)), token_(std::move(token)) {}

  std::filesystem::path path_;  ///< to be removed; empty: somebody else's
  std::string token_;
};

/// Where the token of this job is.
std::filesystem::path token_path(const std::string& job);

}  // namespace dstrain
