// What a power cut would leave: everything is flushed before it gets its name, and the name after
// it.
#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "runtime/checkpoint/catalog.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;

namespace {

namespace fs = std::filesystem;

struct Call {
  std::string rank;
  std::string name;
  fs::path path;
  fs::path target;  ///< of a rename
};

/// The calls of a run of four steps, two checkpoints and a model, on the files of `output`; reads
/// left out.
std::vector<Call> calls_of_run(const fs::path& folder, const fs::path& output) {
  const fs::path log = folder / "calls";
  const test::ResumableRun run{.ranks = 2,
                               .stage = 2,
                               .more = {"--save_steps", "2"},
                               .environment = {{"LD_PRELOAD", DSTRAIN_FAULT_LIBRARY},
                                               {"OMP_NUM_THREADS", "1"},
                                               {"DSTRAIN_FAULT_FILES", output.string()},
                                               {"DSTRAIN_FAULT_LOG", log.string()}}};
  const test::TrainRun result = run.train(output, 4);
  INFO(result.err);
  REQUIRE(result.status == 0);
  const std::set<std::string> wanted{"write", "fsync", "mkdir", "rename"};
  std::vector<Call> calls;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Call call;
    std::string path;
    std::string target;
    words >> call.rank >> call.name >> path >> target;
    call.path = path;
    call.target = target;
    if (wanted.contains(call.name)) calls.push_back(call);
  }
  return calls;
}

bool is_within(const fs::path& path, const fs::path& directory) {
  const fs::path from_there = path.lexically_relative(directory);
  return !from_there.empty() && *from_there.begin() != "..";
}

/// Walks over the calls and keeps what is not on the disk.
class FlushCheck {
 public:
  explicit FlushCheck(fs::path output) : output_(std::move(output)) {}

  void see(const Call& call) {
    if (call.path.filename() == "metrics.jsonl") return see_rows(call);
    if (call.name == "fsync") return flush(call);
    for (const Call& done : renamed_) {
      if (done.rank == call.rank) complain(call, "comes before the flush of the name", done.target);
    }
    if (call.name == "rename") return rename(call);
    for (const fs::path& manifest : manifests_) {
      const bool late = call.path != manifest && is_within(call.path, manifest.parent_path());
      if (late) complain(call, "comes after", manifest);
    }
    if (call.path.filename() == "manifest.json") begin_manifest(call);
    (call.name == "mkdir" ? directories_ : files_).insert(call.path);
    if (call.path.parent_path() != output_) directories_.insert(call.path.parent_path());
  }

  /// What is wrong, a line each.
  [[nodiscard]] std::string problems() const {
    std::string all = problems_;
    for (const Call& call : renamed_) {
      all += fmt::format("the name {} is not flushed\n", call.target.string());
    }
    return all;
  }
  [[nodiscard]] const std::set<std::string>& names() const { return names_; }

 private:
  /// A write of a row for each step; others may be written while a checkpoint is flushed.
  void see_rows(const Call& call) {
    if (call.name == "write") ++rows_;
    if (call.name == "fsync") flushed_rows_ = rows_;
  }

  void flush(const Call& call) {
    files_.erase(call.path);
    directories_.erase(call.path);
    std::erase_if(renamed_, [&](const Call& done) {
      return done.rank == call.rank && done.target.parent_path() == call.path;
    });
  }

  void rename(const Call& call) {
    complain_within(call, files_, call.path);
    complain_within(call, directories_, call.path);
    const std::string name = call.target.filename().string();
    const std::optional<std::int64_t> step = checkpoint::step_of(name);
    if (step && flushed_rows_ < *step) complain(call, "comes before the rows of", call.target);
    // A trial renames to a temporary name.
    if (name.find(".tmp-") == std::string::npos) names_.insert(name);
    renamed_.push_back(call);
  }

  /// All other files are on the disk.
  void begin_manifest(const Call& call) {
    if (manifests_.insert(call.path).second) {
      complain_within(call, files_, call.path.parent_path());
    }
  }

  void complain_within(const Call& call,
                       const std::set<fs::path>& unflushed,
                       const fs::path& directory) {
    for (const fs::path& path : unflushed) {
      if (is_within(path, directory)) complain(call, "comes before the flush of", path);
    }
  }

  void complain(const Call& call, const char* what, const fs::path& other) {
    problems_ += fmt::format("{} {} {} {}\n", call.name, call.path.string(), what, other.string());
  }

  fs::path output_;
  std::set<fs::path> files_;        ///< with bytes that are not on the disk
  std::set<fs::path> directories_;  ///< with names that are not
  std::set<fs::path> manifests_;    ///< nothing more comes beside them
  std::vector<Call> renamed_;       ///< to names that are not on the disk
  std::int64_t rows_ = 0;           ///< of metrics.jsonl, and how many are on the disk
  std::int64_t flushed_rows_ = 0;
  std::set<std::string> names_;  ///< all that something was renamed to
  std::string problems_;
};

}  // namespace

TEST_CASE("Flushes: all data is on disk before the checkpoint gets its name",
          "[fault][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "run";
  const std::vector<Call> calls = calls_of_run(folder.path(), output);
  FlushCheck check(output);
  std::string log;
  for (const Call& call : calls) {
    check.see(call);
    log += fmt::format("{} {} {} {}\n", call.rank, call.name, call.path.string(),
                       call.target.string());
  }
  INFO(log);
  CHECK(check.problems() == "");
  CHECK(check.names() ==
        std::set<std::string>{"checkpoint-2", "checkpoint-4", "config.json", "model.safetensors"});
  const auto written = [&](const std::string& file, const std::string& rank) {
    return std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
      return call.name == "fsync" && call.rank == rank && call.path.filename() == file;
    });
  };
  CHECK(written("manifest.json", "0"));
  CHECK(written("zero_pp_rank_0_mp_rank_00_optim_states.safetensors", "0"));
  CHECK(written("zero_pp_rank_1_mp_rank_00_optim_states.safetensors", "1"));
}
