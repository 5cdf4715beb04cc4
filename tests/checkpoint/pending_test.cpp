#include <cerrno>
#include <fstream>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/pending_checkpoint.h"
#include "runtime/checkpoint/temporary_name.h"
#include "tests/checkpoint/checkpoint_files.h"
#include "tests/support/catch.h"
#include "tests/support/child_process.h"
#include "tests/support/newer_checkpoint.h"
#include "tests/support/refused_calls.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using namespace checkpoint;

SavedModel tiny_model(std::uint64_t seed) {
  SavedModel model = random_model(0, 2, {10, 20});
  model.seed = seed;
  return model;
}

SavedModel tiny_model_of(std::int64_t step) {
  SavedModel model = tiny_model(1);
  model.step = step;
  return model;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

/// Whether the checkpoint is whole and holds the values of this model.
bool holds(const fs::path& directory, const SavedModel& model) {
  std::vector<float> values(10);
  Checkpoint(directory).read("exp_avg", "h.0.weight", 0, values);
  return verify(directory).whole() && values == values_of(model, "exp_avg", "h.0.weight");
}

/// Runs `action`, which returns what is wrong, in a child where `folder` is an overlay: what
/// `prepare` has put there lies in its lower layer. Skips the test where there can be none.
template <class Prepare, class Action>
std::string on_overlay(const fs::path& folder, Prepare&& prepare, Action&& action) {
  const std::string problem = in_child([&] {
    std::string missing = mount_for_me("tmpfs", folder, "");
    if (!missing.empty()) return missing;
    for (const char* const layer : {"lower", "upper", "work"}) fs::create_directory(folder / layer);
    prepare(folder / "lower");
    missing = mount_for_me(
        "overlay", folder,
        fmt::format("lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work,redirect_dir=off",
                    folder.string()));
    return missing.empty() ? action() : missing;
  });
  if (problem.starts_with("skip: ")) skip(problem.substr(6));
  return problem;
}

/// The owner that a process had which has ended since.
Owner ended_owner() {
  Owner owner = this_owner();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  owner.process.pid = child;
  ::waitpid(child, nullptr, 0);
  return owner;
}

std::string make_left_over(const fs::path& output, const Owner& owner) {
  std::string name = temporary_name(7, owner, 0);
  fs::create_directories(output / name / "global_step7");
  std::ofstream(output / name / "global_step7" / "shard") << "half of it";
  return name;
}

}  // namespace

TEST_CASE("PendingCheckpoint: gets its name when it is complete", "[checkpoint]") {
  const TempDir output;
  const SavedModel model = tiny_model(1);
  {
    PendingCheckpoint pending(output.path() / "new" / "run", model.step);
    CHECK(fs::is_directory(pending.path() / "global_step12"));
    const Manifest manifest = write_files(pending.path(), model);
    CHECK(list_checkpoints(output.path() / "new" / "run").empty());
    pending.commit(manifest);
  }
  CHECK(names_in(output.path() / "new" / "run") == std::vector<std::string>{"checkpoint-12"});
  CHECK(holds(output.path() / "new" / "run" / "checkpoint-12", model));
}

TEST_CASE("PendingCheckpoint: leaves nothing if it is not committed", "[checkpoint]") {
  const TempDir output;
  { const PendingCheckpoint pending(output.path(), 12); }
  CHECK(names_in(output.path()).empty());
}

TEST_CASE("PendingCheckpoint: two for the same step have different directories", "[checkpoint]") {
  const TempDir output;
  const PendingCheckpoint one(output.path(), 12);
  const PendingCheckpoint other(output.path(), 12);
  CHECK(one.path() != other.path());
  CHECK(sweep_stale(output.path()).empty());
}

