#include "runtime/checkpoint/catalog.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checked_file.h"
#include "runtime/checkpoint/manifest_text.h"
#include "runtime/checkpoint/temporary_name.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/file.h"

namespace dstrain::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "checkpoint-";

/// Returns the directories that hold the files of a manifest.
std::set<std::string> directories_of(const Manifest& manifest) {
  std::set<std::string> directories;
  for (const FileRecord& file : manifest.files) {
    for (std::size_t end = file.path.find('/'); end != std::string::npos;
         end = file.path.find('/', end + 1)) {
      directories.insert(file.path.substr(0, end));
    }
  }
  return directories;
}

/// Returns the paths in a checkpoint's directory that are not in its manifest, relative and in
/// order. A directory has a '/' at its end and is listed without its contents. Throws Error{input}
/// if the directory cannot be listed.
std::vector<std::string> find_foreign(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> foreign;
  const std::set<std::string> directories = directories_of(manifest);
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().lexically_relative(directory).string();
    if (entry->symlink_status(error).type() == fs::file_type::directory) {
      if (directories.contains(path)) continue;
      entry.disable_recursion_pending();
      foreign.push_back(path + "/");
    } else if (path != manifest_name &&
               !std::ranges::binary_search(manifest.files, path, {}, &FileRecord::path)) {
      foreign.push_back(path);
    }
  }
  if (error) fail(ErrorCode::input, "{}: {}", directory.string(), error.message());
  std::ranges::sort(foreign);
  return foreign;
}

}  // namespace

std::string directory_name(std::int64_t step) {
  return fmt::format("{}{}", prefix, step);
}

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || directory_name(step) != name) return std::nullopt;
  return step >= 0 ? std::optional(step) : std::nullopt;
}

bool has_manifest(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / manifest_name, ignored);
}

bool is_checkpoint(const fs::path& path) {
  return step_of(path.filename().string()) || has_manifest(path);
}

std::vector<Found> list_checkpoints(const fs::path& output) {
  std::error_code error;
  std::vector<Found> found;
  for (fs::directory_iterator entry(output, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const auto step = step_of(entry->path().filename().string());
    std::error_code gone;
    if (step && entry->is_directory(gone)) found.push_back({*step, entry->path()});
  }
  if (error) fail(ErrorCode::input, "{}: {}", output.string(), error.message());
  std::ranges::sort(found, std::ranges::greater(), &Found::step);
  return found;
}

Verification verify(const fs::path& directory,
                    Depth depth,
                    std::span<const std::string> elsewhere) {
  Verification verification;
  try {
    const UniqueFd root = open_directory(directory);
    const Manifest manifest = read_manifest(root.get(), directory);
    verification.foreign = find_foreign(directory, manifest);
    for (const FileRecord& file : manifest.files) {
      if (std::ranges::find(elsewhere, file.path) != elsewhere.end()) continue;
      try {
        const CheckedFile checked(root.get(), file, (directory / file.path).string());
        if (depth == Depth::contents) checked.verify();
      } catch (const Error& error) {
        verification.damage.emplace_back(error.what());
      }
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::newer_format) {
      verification.newer = error.what();
    } else {
      verification.damage.emplace_back(error.what());
    }
  }
  return verification;
}

std::string listed(std::span<const std::string> foreign) {
  constexpr std::size_t listed_max = 5;
  const auto first = foreign.first(std::min(foreign.size(), listed_max));
  const std::size_t more = foreign.size() - first.size();
  return fmt::format("{}{}", fmt::join(first, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

fs::path enclosing_checkpoint(const fs::path& path) {
  std::error_code error;
  const fs::path from_root = fs::absolute(path, error);
  const fs::path resolved = error ? path : fs::weakly_canonical(from_root, error);
  if (error) fail(ErrorCode::usage, "\"{}\": {}", path.string(), error.message());
  for (fs::path folder = resolved; folder.has_relative_path(); folder = folder.parent_path()) {
    if (has_manifest(folder)) return folder;
  }
  return {};
}

std::vector<Pruned> prune(const fs::path& output,
                          std::int64_t keep,
                          std::span<const std::int64_t> known_whole,
                          std::string_view guarded) {
  DSTRAIN_CHECK(keep >= 1, "keep {}", keep);
  const std::vector<Found> found = list_checkpoints(output);
  const auto is_guarded = [&](const Found& one) {
    return one.path.filename() == guarded;
  };
  const bool guards = std::ranges::any_of(found, is_guarded);
  if (guards && !is_guarded(found.front())) keep = std::max<std::int64_t>(keep, 2);
  std::vector<Pruned> superfluous;
  std::int64_t intact = guards ? 1 : 0;
  for (const Found& one : found) {
    if (is_guarded(one) || !has_manifest(one.path)) continue;
    const bool known = std::ranges::find(known_whole, one.step) != known_whole.end();
    const bool reads = intact < keep && !known;
    Verification verification = verify(one.path, reads ? Depth::contents : Depth::names);
    if (!verification.newer.empty()) continue;
    if (intact < keep && verification.intact()) {
      ++intact;
      continue;
    }
    if (intact >= keep) verification.damage.clear();
    superfluous.push_back({one.step, one.path, verification.damage});
  }
  if (intact < keep) return {};
  for (const Pruned& one : superfluous) {
    if (const auto aside = move_aside(output, one.path, one.step)) {
      flush_directory(output);
      std::error_code left_for_the_next_sweep;
      fs::remove_all(*aside, left_for_the_next_sweep);
    } else {
      remove_in_place(one.path);
    }
  }
  return superfluous;
}

}  // namespace dstrain::checkpoint
