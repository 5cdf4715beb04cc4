#include <exception>

#include "runtime/session/library/impl.h"

namespace dstrain {

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Engine initialize(Rank& rank, const Config& config, Model model, const InitializeOptions& options) {
  Rank::Impl& of = rank.impl();
  return Engine(of.named([&] {
    return std::make_unique<Engine::Impl>(
        of, session::TrainingSession::Inputs{.rank = of.joined,
                                             .config = config.impl().config,
                                             .model = model.impl().settings,
                                             .make_model = model.impl().make,
                                             .options = options,
                                             .device_bytes_of_others = of.planned,
                                             .number = of.engines++});
  }));
}

StepResult Engine::train_batch(const Batch& batch) {
  return impl_->call([&](auto& session) { return session.train_batch(batch); });
}

double Engine::forward_backward(const Batch& micro_batch, std::int64_t labels) {
  return impl_->call([&](auto& session) { return session.forward_backward(micro_batch, labels); });
}

StepResult Engine::step() {
  return impl_->call([&](auto& session) { return session.step(); });
}

double Engine::evaluate(const Batch& batch) {
  return impl_->call([&](auto& session) { return session.evaluate(batch); });
}

std::vector<float> Engine::logits(const Batch& batch) {
  return impl_->call([&](auto& session) { return session.logits(batch); });
}

void Engine::save_checkpoint(const std::filesystem::path& directory, const SaveOptions& options) {
  impl_->call([&](auto& session) { session.save_checkpoint(directory, options); });
}

std::optional<Loaded> Engine::load_checkpoint(const std::filesystem::path& directory,
                                              const std::string& tag) {
  return impl_->call([&](auto& session) { return session.load_checkpoint(directory, tag); });
}

void Engine::save_pretrained(const std::filesystem::path& directory) {
  impl_->call([&](auto& session) { session.save_pretrained(directory); });
}

class DSTRAIN_INTERNAL GatheredParameters::Impl {
 public:
  Impl(Engine::Impl& of, session::WholeParameters gathered)
      : engine(of), before(std::move(gathered)), values(before) {
    engine.gathered = true;
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() { engine.gathered = false; }
  Engine::Impl& engine;
  session::WholeParameters before;
  session::WholeParameters values;
  int exceptions = std::uncaught_exceptions();
};

GatheredParameters::GatheredParameters(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GatheredParameters::GatheredParameters(GatheredParameters&&) noexcept = default;

GatheredParameters::~GatheredParameters() noexcept(false) {
  if (impl_ && std::uncaught_exceptions() <= impl_->exceptions) release();
}

std::span<float> GatheredParameters::operator[](const std::string& name) {
  if (!impl_) fail(ErrorCode::usage, "gathered parameters: they are released");
  const auto found = impl_->values.find(name);
  if (found == impl_->values.end()) {
    fail(ErrorCode::usage, "gathered parameters: {} is not one of them", name);
  }
  return found->second;
}

void GatheredParameters::release() {
  const std::unique_ptr<Impl> last = std::move(impl_);
  if (!last) return;
  last->engine.rank.named([&] { last->engine.session.take_changes(last->before, last->values); });
}

std::vector<ParameterInfo> Engine::parameters() const {
  return impl_->session.parameters();
}

GatheredParameters Engine::gathered_parameters(const std::vector<std::string>& names) {
  return GatheredParameters(impl_->call([&](auto& session) {
    return std::make_unique<GatheredParameters::Impl>(*impl_, session.gather(names));
  }));
}

std::int64_t Engine::steps() const {
  return impl_->session.steps();
}

std::int64_t Engine::micro_batch() const {
  return impl_->session.settings().micro_batch_size;
}

std::int64_t Engine::accumulation_steps() const {
  return impl_->session.settings().accumulation_steps;
}

std::int64_t Engine::length() const {
  return impl_->session.settings().data.block_size;
}

std::int64_t Engine::outputs() const {
  return impl_->session.outputs();
}

double Engine::learning_rate() const {
  return impl_->session.learning_rate();
}

std::int64_t Engine::planned_bytes() const {
  return impl_->planned;
}

}  // namespace dstrain
