#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/pending_checkpoint.h"
#include "runtime/checkpoint/temporary_name.h"
#include "tests/checkpoint/checkpoint_files.h"
#include "tests/support/catch.h"
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

/// From now on this process is on a file system that cannot exchange names, as NFS.
void forbid_exchanges() {
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_renameat2, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{filter.size(), filter.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) fail_errno(errno, "seccomp");
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

TEST_CASE("PendingCheckpoint: gets its name when all is there", "[checkpoint]") {
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

TEST_CASE("PendingCheckpoint: leaves nothing when it is given up", "[checkpoint]") {
  const TempDir output;
  { const PendingCheckpoint pending(output.path(), 12); }
  CHECK(names_in(output.path()).empty());
}

TEST_CASE("PendingCheckpoint: two of one step do not meet", "[checkpoint]") {
  const TempDir output;
  const PendingCheckpoint one(output.path(), 12);
  const PendingCheckpoint other(output.path(), 12);
  CHECK(one.path() != other.path());
  CHECK(sweep_stale(output.path()).empty());
}

TEST_CASE("PendingCheckpoint: takes the place of one of the same step", "[checkpoint]") {
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

TEST_CASE("PendingCheckpoint: takes a place where names cannot be exchanged", "[checkpoint]") {
  const TempDir output;
  save(output.path(), tiny_model(1));
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      forbid_exchanges();
      save(output.path(), tiny_model(2));
      ::_exit(0);
    } catch (const std::exception&) {
      ::_exit(1);
    }
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(names_in(output.path()) == std::vector<std::string>{"checkpoint-12"});
  CHECK(holds(output.path() / "checkpoint-12", tiny_model(2)));
}

TEST_CASE("PendingCheckpoint: takes the place of what is no checkpoint", "[checkpoint]") {
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

TEST_CASE("PendingCheckpoint: what does not fit its manifest is not committed", "[checkpoint]") {
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

TEST_CASE("Sweep: what a process left that has ended is removed", "[checkpoint]") {
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

TEST_CASE("Sweep: what may belong to a living process stays", "[checkpoint]") {
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

TEST_CASE("Sweep: other names are nobody's", "[checkpoint]") {
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
