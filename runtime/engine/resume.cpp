#include "runtime/engine/resume.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>

#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/manifest_text.h"
#include "runtime/checkpoint/temporary_name.h"

namespace dstrain::engine {
namespace {

/// The first damage that a rank has met.
class Damage {
 public:
  /// Runs `action` unless something is damaged already.
  template <class Action>
  bool attempt(Action&& action) {
    if (found()) return false;
    try {
      action();
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::input && error.code() != ErrorCode::io) throw;
      const std::lock_guard lock(mutex_);
      if (text_.empty()) text_ = error.what();
      return false;
    }
  }
  [[nodiscard]] bool found() const { return !text().empty(); }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Reads a state; after damage only zeros, so that this rank stays in step with the others.
class ToleratedState final : public model::ParameterSource {
 public:
  ToleratedState(checkpoint::CheckpointState state, Damage& damage)
      : state_(std::move(state)), damage_(damage) {}
  void read(const model::ParameterSpec& spec,
            std::int64_t begin,
            std::span<float> values) const override {
    if (damage_.attempt([&] { state_.read(spec, begin, values); })) return;
    std::ranges::fill(values, 0.0F);
  }

 private:
  checkpoint::CheckpointState state_;
  Damage& damage_;
};

/// Rank 0's plan, which the others need not know; but each knows where its own node keeps shards.
ResumePlan agree(ResumePlan plan, comm::ControlGroup& control) {
  std::string fields = plan.directory.string() + '\0' + (plan.fall_back ? "fall back" : "");
  for (const std::string& name : plan.names) fields += '\0' + name;
  std::istringstream first(control.broadcast(fields, 0));
  std::string field;
  std::getline(first, field, '\0');
  if (plan.files == checkpoint::Checkpoint::Files::all) plan.directory = field;
  std::getline(first, field, '\0');
  plan.fall_back = !field.empty();
  plan.names.clear();
  while (std::getline(first, field, '\0')) plan.names.push_back(field);
  return plan;
}

/// The damage that the first rank with any has found; empty if there is none.
std::string agree(const Damage& damage, comm::ControlGroup& control) {
  const auto texts = control.gather_texts(damage.text());
  const auto first = std::ranges::find_if(texts, [](const auto& text) { return !text.empty(); });
  return first == texts.end() ? "" : *first;
}

using Opened = std::optional<checkpoint::Checkpoint>;

std::string digest_of(const checkpoint::Manifest& manifest) {
  const std::string text = checkpoint::to_text(manifest);
  return checkpoint::to_text(checkpoint::checksum_of(std::as_bytes(std::span(text))));
}

/// Why the checkpoint cannot be opened; empty when it is. `digest`: of the manifest that it must
/// have; empty: any.
std::string try_to_open(Opened& opened,
                        const std::filesystem::path& path,
                        checkpoint::Checkpoint::Files files,
                        const std::string& digest) {
  try {
    opened.emplace(path, files);
    if (digest.empty() || digest_of(opened->manifest()) == digest) return {};
    opened.reset();
    return (path / checkpoint::manifest_name).string() + ": is not the one that rank 0 sees";
  } catch (const Error& error) {
    opened.reset();
    if (error.code() != ErrorCode::input && error.code() != ErrorCode::io) throw;
    return error.what();
  }
}

/// Opens it on every rank as rank 0 sees it. Returns what is damaged. Throws Error{input} when
/// another host does not see it.
std::string open_alike(Opened& opened,
                       const std::filesystem::path& path,
                       const ResumePlan& plan,
                       comm::ControlGroup& control) {
  const bool decides = control.rank() == 0;
  std::string problem = decides ? try_to_open(opened, path, plan.files, "") : "";
  std::string damage = control.broadcast(problem, 0);
  if (!damage.empty()) return damage;
  const bool shared = plan.files == checkpoint::Checkpoint::Files::all;
  const std::string digest =
      shared ? control.broadcast(decides ? digest_of(opened->manifest()) : "", 0) : "";
  Deadline deadline = Deadline::after(shared ? plan.visible_seconds : 0);
  for (bool first = true;; first = false) {
    if (!opened) problem = try_to_open(opened, path, plan.files, digest);
    const std::string host = checkpoint::this_owner().host;
    const auto problems =
        control.gather_texts(problem.empty() || !shared ? problem
                                                        : fmt::format("host {} (rank {}): {}", host,
                                                                      control.rank(), problem));
    const auto found =
        std::ranges::find_if(problems, [](const auto& text) { return !text.empty(); });
    if (found == problems.end()) return {};
    if (!shared) return *found;
    if (control.any(decides && deadline.passed())) {
      fail(ErrorCode::input,
           "rank 0 sees {}, which another host has not seen for {:.3g} s: {}; let all hosts share "
           "that directory, or leave out the host",
           path.string(), plan.visible_seconds, *found);
    }
    if (decides && first) {
      log_info(fmt::format("waiting until all hosts see {}, at most {:.3g} s: {}", path.string(),
                           plan.visible_seconds, *found));
    }
    deadline.slice(0, [&] { look_again(path.parent_path()); });
  }
}

/// The states that ParameterStore::load() takes, the parameters first.
std::vector<ToleratedState> open_states(const checkpoint::Checkpoint& checkpoint,
                                        const ResumeInputs& inputs,
                                        Damage& damage) {
  const std::vector<model::ParameterSpec> specs = inputs.model.parameters();
  std::vector<ToleratedState> states;
  for (const SavedState& state : inputs.store.saved_states()) {
    if (state.rounded) continue;
    states.emplace_back(checkpoint::CheckpointState(checkpoint, state.name, specs), damage);
  }
  return states;
}

/// Checks this rank's share of the files that load() reads nothing of: the shards that a rank of
/// this number has written, which may lie on its node alone, and some of the rest.
void verify_share(const checkpoint::Checkpoint& checkpoint,
                  const comm::ControlGroup& control,
                  Damage& damage) {
  const checkpoint::Manifest& manifest = checkpoint.manifest();
  struct Shard {
    int rank = 0;
    bool read = false;
  };
  std::map<std::string, Shard> shards;
  for (const checkpoint::StateRecord& state : manifest.states) {
    for (int rank = 0; rank < manifest.world_size; ++rank) {
      shards[manifest.shard_path(state, rank)] = {rank, state.file == checkpoint::optimizer_file};
    }
  }
  int next = 0;
  for (const checkpoint::FileRecord& file : manifest.files) {
    const auto shard = shards.find(file.path);
    if (shard != shards.end() && shard->second.read) continue;
    const int number = shard != shards.end() ? shard->second.rank : next++;
    if (number % control.size() != control.rank()) continue;
    damage.attempt([&] { checkpoint.verify_file(file); });
  }
}

/// Loads one checkpoint, as far as it goes. Returns what is damaged.
std::string load(const std::filesystem::path& path,
                 const ResumePlan& plan,
                 const TrainerState& run,
                 const ResumeInputs& inputs,
                 StreamView stream,
                 TrainerState& state) {
  Opened checkpoint;
  std::string found = open_alike(checkpoint, path, plan, inputs.control);
  if (!found.empty()) return found;
  Damage damage;
  std::vector<ToleratedState> states;
  damage.attempt([&] {
    state = read_run(*checkpoint, run, inputs.model, plan.other_data);
    states = open_states(*checkpoint, inputs, damage);
  });
  // Loading is collective: no rank begins before all can.
  found = agree(damage, inputs.control);
  if (!found.empty()) return found;
  std::vector<const model::ParameterSource*> sources;
  sources.reserve(states.size());
  for (const ToleratedState& source : states) sources.push_back(&source);
  inputs.store.load({*sources.front(), std::span(sources).subspan(1)}, stream);
  verify_share(*checkpoint, inputs.control, damage);
  return agree(damage, inputs.control);
}

/// They do not touch the data, but whoever put them there may not know where they lie.
void warn_of_foreign_files(const std::filesystem::path& path) {
  const auto foreign = checkpoint::verify(path, checkpoint::Depth::names).foreign;
  if (foreign.empty()) return;
  log_warning(
      fmt::format("{} is whole, but holds foreign files: {}; move them away, or they go with it "
                  "when it is removed",
                  path.string(), checkpoint::listed(foreign)));
}

}  // namespace

Resumed resume(const ResumePlan& own_plan,
               const TrainerState& run,
               const ResumeInputs& inputs,
               StreamView stream) {
  const ResumePlan plan = agree(own_plan, inputs.control);
  std::string found;
  for (const std::string& name : plan.names) {
    const std::filesystem::path path = plan.directory / name;
    Resumed resumed;
    resumed.checkpoint = path;
    found = load(path, plan, run, inputs, stream, resumed.state);
    const bool speaks = inputs.control.rank() == 0;
    if (found.empty()) {
      if (speaks) warn_of_foreign_files(path);
      return resumed;
    }
    if (!plan.fall_back) break;
    if (speaks) {
      log_warning(fmt::format("{} is damaged and not used: {}", path.string(), found));
    }
  }
  fail(ErrorCode::input, "there is no whole checkpoint to resume from: {}", found);
}

}  // namespace dstrain::engine