TEST_CASE("PendingCheckpoint: replaces a checkpoint of the same step", "[checkpoint]") {
  const TempDir output;
  save(output.path(), tiny_model(1));
  {
    PendingCheckpoint pending(output.path(), 12);
    const Manifest manifest = write_files(pending.path(), tiny_model(2));
    CHECK(holds(output.path() / "checkpoint-12", tiny_model(1)));
    pending.commit(manifest);
    CHECK(holds(output.path() / "checkpoint-12", tiny_model(2)));
  }
  CHECK(names_in(output.path()) == std::vector<std::string>{"checkpoint-12"});
}

TEST_CASE("PendingCheckpoint: replaces a checkpoint without RENAME_EXCHANGE", "[checkpoint]") {
  const TempDir output;
  save(output.path(), tiny_model(1));
  const int error = GENERATE(EINVAL, EXDEV);
  CHECK(in_child([&]() -> std::string {
          if (!refuse_calls(SYS_renameat2, error)) return "no filter";
          save(output.path(), tiny_model(2));
          return "";
        }) == "");
  CHECK(names_in(output.path()) == std::vector<std::string>{"checkpoint-12"});
  CHECK(holds(output.path() / "checkpoint-12", tiny_model(2)));
}

TEST_CASE("PendingCheckpoint: replaces something that is not a checkpoint", "[checkpoint]") {
  const TempDir output;
  const fs::path in_the_way = output.path() / "checkpoint-12";
  const auto kind = GENERATE(0, 1, 2);
  if (kind == 0) fs::create_directory(in_the_way);
  if (kind == 1) std::ofstream(in_the_way) << "text";
  if (kind == 2) fs::create_symlink("nowhere", in_the_way);
  save(output.path(), tiny_model(1));
  CHECK(names_in(output.path()) == std::vector<std::string>{"checkpoint-12"});
  CHECK(holds(in_the_way, tiny_model(1)));
}

TEST_CASE("Overlay: a damaged checkpoint of a lower layer is replaced", "[checkpoint]") {
  const TempDir output;
  const fs::path place = output.path() / "checkpoint-12";
  const auto save_damaged = [](const fs::path& lower) {
    std::ofstream(save(lower, tiny_model(1)) / "config.json", std::ios::in) << "[";
  };
  CHECK(on_overlay(output.path(), save_damaged, [&]() -> std::string {
          if (verify(place).intact()) return "it is not damaged";
          save(output.path(), tiny_model(2));
          return holds(place, tiny_model(2)) ? "" : "it is the old one";
        }) == "");
}

TEST_CASE("Overlay: checkpoints of a lower layer are pruned", "[checkpoint]") {
  const TempDir output;
  const auto save_three = [](const fs::path& lower) {
    for (const std::int64_t step : {1, 2, 3}) save(lower, tiny_model_of(step));
  };
  CHECK(on_overlay(output.path(), save_three, [&] {
          prune(output.path(), 1);
          return fmt::format("{}", fmt::join(names_in(output.path()), " "));
        }) == "checkpoint-3");
}

TEST_CASE("PendingCheckpoint: a checkpoint that cannot be moved loses its manifest first",
          "[checkpoint]") {
  const TempDir output;
  for (const std::int64_t step : {1, 2}) save(output.path(), tiny_model_of(step));
  // It dies between the manifest and the rest.
  CHECK_THAT(in_child([&]() -> std::string {
               if (!refuse_calls(SYS_rename, EXDEV) || !refuse_calls(SYS_unlinkat, EIO)) return "";
               prune(output.path(), 1);
               return "";
             }),
             Catch::Matchers::StartsWith("threw: remove "));
  CHECK(fs::exists(output.path() / "checkpoint-1" / "latest"));
  CHECK_FALSE(has_manifest(output.path() / "checkpoint-1"));
  CHECK(verify(output.path() / "checkpoint-2").whole());
}

