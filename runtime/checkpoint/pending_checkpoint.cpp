#include "runtime/checkpoint/pending_checkpoint.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/manifest_text.h"
#include "runtime/checkpoint/shard_writer.h"
#include "runtime/checkpoint/temporary_name.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/shared_place.h"
#include "runtime/os/visibility.h"

namespace dstrain::checkpoint {
namespace {

namespace fs = std::filesystem;

void remove_quietly(const fs::path& directory) {
  std::error_code left_for_the_next_sweep;
  fs::remove_all(directory, left_for_the_next_sweep);
}

void make_directory(const fs::path& path) {
  if (::mkdir(path.c_str(), 0755) != 0) fail_errno(errno, "create directory " + path.string());
}

/// Makes a new directory under a temporary name of this process.
fs::path make_temporary(const fs::path& output, std::int64_t step) {
  constexpr int attempts_max = 1000;
  const std::error_code error = make_directories(output);
  if (error) fail_errno(error.value(), "create directory " + output.string());
  const Owner owner = this_owner();
  for (int attempt = 0;; ++attempt) {
    fs::path path = output / temporary_name(step, owner, attempt);
    if (::mkdir(path.c_str(), 0755) == 0) return path;
    // An earlier attempt of this process may have failed and left one that could not be removed.
    if (errno != EEXIST || attempt == attempts_max) {
      fail_errno(errno, "create directory " + path.string());
    }
  }
}

fs::path shard_directory(const fs::path& root, std::int64_t step) {
  return root / fmt::format("global_step{}", step);
}

void flush_directories(const fs::path& root, const Manifest& manifest) {
  std::set<fs::path> directories{root};
  for (const FileRecord& file : manifest.files) {
    for (fs::path part = fs::path(file.path).parent_path(); !part.empty();
         part = part.parent_path()) {
      directories.insert(root / part);
    }
  }
  for (const fs::path& directory : directories) flush_directory(directory);
}

}  // namespace

PendingCheckpoint::PendingCheckpoint(const fs::path& output, std::int64_t step)
    : output_(output), path_(make_temporary(output, step)), step_(step) {
  try {
    make_directory(shard_directory(path_, step));
  } catch (...) {
    remove_quietly(path_);
    throw;
  }
}

PendingCheckpoint::~PendingCheckpoint() {
  if (!committed_) remove_quietly(path_);
}

bool PendingCheckpoint::await(const fs::path& path, std::int64_t step, double seconds) {
  return await_visible(path.parent_path(), seconds, [&] {
    std::error_code ignored;
    return fs::is_directory(shard_directory(path, step), ignored);
  });
}

void PendingCheckpoint::rehearse() {
  flush_directory(shard_directory(path_, step_));
  flush_directory(path_);
  const std::optional<fs::path> moved = move_aside(output_, path_, step_);
  if (!moved) fail_errno(EXDEV, "rename " + path_.string());
  path_ = *moved;
  flush_directory(output_);
}

void PendingCheckpoint::commit(const Manifest& manifest,
                               std::span<const std::string> elsewhere,
                               double seconds) {
  DSTRAIN_CHECK(manifest.step == step_ && !committed_, "step {} into {}", manifest.step,
                path_.string());
  write_text(path_, manifest_name, to_text(manifest));
  flush_directories(path_, manifest);
  Verification found;
  await_visible(shard_directory(path_, step_), seconds, [&] {
    found = verify(path_, Depth::names, elsewhere);
    return found.intact();
  });
  if (!found.intact()) fail(ErrorCode::io, "{}", fmt::join(found.damage, "\n"));
  if (!found.whole()) {
    fail(ErrorCode::io, "{}: another process has put files there: {}", path_.string(),
         listed(found.foreign));
  }
  const fs::path target = output_ / directory_name(step_);
  fs::path replaced;
  if (::rename(path_.c_str(), target.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) {
      fail_errno(errno, "rename to " + target.string());
    }
    replaced = replace(target);
  }
  committed_ = true;
  flush_directory(output_);
  if (!replaced.empty()) remove_quietly(replaced);
}

/// Renames the directory to `target`, and returns the new path of what was there; empty: it was
/// removed.
fs::path PendingCheckpoint::replace(const fs::path& target) const {
  const std::string newer = verify(target, Depth::names).newer;
  if (!newer.empty()) fail(ErrorCode::io, "{}; it is not overwritten", newer);
  // In one step, so that a checkpoint exists at every moment.
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    return path_;
  }
  if (errno != EINVAL && errno != ENOSYS && errno != EXDEV) {
    fail_errno(errno, "exchange with " + target.string());
  }
  // A file system without that call (NFS): the old checkpoint is missing for a moment.
  const std::optional<fs::path> moved = move_aside(output_, target, step_);
  if (!moved) {
    remove_in_place(target);
    if (::rename(path_.c_str(), target.c_str()) == 0) return {};
    fail_errno(errno, "rename to " + target.string());
  }
  const fs::path& aside = *moved;
  if (::rename(path_.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::rename(aside.c_str(), target.c_str());
    fail_errno(error, "rename to " + target.string());
  }
  return aside;
}

fs::path longest_path(const fs::path& output, std::int64_t step, int world_size) {
  Manifest names;
  names.step = step;
  const StateRecord state{.name = "fp32", .file = optimizer_file};
  return output / temporary_name(step, this_owner(), 0) / names.shard_path(state, world_size - 1);
}

std::vector<std::string> sweep_stale(const fs::path& output) {
  std::vector<std::string> removed;
  std::error_code error;
  for (fs::directory_iterator entry(output, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto owner = owner_of(name);
    if (!owner || !has_ended(*owner)) continue;
    std::error_code failed;
    fs::remove_all(entry->path(), failed);
    if (!failed) removed.push_back(name);
  }
  return removed;
}

}  // namespace dstrain::checkpoint
