#include "runtime/engine/checkpointer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <map>
#include <system_error>

#include "runtime/base/log.h"
#include "runtime/base/units.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/shard_writer.h"
#include "runtime/checkpoint/temporary_name.h"
#include "runtime/engine/file_records.h"
#include "runtime/engine/model_saver.h"

namespace dstrain::engine {
namespace {

/// How often ranks that have nothing else to do tell each other how far they are: within the
/// timeout of a collective, however long writing takes.
constexpr double vote_seconds = 1;

Bytes bytes_of_all(const model::Model& model, const ParameterStore& store, bool whole_model) {
  Bytes per_element = whole_model ? size_of(model.dtype) : 0;
  for (const SavedState& state : store.saved_states()) per_element += size_of(state.dtype);
  return model.parameter_count() * per_element;
}

/// Identical files that several nodes have written count once.
using Files = std::map<std::string, checkpoint::FileRecord>;

Files by_path(const std::vector<std::string>& records_by_rank) {
  Files files;
  for (const std::string& records : records_by_rank) {
    for (checkpoint::FileRecord& record : decode_records(records)) {
      files.insert_or_assign(record.path, std::move(record));
    }
  }
  return files;
}

/// ": 12 MiB more is needed there", when that is why a save has failed.
std::string missing_space(const std::filesystem::path& directory, Bytes needed) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  const auto available = static_cast<Bytes>(space.available);
  if (error || available >= needed) return "";
  return fmt::format("; it needs {}, and {} has only {} free", format_bytes(needed),
                     directory.string(), format_bytes(available));
}

template <class Action>
std::optional<Error> attempt(Action&& action) {
  try {
    action();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

/// Whether a system call fails for good: the file system, or who may do what there, must change.
bool is_lasting(int error) {
  constexpr std::array lasting{EINVAL, ENOTSUP, ENOSYS,       EPERM, EACCES, EROFS,
                               ENOENT, ENOTDIR, ENAMETOOLONG, EXDEV, ELOOP};
  return std::ranges::find(lasting, error) != lasting.end();
}

}  // namespace

Checkpointer::Checkpointer(Inputs inputs, Options options, StreamView stream)
    : inputs_(std::move(inputs)),
      options_(std::move(options)),
      stream_(stream),
      staged_(inputs_.store.saved_states(), inputs_.store.saved_slices(inputs_.control.rank())),
      checkpoint_bytes_(bytes_of_all(inputs_.model, inputs_.store, options_.whole_model)),
      whole_(options_.saved_step > 0 ? 1 : 0, options_.saved_step) {
  if (!commits()) return;
  for (const std::string& name : checkpoint::sweep_stale(options_.output)) {
    log_info(fmt::format("removed {}, which a run that has ended did not finish",
                         (options_.output / name).string()));
  }
}

std::filesystem::path Checkpointer::path_of(std::int64_t step) const {
  return options_.output / checkpoint::directory_name(step);
}

void Checkpointer::rehearse(std::int64_t step) {
  const InPhase saving(inputs_.progress, RunPhase::saving);
  step_ = step;
  const std::vector<std::string> hosts =
      of_directory(inputs_.control.gather_texts(checkpoint::this_owner().host));
  const bool alone = std::ranges::count(hosts, hosts.front()) == std::ssize(hosts);
  visible_seconds_ = alone ? 0 : options_.visible_seconds;
  std::optional<Error> failure = make_directory();
  if (!failure && !path_.empty()) failure = attempt([this] { rehearse_writing(); });
  failure = first_failure(failure);
  if (!failure) {
    failure = first_failure(commits() ? attempt([this] { pending_->rehearse(); }) : std::nullopt);
  }
  pending_.reset();
  if (!failure) return;
  // The end of the first rank that fails ends the others: not while one still removes its files.
  inputs_.control.barrier();
  if (is_lasting(failure->errno_value())) {
    fail(ErrorCode::usage, "--output_dir {}: no checkpoint can be saved there: {}; choose another",
         options_.output.string(), failure->what());
  }
  if (!speaks()) return;
  log_warning(
      fmt::format("a trial save in {} has failed: {}; training goes on, and later saves are "
                  "tried anew",
                  options_.output.string(), failure->what()));
}

void Checkpointer::rehearse_writing() const {
  await_directory();
  for (const checkpoint::StateRecord& state : own_files()) {
    checkpoint::write_text(path_, shard_path(state), "a trial");
  }
}

std::optional<Error> Checkpointer::first_failure(const std::optional<Error>& own) const {
  const std::vector<int> errors = inputs_.control.gather(own ? own->errno_value() : 0);
  const std::vector<std::string> texts = inputs_.control.gather_texts(own ? own->what() : "");
  const auto first = std::ranges::find_if(texts, [](const auto& text) { return !text.empty(); });
  if (first == texts.end()) return std::nullopt;
  const auto rank = first - texts.begin();
  return Error(ErrorCode::io, fmt::format("{} (rank {})", *first, rank),
               errors[static_cast<std::size_t>(rank)]);
}

void Checkpointer::begin(const TrainerState& state) {
  finish();
  step_ = state.global_step;
  state_text_ = to_text(state);
  best_ = options_.keeps_best && state.best ? state.best->directory : "";
  files_.clear();
  failure_.clear();
  const std::optional<Error> failure = make_directory();
  if (failure || path_.empty())
    task_.fail(failure ? failure->what() : "");  // who made none says why
  if (options_.whole_model) save_whole_model();
  if (task_.state() != State::failed) stage();
  if (task_.state() != State::failed) start([this] { write_shard(); });
  phase_ = Phase::writing;
}

/// Selects from `all`, by rank, the values of the ranks that write into this rank's directory.
std::vector<std::string> Checkpointer::of_directory(const std::vector<std::string>& all) const {
  std::vector<std::string> here;
  for (const int rank : inputs_.directory_ranks)
    here.push_back(all[static_cast<std::size_t>(rank)]);
  return here;
}

std::optional<Error> Checkpointer::make_directory() {
  std::string made;
  std::optional<Error> failure = attempt([&] {
    if (!commits()) return;
    pending_ = std::make_unique<checkpoint::PendingCheckpoint>(options_.output, step_);
    made = pending_->path().string();
  });
  path_ = of_directory(inputs_.control.gather_texts(made)).front();
  return failure;
}

void Checkpointer::await_directory() const {
  if (checkpoint::PendingCheckpoint::await(path_, step_, visible_seconds_)) return;
  fail_errno(ENOENT, fmt::format("host {} does not see {}, which rank {} has made{}",
                                 checkpoint::this_owner().host, path_.string(),
                                 inputs_.directory_ranks.front(),
                                 visible_seconds_ > 0 ? " on another host" : ""));
}

/// Every rank helps to gather, also one that has failed by now.
void Checkpointer::save_whole_model() {
  const bool writes = commits() && !path_.empty();
  const std::exception_ptr failure =
      save_model(inputs_.model, inputs_.store, writes ? &path_ : nullptr, stream_);
  if (!writes) return;
  try {
    if (failure) std::rethrow_exception(failure);
    std::vector<std::string> names{"config.json", "model.safetensors"};
    for (const auto& file : inputs_.model.companions) names.push_back(file.name);
    for (const std::string& name : names) {
      files_.push_back(checkpoint::record_file(path_, name));
    }
  } catch (const Error& error) {
    task_.fail(error.what());
  }
}

/// Without room for the copy this save is given up; states that cannot be read end the run.
void Checkpointer::stage() {
  try {
    staged_.reserve(inputs_.staging, stream_);
  } catch (const Error& error) {
    const bool passes = error.code() == ErrorCode::out_of_memory ||
                        error.code() == ErrorCode::out_of_device_memory ||
                        error.code() == ErrorCode::io;
    if (!passes) throw;
    return task_.fail(error.what());
  }
  const auto bad = staged_.copy(inputs_.store);
  if (bad) task_.fail(fmt::format("{} holds a value that is not finite", *bad));
}

void Checkpointer::start(std::function<void()> work) {
  ProgressPage* const progress = inputs_.progress;
  if (progress == nullptr) return task_.start(std::move(work));
  task_.start([progress, work = std::move(work)] {
    const SavePublished published(*progress);
    work();
  });
}

std::vector<checkpoint::StateRecord> Checkpointer::own_files() const {
  std::vector<checkpoint::StateRecord> files;
  for (checkpoint::StateRecord& state : state_records(inputs_.store.saved_states())) {
    const auto known = std::ranges::find(files, state.file, &checkpoint::StateRecord::file);
    if (known == files.end()) files.push_back(std::move(state));
  }
  return files;
}

std::string Checkpointer::shard_path(const checkpoint::StateRecord& state) const {
  checkpoint::Manifest names;
  names.step = step_;
  return names.shard_path(state, inputs_.control.rank());
}

void Checkpointer::write_shard() {
  await_directory();
  for (const checkpoint::StateRecord& state : own_files()) {
    files_.push_back(checkpoint::write_shard(path_, shard_path(state), staged_.tensors(state.file),
                                             [this] { say_progress(); }));
  }
}

void Checkpointer::say_progress() const {
  if (inputs_.progress != nullptr) inputs_.progress->advance_save();
}

void Checkpointer::advance(std::span<const State> ranks) {
  const auto any = [&](State state) {
    return std::ranges::find(ranks, state) != ranks.end();
  };
  if (phase_ == Phase::none || any(State::busy)) return;
  if (any(State::failed)) return give_up();
  switch (phase_) {
    case Phase::writing:
      return start_commit();
    case Phase::committing:
      return acknowledge();
    default:
      phase_ = Phase::none;
  }
}

void Checkpointer::start_commit() {
  std::vector<std::string> records = inputs_.control.gather_texts(encode_records(files_));
  const std::vector<std::string> here = of_directory(records);
  phase_ = Phase::committing;
  if (!commits()) return;
  start([this, records = std::move(records), here] { commit(records, here); });
}

/// `latest` comes last among the files, the directory's name after it.
void Checkpointer::commit(const std::vector<std::string>& all,
                          const std::vector<std::string>& here) {
  checkpoint::Manifest manifest = describe();
  Files files = by_path(all);
  std::vector<std::string> elsewhere;
  const Files own = by_path(here);
  for (const auto& [path, record] : files) {
    if (!own.contains(path)) elsewhere.push_back(path);
  }
  const std::string tag = fmt::format("global_step{}", step_);
  std::vector<std::pair<std::string, std::string_view>> texts{
      {"trainer_state.json", state_text_},
      {"ds_config.json", options_.ds_config},
      {"config.json", inputs_.model.config_json}};
  for (const auto& file : inputs_.model.companions) texts.emplace_back(file.name, file.bytes);
  texts.emplace_back("latest", tag);
  if (inputs_.flush_beside) inputs_.flush_beside();
  for (const auto& [name, text] : texts) {
    if (!files.contains(name)) files.emplace(name, checkpoint::write_text(path_, name, text));
    say_progress();
  }
  for (auto& [name, record] : files) manifest.files.push_back(std::move(record));
  pending_->commit(manifest, elsewhere, visible_seconds_);
}

checkpoint::Manifest Checkpointer::describe() const {
  checkpoint::Manifest manifest;
  manifest.step = step_;
  manifest.world_size = inputs_.control.size();
  manifest.states = state_records(inputs_.store.saved_states());
  std::map<std::string, std::vector<checkpoint::Slice>> slices;
  for (int rank = 0; rank < manifest.world_size; ++rank) {
    for (const ParameterSlice& slice : inputs_.store.saved_slices(rank)) {
      slices[slice.parameter].push_back({rank, slice.begin, slice.end});
    }
  }
  for (const model::ParameterSpec& spec : inputs_.model.parameters()) {
    std::ranges::sort(slices[spec.name], {}, &checkpoint::Slice::begin);
    manifest.tensors.push_back({spec.name, spec.shape, std::move(slices[spec.name])});
  }
  return manifest;
}

void Checkpointer::acknowledge() {
  pending_.reset();
  whole_.push_back(step_);
  if (speaks()) inputs_.say(fmt::format("saved {}", path_of(step_).string()));
  phase_ = options_.total_limit > 0 ? Phase::pruning : Phase::none;
  if (phase_ == Phase::none || !commits()) return;
  start([this] { checkpoint::prune(options_.output, options_.total_limit, whole_, best_); });
}

void Checkpointer::give_up() {
  const std::vector<std::string> messages = inputs_.control.gather_texts(task_.failure());
  const auto first = std::ranges::find_if(messages, [](const auto& text) { return !text.empty(); });
  failure_ = first == messages.end() ? "" : *first;
  const bool removing = phase_ == Phase::pruning;
  phase_ = Phase::none;
  task_.reset();
  pending_.reset();  // and with it the files
  if (!speaks()) return;
  if (removing) return log_warning("old checkpoints are not removed: " + failure_);
  log_warning(fmt::format("{} is not saved: {} (rank {}){}", path_of(step_).string(), failure_,
                          first - messages.begin(),
                          missing_space(options_.output, checkpoint_bytes_)));
}

void Checkpointer::finish() {
  if (phase_ == Phase::none) return;
  const InPhase waiting(inputs_.progress, RunPhase::awaiting_save);
  while (phase_ != Phase::none) {
    task_.wait(vote_seconds);
    advance(inputs_.control.gather(task_.state()));
  }
}

}  // namespace dstrain::engine