TEST_CASE("PendingCheckpoint: does not overwrite one in a newer format", "[checkpoint]") {
  const TempDir output;
  make_newer(save(output.path(), tiny_model(1)));
  CHECK_THROWS_WITH(save(output.path(), tiny_model(2)),
                    Catch::Matchers::ContainsSubstring("dstrain 7.3.0 wrote it") &&
                        Catch::Matchers::EndsWith("it is not overwritten"));
  CHECK(names_in(output.path()) == std::vector<std::string>{"checkpoint-12"});
  CHECK_FALSE(verify(output.path() / "checkpoint-12").newer.empty());
}

TEST_CASE("PendingCheckpoint: files that do not match the manifest are not committed",
          "[checkpoint]") {
  const TempDir output;
  save(output.path(), tiny_model(1));
  {
    PendingCheckpoint pending(output.path(), 12);
    const Manifest manifest = write_files(pending.path(), tiny_model(2));
    fs::remove(pending.path() / "latest");
    CHECK_THROWS_WITH(pending.commit(manifest), Catch::Matchers::EndsWith("latest: missing"));
  }
  CHECK(names_in(output.path()) == std::vector<std::string>{"checkpoint-12"});
  CHECK(holds(output.path() / "checkpoint-12", tiny_model(1)));
}

TEST_CASE("Sweep: directories of ended processes are removed", "[checkpoint]") {
  const TempDir output;
  const fs::path whole = save(output.path(), tiny_model(1));
  const std::string left = make_left_over(output.path(), ended_owner());
  Owner earlier_boot = this_owner();
  earlier_boot.boot = "0123456789abcdef";
  const std::string older = make_left_over(output.path(), earlier_boot);
  std::vector<std::string> removed = sweep_stale(output.path());
  std::ranges::sort(removed);
  std::vector<std::string> expected{left, older};
  std::ranges::sort(expected);
  CHECK(removed == expected);
  CHECK(names_in(output.path()) == std::vector<std::string>{"checkpoint-12"});
  CHECK(holds(whole, tiny_model(1)));
}

TEST_CASE("Sweep: directories of possibly living processes stay", "[checkpoint]") {
  const TempDir output;
  Owner owner = this_owner();
  SECTION("of a living process") {}
  SECTION("of another host") {
    owner = ended_owner();
    owner.host += "-2";
  }
  SECTION("of another pid namespace") {
    owner = ended_owner();
    ++owner.process.pid_namespace;
  }
  SECTION("of a boot that is not known") {
    owner = ended_owner();
    owner.boot = "";
  }
  const std::string name = make_left_over(output.path(), owner);
  CHECK(sweep_stale(output.path()).empty());
  CHECK(names_in(output.path()) == std::vector<std::string>{name});
}

TEST_CASE("Sweep: directories with other names stay", "[checkpoint]") {
  const TempDir output;
  const auto name =
      GENERATE(as<std::string>{}, "checkpoint-7.tmp-", "checkpoint-7.tmp-host-1-2-3",
               "checkpoint-07.tmp-h-0-1-2-3-4", "checkpoint-7.tmp-h-0-1-2-3-x",
               "checkpoint-7.tmp-h-0-1-2-99999999999-4", "run.tmp-h-0-1-2-3-4", "checkpoint-7");
  fs::create_directory(output.path() / name);
  CHECK(sweep_stale(output.path()).empty());
  CHECK(fs::exists(output.path() / name));
  CHECK(sweep_stale(output.path() / "missing").empty());
}

TEST_CASE("Sweep: the owner is read back from the name", "[checkpoint]") {
  const Owner owner{"node-1.example", "0123456789abcdef", {12, 345, 678}};
  const std::string name = temporary_name(9, owner, 3);
  CHECK(name == "checkpoint-9.tmp-node-1.example-0123456789abcdef-678-12-345-3");
  const auto read = owner_of(name);
  REQUIRE(read.has_value());
  CHECK(read->host == owner.host);
  CHECK(read->boot == owner.boot);
  CHECK(read->process.pid == 12);
  CHECK(read->process.start_ticks == 345);
  CHECK(read->process.pid_namespace == 678);
}

}  // namespace dstrain::test
