#pragma once
#include <filesystem>
#include <string>
#include <utility>

namespace dstrain {

/// The token of a job whose processes another starter runs on several nodes, in a file that only
/// its user can read: ~/.dstrain/JOB.token, on a filesystem that the nodes share. One process
/// creates it, and its object removes the file; the others wait for it. DSTRAIN_TOKEN_DIRECTORY
/// names another directory. In @p job, all characters except letters, digits, "-" and "." become
/// "_".
class JobTokenFile {
 public:
  /// Creates a random token and replaces an existing one. Throws Error{usage} if there is no
  /// directory, Error{io}, Error{input} if other users may read or write the directory.
  static JobTokenFile create(const std::string& job);
  /// Reads the token once it exists. Throws Error{timeout} that names the file, Error{input} for
  /// one that another user owns or may access.
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

  std::filesystem::path path_;  ///< file to remove; empty: another process owns it
  std::string token_;
};

/// Returns the path of the token of this job.
std::filesystem::path token_path(const std::string& job);

}  // namespace dstrain
