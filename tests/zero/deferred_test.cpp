// Training on devices whose memory the host cannot reach, and which run what is launched when they
// like: with the bits of the CPU, and within the plan.
#include <algorithm>
#include <array>
#include <csignal>
#include <map>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/optim/parameter_groups.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/zero/memory_tiers.h"
#include "tests/zero/training_fixture.h"

namespace dstrain {
namespace {

using test::device;
using test::host;
using test::nvme;

void check_deferred(test::TrainingCase settings, std::uint64_t seed) {
  CAPTURE(settings.world, settings.stage, seed);
  const test::TrainingResult expected = test::run_training(settings);
  settings.deferred = seed;
  settings.reloads = settings.steps > 1;
  const test::TrainingResult result = test::run_training(settings);
  test::check_same_bits(result, expected);
  test::check_planned(result);
}

TEST_CASE("Deferred device: all stages have the bits of the CPU", "[zero][deferred]") {
  const int world = GENERATE(1, 2, 3);
  const int stage = GENERATE(0, 1, 2, 3);
  const bool overlap = GENERATE(false, true);
  check_deferred({.world = world,
                  .stage = stage,
                  .accumulation = 2,
                  .steps = 2,
                  .evaluates = true,
                  .overlap = {.enabled = overlap, .prefetch_numel = 1'000'000}},
                 static_cast<std::uint64_t>(10 * world + stage));
}

TEST_CASE("Deferred device: in bf16 and in tiles and with recomputing", "[zero][deferred]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::int64_t in_splits = GENERATE(1, 3);
  const auto mode = GENERATE(engine::FrameMode::training, engine::FrameMode::checkpointing,
                             engine::FrameMode::host_checkpointing);
  check_deferred({.world = 2,
                  .stage = 3,
                  .dtype = dtype,
                  .mode = mode,
                  .layers = 3,
                  .dropout = 0.1F,
                  .in_splits = in_splits,
                  .steps = 2,
                  .overlap = {.enabled = true, .prefetch_numel = 1'000'000}},
                 static_cast<std::uint64_t>(in_splits));
}

TEST_CASE("Deferred device: with every offload", "[zero][deferred][offload]") {
  struct Case {
    int stage;
    zero::Offload offload;
  };
  const Case offloaded =
      GENERATE(Case{1, {host, 1, device}}, Case{2, {host, 0.5, device}}, Case{2, {host, 1, device}},
               Case{3, {host, 1, device}}, Case{3, {host, 1, host}}, Case{3, {device, 1, host}},
               Case{3, {nvme, 1, device}}, Case{3, {nvme, 0.5, host}}, Case{3, {host, 1, nvme}},
               Case{3, {device, 1, nvme}}, Case{3, {nvme, 1, nvme}});
  const bool overlap = GENERATE(false, true);
  const int world = overlap ? 2 : 1;
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const test::TempDir folder;
  test::TrainingCase settings{.world = world,
                              .stage = offloaded.stage,
                              .dtype = dtype,
                              .accumulation = 2,
                              .steps = 2,
                              .overlap = {.enabled = overlap, .prefetch_numel = 1'000'000},
                              .offload = offloaded.offload};
  settings.nvme_path = folder.path().string();
  settings.offload.sub_group_numel = 256;
  CAPTURE(dtype, overlap, settings.offload.optimizer, settings.offload.parameters);
  check_deferred(settings, static_cast<std::uint64_t>(world + 2 * offloaded.stage));
}

TEST_CASE("Deferred device: with early updates", "[zero][deferred][offload]") {
  const auto parameters = GENERATE(device, host, nvme);
  const auto early = GENERATE(zero::EarlyUpdate::irrevocable, zero::EarlyUpdate::revocable);
  const bool overlap = GENERATE(false, true);
  const DType dtype = overlap ? DType::bf16 : DType::f32;
  const test::TempDir folder;
  test::TrainingCase settings{.world = 2,
                              .stage = 3,
                              .dtype = dtype,
                              .clipping = early == zero::EarlyUpdate::revocable ? 3.0 : 0,
                              .steps = 4,
                              .overlap = {.enabled = overlap, .prefetch_numel = 1'000'000},
                              .offload = {nvme, 1, parameters}};
  settings.nvme_path = folder.path().string();
  settings.offload.sub_group_numel = 256;
  settings.offload.early = early;
  settings.offload.keeps_gradients = early == zero::EarlyUpdate::revocable;
  CAPTURE(dtype, overlap, parameters, early);
  check_deferred(settings, static_cast<std::uint64_t>(parameters) + 3);
}

/// A name of waits of which some may be left out and nothing shows.
struct Survivors {
  std::string_view name;
  std::ptrdiff_t most;
  std::string_view reason;
};

/// A step, of which each wait is left out in turn. A wait that is new, or goes, changes the list.
struct Mutation {
  test::TrainingCase settings;
  std::string_view of{};  ///< only waits of or for streams with this in their names
  std::vector<Survivors> survivors{};
};

Mutation gathers_and_reductions() {
  return {.settings = {.world = 2,
                       .stage = 3,
                       .global_batch = 4,
                       .persistence_threshold = 40,
                       .layers = 2,
                       .steps = 1,
                       .overlap = {.enabled = true, .prefetch_numel = 1'000'000}},
          .survivors = {
              {"communication for compute after fill_zero", 3,
               "the first gathers of a step take buffers that nobody has used in it"},
              {"communication for compute after layer_norm_backward", 1,
               "the gather ahead for the embedding waits for what the reduction before it has "
               "waited for"},
              {"communication for compute after embedding_backward", 3,
               "the last reductions of a step wait for one point: the first of them is enough"},
              {"compute for communication after convert", 4,
               "of a unit's two segments the later gather is enough; backward of the embedding "
               "reads no parameter; its bucket was emptied before they were gathered; and who "
               "reads what is gathered at the end of a step waits for it anyway"},
              {"host for communication after convert", 1,
               "what is sent is a parameter that backward of the embedding does not read"},
              {"communication for the host", 3, "the queue of the host has nothing to do"}}};
}

/// `of`: "copies" of activations to the host and back, or "transfers" of what the host has updated.
Mutation copies(std::string_view of) {
  Mutation mutation{.settings = {.stage = 3,
                                 .dtype = DType::bf16,
                                 .global_batch = 4,
                                 .persistence_threshold = 40,
                                 .mode = engine::FrameMode::host_checkpointing,
                                 .layers = 3,
                                 .steps = 1,
                                 .overlap = {.enabled = true, .prefetch_numel = 1'000'000},
                                 .offload = {host, 1, device}},
                    .of = of};
  mutation.settings.offload.sub_group_numel = 2500;
  if (of == "copies") {
    mutation.survivors = {
        {"compute for copies after nothing", 1, "nothing has been copied"},
        {"compute for copies after convert", 3,
         "backward of the head and of the last block read what is not copied, and that of the "
         "embedding reads no activation"}};
  } else {
    mutation.survivors = {{"compute for transfers after convert", 8,
                           "the last of a step is enough, as nothing is read before"},
                          {"host for transfers after convert", 2,
                           "the two buffers were in use last when the parameters were loaded"}};
  }
  return mutation;
}

/// Sums over parameters, of what the host updates and of what the device does.
Mutation sums() {
  return {.settings = {.world = 2,
                       .stage = 2,
                       .dtype = DType::bf16,
                       .global_batch = 4,
                       .layers = 2,
                       .steps = 1,
                       .overlap = {.enabled = true},
                       .offload = {host, 0.5, device},
                       .groups =
                           [](const auto& /*names*/) {
                             return optim::ParameterGroups(rules::Lamb::Settings{});
                           }},
          .of = "update",
          .survivors = {{"communication for compute after update", 4,
                         "what the host has updated does not come from the stream that computes"}}};
}

/// Whether a run without a wait ends with other numbers, or with an error. A run that never comes
/// to the wait says nothing of it: how often the host waits depends on how busy the machine is.
bool goes_wrong(const test::TrainingCase& settings, const test::TrainingResult& expected) {
  try {
    const test::TrainingResult result = test::run_training(settings);
    const bool met = std::ranges::find(result.waits, settings.dropped_wait) != result.waits.end();
    return !met || result.losses != expected.losses || result.norms != expected.norms ||
           result.weights != expected.weights || !result.ranks_agree;
  } catch (const Error&) {
    return true;
  }
}

/// Runs that in a process of its own, as it may write to memory that was given back. An end by a
/// signal shows too, also that of a run that hangs.
bool shows(const test::TrainingCase& settings, const test::TrainingResult& expected) {
  constexpr int as_expected = 42;
  constexpr unsigned seconds_max = 120;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS}) std::signal(signal, SIG_DFL);
    ::alarm(seconds_max);
    ::_exit(goes_wrong(settings, expected) ? 0 : as_expected);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != as_expected;
}

