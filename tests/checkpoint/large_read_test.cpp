#include <atomic>
#include <fstream>
#include <stdexcept>

#include <fcntl.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/share_out.h"
#include "runtime/os/fd_io.h"
#include "tests/checkpoint/checkpoint_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using namespace checkpoint;

constexpr std::int64_t large_numel = 6'000'001;  // 23 MiB: read by several threads

void evict(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY));
  flush_file(fd.get(), file.string());
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
}

void flip(const fs::path& file, std::streamoff offset) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(offset);
  const int byte = stream.get();
  stream.seekp(offset);
  stream.put(static_cast<char>(byte ^ 16));
}

}  // namespace

TEST_CASE("Checkpoint: a large range is read from the cache or past it alike", "[checkpoint]") {
  const TempDir output;
  SavedModel model = random_model(1, 1, {large_numel});
  model.bf16 = true;
  const fs::path directory = save(output.path(), model);
  const Checkpoint opened(directory);
  for (const bool cached : {true, false}) {
    for (const StateRecord& state : opened.manifest().states) {
      if (!cached) evict(directory / opened.manifest().shard_path(state, 0));
      std::vector<float> read(static_cast<std::size_t>(large_numel));
      opened.read(state.name, "h.0.weight", 0, read);
      CAPTURE(cached, state.name);
      CHECK((read == values_of(model, state.name, "h.0.weight")));
    }
  }
}

TEST_CASE("Checkpoint: the first of several damaged chunks is named", "[checkpoint]") {
  const TempDir output;
  const fs::path directory = save(output.path(), random_model(1, 1, {large_numel}));
  const Checkpoint opened(directory);
  const fs::path shard = directory / opened.manifest().shard_path(opened.manifest().states[0], 0);
  for (const std::int64_t chunk : {30, 17, 16, 9}) {
    flip(shard, chunk * chunk_bytes + 77);
    for (const bool cached : {true, false}) {
      if (!cached) evict(shard);
      const std::vector<std::string> problems = verify(directory).damage;
      REQUIRE(problems.size() == 1);
      CHECK_THAT(problems[0],
                 Catch::Matchers::ContainsSubstring(fmt::format("byte {} ", chunk * chunk_bytes)));
    }
  }
}

TEST_CASE("ShareOut: each number is given out once", "[checkpoint]") {
  std::vector<std::atomic<int>> given(1000);
  share_out(given.size(), 4, [&](auto&& next) {
    while (const auto number = next()) ++given[*number];
  });
  CHECK(std::ranges::all_of(given, [](const auto& times) { return times == 1; }));
  share_out(0, 4, [](auto&& next) {
    if (next()) throw std::runtime_error("none was there");
  });
}

TEST_CASE("ShareOut: the failure of the lowest number is thrown", "[checkpoint]") {
  for (int round = 0; round < 50; ++round) {
    const auto work = [](auto&& next) {
      while (const auto number = next()) {
        if (*number >= 100) throw std::runtime_error(std::to_string(*number));
      }
    };
    CHECK_THROWS_WITH(share_out(1000, 4, work), "100");
  }
}

}  // namespace dstrain::test
