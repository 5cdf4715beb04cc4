#include "runtime/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/checkpoint/manifest_text.h"
#include "runtime/os/file.h"

namespace dstrain::checkpoint {
namespace {

constexpr std::size_t cached_chunks_max = 16;

}  // namespace

ChunkCache::Chunk ChunkCache::get(Key key,
                                  std::size_t size,
                                  FunctionRef<void(std::span<std::byte>)> load) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find(chunks_, key, &std::pair<Key, Chunk>::first);
    if (found != chunks_.end()) {
      chunks_.splice(chunks_.begin(), chunks_, found);
      return found->second;
    }
  }
  // Without the lock, so that threads read in parallel; two may load the same chunk.
  std::vector<std::byte> bytes(size);
  load(bytes);
  Chunk chunk = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::scoped_lock lock(mutex_);
  chunks_.emplace_front(key, chunk);
  if (chunks_.size() > cached_chunks_max) chunks_.pop_back();
  return chunk;
}

CheckpointFiles::CheckpointFiles(std::filesystem::path directory)
    : path_(std::move(directory)),
      root_(open_directory(path_)),
      manifest_(read_manifest(root_.get(), path_)) {}

std::string CheckpointFiles::name_of(const std::string& file) const {
  return (path_ / file).string();
}

const FileRecord& CheckpointFiles::record(const std::string& file) const {
  const auto found = std::ranges::lower_bound(manifest_.files, file, {}, &FileRecord::path);
  if (found == manifest_.files.end() || found->path != file) {
    fail(ErrorCode::input, "{}: not in the manifest", name_of(file));
  }
  return *found;
}

CheckedFile CheckpointFiles::open(const FileRecord& file) const {
  return {root_.get(), file, name_of(file.path)};
}

void CheckpointFiles::read(const FileRecord& record,
                           std::uint64_t begin,
                           std::span<std::byte> bytes) const {
  const CheckedFile file = open(record);
  const auto file_number = static_cast<std::size_t>(&record - manifest_.files.data());
  const auto file_size = static_cast<std::size_t>(record.bytes);
  while (!bytes.empty()) {
    const std::size_t chunk = begin / chunk_size;
    const std::size_t at = begin % chunk_size;
    const std::size_t size = std::min(chunk_size, file_size - chunk * chunk_size);
    std::size_t done = std::min(bytes.size(), size - at);
    if (done == size) {  // whole chunks, as many as there are
      const bool to_the_end = begin + bytes.size() == file_size;
      done = to_the_end ? bytes.size() : bytes.size() / chunk_size * chunk_size;
      file.read(chunk, bytes.first(done));
    } else {
      const auto load = [&](std::span<std::byte> whole) {
        file.read(chunk, whole);
      };
      const auto cached = cache_.get({file_number, chunk}, size, load);
      std::memcpy(bytes.data(), cached->data() + at, done);
    }
    bytes = bytes.subspan(done);
    begin += done;
  }
}

}  // namespace dstrain::checkpoint