using Waits = std::vector<test::DeferredDevice::Wait>;

/// Those of `waits` without which nothing shows in try `number`, which decides what the device
/// chooses and how late it is.
Waits surviving(const Waits& waits,
                int number,
                test::TrainingCase settings,
                const test::TrainingResult& expected) {
  constexpr std::array late_ms{1, 16, 64, 256};
  settings.deferred = static_cast<std::uint64_t>(number);
  settings.late_ms = late_ms.at(static_cast<std::size_t>(number) % late_ms.size());
  Waits found;
  for (const test::DeferredDevice::Wait& wait : waits) {
    settings.dropped_wait = wait;
    if (!shows(settings, expected)) found.push_back(wait);
  }
  return found;
}

/// Every wait but those that are listed shows when it is left out.
void check_mutations(Mutation mutation) {
#ifdef __SANITIZE_THREAD__
  test::skip("a wait that is left out is a race");
#endif
  mutation.settings.deferred = 0;
  test::TrainingResult expected = test::run_training(mutation.settings);
  std::erase_if(expected.waits,
                [&](const auto& wait) { return wait.name.find(mutation.of) == std::string::npos; });
  const auto& listed = mutation.survivors;
  for (const Survivors& one : listed) {
    INFO("is listed: " << one.name);
    CHECK(std::ranges::count(expected.waits, one.name, &test::DeferredDevice::Wait::name) > 0);
  }
  constexpr int tries = 20;  // a busy machine needs some of them
  std::map<std::string, Waits> left;
  for (const auto& wait : surviving(expected.waits, 0, mutation.settings, expected)) {
    left[wait.name].push_back(wait);
  }
  for (auto& [name, waits] : left) {
    const auto place = std::ranges::find(listed, name, &Survivors::name);
    const std::ptrdiff_t most = place == listed.end() ? 0 : place->most;
    for (int number = 1; number < tries && std::ssize(waits) > most; ++number) {
      waits = surviving(waits, number, mutation.settings, expected);
    }
    INFO(name << ": " << (most == 0 ? "not listed" : place->reason));
    for (const auto& wait : waits) UNSCOPED_INFO("number " << wait.number);
    CHECK(std::ssize(waits) <= most);
  }
}

TEST_CASE("Deferred device: a missing wait in a step is detected", "[zero][deferred]") {
  check_mutations(gathers_and_reductions());
}

TEST_CASE("Deferred device: a missing wait for copies is detected", "[zero][deferred]") {
  check_mutations(copies("copies"));
}

TEST_CASE("Deferred device: a missing wait for transfers is detected", "[zero][deferred]") {
  check_mutations(copies("transfers"));
}

TEST_CASE("Deferred device: a missing wait for sums is detected", "[zero][deferred]") {
  check_mutations(sums());
}

}  // namespace
}  // namespace dstrain
