#include <cstdlib>
#include <fstream>
#include <iterator>

#include "runtime/base/error.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/numeric/philox.h"
#include "tests/checkpoint/checkpoint_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using namespace checkpoint;

/// How often the random tests try: DSTRAIN_DAMAGE_ROUNDS, else a few hundred times.
std::uint64_t rounds() {
  const char* const given = std::getenv("DSTRAIN_DAMAGE_ROUNDS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 300;
}

SavedModel small_model() {
  SavedModel model = random_model(5, 2, {300'000, 5, 900'000, 17});
  model.bf16 = true;
  return model;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// What reading every state of every parameter throws.
std::string load_problem(const fs::path& directory) {
  try {
    const Checkpoint opened(directory);
    for (const StateRecord& state : opened.manifest().states) {
      for (const TensorRecord& tensor : opened.manifest().tensors) {
        std::vector<float> values(static_cast<std::size_t>(tensor.shape.numel()));
        opened.read(state.name, tensor.name, 0, values);
      }
    }
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::input);
    return error.what();
  }
  return "";
}

class Damage {
 public:
  explicit Damage(std::uint64_t seed) : seed_(seed) {}

  std::size_t below(std::size_t bound) {
    return uniform_below({.seed = seed_, .index = ++drawn_}, bound);
  }

  /// Flips a bit or cuts the end off; returns what the message must say.
  std::string apply(std::string& bytes) {
    const std::size_t at = below(bytes.size());
    if (below(4) == 0) {
      const std::size_t before = bytes.size();
      bytes.resize(at);
      return fmt::format("truncated: has {} bytes, {} expected", at, before);
    }
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
    return fmt::format("damaged at byte {} ", at / chunk_bytes * chunk_bytes);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

}  // namespace

TEST_CASE("Checkpoint: every flipped bit and truncation is found with its place", "[checkpoint]") {
  const TempDir output;
  const fs::path directory = save(output.path(), small_model());
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  REQUIRE(files.size() == 8);
  for (std::uint64_t round = 0; round < rounds(); ++round) {
    Damage damage(round);
    const fs::path& file = files[damage.below(files.size())];
    const std::string good = bytes_of(file);
    std::string bad = good;
    const bool manifest = file.filename() == manifest_name;
    const std::string place = damage.apply(bad);
    const std::string expected = file.string() + ": " + (manifest ? "damaged: its " : place);
    write_bytes(file, bad);
    CAPTURE(round, file.string(), place);
    const std::vector<std::string> problems = verify(directory).damage;
    REQUIRE(problems.size() == 1);
    CHECK_THAT(problems.front(), Catch::Matchers::StartsWith(expected));
    if (file.extension() == ".safetensors" || manifest) {
      CHECK_THAT(load_problem(directory), Catch::Matchers::StartsWith(expected));
    }
    write_bytes(file, good);
  }
  CHECK(verify(directory).whole());
}

TEST_CASE("Checkpoint: extra and missing and moved files are found", "[checkpoint]") {
  const TempDir output;
  const fs::path directory = save(output.path(), small_model());
  const std::string root = directory.string() + "/";
  const auto damage = [&] {
    return verify(directory, Depth::names).damage;
  };
  const auto foreign = [&] {
    return verify(directory, Depth::names).foreign;
  };
  using Lines = std::vector<std::string>;

  write_bytes(directory / "global_step12/notes", "");
  CHECK(foreign() == Lines{"global_step12/notes"});
  CHECK(damage().empty());
  fs::remove(directory / "global_step12/notes");

  fs::create_directories(directory / "more/and_more");
  CHECK(foreign() == Lines{"more/"});
  CHECK(verify(directory).intact());
  CHECK_FALSE(verify(directory).whole());
  fs::remove_all(directory / "more");

  fs::rename(directory / "config.json", directory / "config.old");
  CHECK(foreign() == Lines{"config.old"});
  CHECK(damage() == Lines{root + "config.json: missing"});
  CHECK(load_problem(directory) == root + "config.json: missing");

  fs::create_symlink("config.old", directory / "config.json");
  CHECK(damage().back() ==
        root + "config.json: a symbolic link, which is not followed; copy its target instead");
  fs::remove(directory / "config.json");
  fs::create_directory(directory / "config.json");
  CHECK(damage().back() == root + "config.json: not a regular file");
  fs::remove(directory / "config.json");
  fs::rename(directory / "config.old", directory / "config.json");

  write_bytes(directory / "latest", "global_step122");
  CHECK(damage() == Lines{root + "latest: too long: has 14 bytes, 13 expected"});
  write_bytes(directory / "latest", "global_step12");
  CHECK(verify(directory).whole());
}

TEST_CASE("Checkpoint: every damaged file is named and not only the first", "[checkpoint]") {
  const TempDir output;
  const fs::path directory = save(output.path(), small_model());
  write_bytes(directory / "latest", "global_step13");
  fs::remove(directory / "config.json");
  write_bytes(directory / "more", "");
  CHECK(verify(directory).damage.size() == 2);
  CHECK(verify(directory).foreign.size() == 1);
}

TEST_CASE("Checkpoint: files swapped between ranks are found", "[checkpoint]") {
  const TempDir output;
  SavedModel model = random_model(5, 2, {100});
  model.tensors[0].slices = {{0, 0, 50}, {1, 50, 100}};  // so that both have one size
  const fs::path directory = save(output.path(), model);
  const fs::path shards = directory / "global_step12";
  const std::string first = "zero_pp_rank_0_mp_rank_00_optim_states.safetensors";
  const std::string second = "zero_pp_rank_1_mp_rank_00_optim_states.safetensors";
  fs::rename(shards / first, shards / "x");
  fs::rename(shards / second, shards / first);
  fs::rename(shards / "x", shards / second);
  CHECK(verify(directory, Depth::names).whole());
  CHECK(verify(directory).damage.size() == 2);
  CHECK_THAT(load_problem(directory),
             Catch::Matchers::ContainsSubstring("damaged at byte 0 (chunk of"));
}

TEST_CASE("Checkpoint: a directory with the name of another step is damaged", "[checkpoint]") {
  const TempDir output;
  const fs::path directory = save(output.path(), small_model());
  fs::rename(directory, output.path() / "checkpoint-13");
  CHECK_THAT(verify(output.path() / "checkpoint-13").damage.at(0),
             Catch::Matchers::ContainsSubstring("is of step 12"));
  fs::rename(output.path() / "checkpoint-13", output.path() / "best");
  CHECK(verify(output.path() / "best").whole());
}

}  // namespace dstrain::test
