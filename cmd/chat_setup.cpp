#include "cmd/chat_setup.h"

#include <algorithm>
#include <limits>

#include <CLI/CLI.hpp>

#include "launcher/plan/option_words.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/data/chat_template.h"

namespace dstrain::cmd {
namespace {

// Hugging Face's chat command has the same.
constexpr std::int64_t default_answer_tokens = 256;
constexpr std::int64_t default_length = 4096;

struct ChatOptions : TextOptions {
  std::string system;
  std::optional<std::int64_t> length;
};

void declare_chat(CLI::App& app, ChatOptions& options) {
  declare_text_options(app, options, default_answer_tokens);
  app.add_option("--system", options.system, "system message: what the model is told first");
  app.add_option("--max_length", options.length,
                 "tokens of a conversation, whose cache is allocated at the start "
                 "[4096, or the model's positions if it has fewer]")
      ->check(CLI::Range(std::int64_t{2}, std::numeric_limits<std::int64_t>::max()));
}

ChatOptions parse_chat(std::span<const std::string> arguments) {
  ChatOptions options;
  CLI::App app;
  app.set_help_flag();
  declare_chat(app, options);
  launcher::parse_option_words(app, arguments, "chat", hint_at_text_option);
  return options;
}

void check_model(const TextSetup& texts, const ChatOptions& options) {
  if (texts.run.model.pairs) {
    fail(ErrorCode::usage,
         "chat: {}: an encoder-decoder holds no conversation; use dstrain generate",
         options.directory);
  }
  if (texts.encoder->chat_template() == nullptr) {
    fail(ErrorCode::input, "chat: {}; use dstrain generate, whose --prompt needs no template",
         texts.encoder->no_chat_template());
  }
}

/// Finds what the template has against the system message, or against any message.
void check_template(const ChatSetup& setup) {
  const Result<engine::TextRequest> first = ChatHistory(setup).ask("Hello");
  if (!first.ok()) fail(ErrorCode::input, "chat: {}", first.error());
}

}  // namespace

session::Remedies chat_remedies() {
  const auto say = [](auto... /*limits*/) {
    return "a smaller --max_length takes less, a smaller model far less";
  };
  return {.device = say, .machine = say};
}

std::string chat_help() {
  ChatOptions options;
  CLI::App app{
      "Talk with a trained model. Each line is a message; /reset forgets the conversation, "
      "/exit ends it, and Ctrl-C stops an answer.",
      "dstrain chat"};
  declare_chat(app, options);
  launcher::show_plain_types(app);
  return app.help();
}

ChatSetup set_up_chat(std::span<const std::string> arguments, const TrainPlace& place) {
  const ChatOptions options = parse_chat(arguments);
  ChatSetup setup;
  setup.texts = set_up_texts(options, "chat", place);
  check_model(setup.texts, options);
  const model::Model& model = setup.texts.run.model;
  if (options.length.value_or(0) > model.positions) {
    fail(ErrorCode::usage, "chat: --max_length {}: the model has {} positions", *options.length,
         model.positions);
  }
  setup.system = options.system;
  setup.length = options.length.value_or(std::min(default_length, model.positions));
  const std::optional<std::int64_t> models = setup.texts.defaults.max_new_tokens;
  setup.max_new_tokens = options.max_new_tokens.value_or(models.value_or(default_answer_tokens));
  if (setup.max_new_tokens < 1) {
    fail(ErrorCode::input, "{}: max_new_tokens must be at least 1, got {}",
         setup.texts.defaults.file, setup.max_new_tokens);
  }
  check_template(setup);
  // The last token is not run.
  plan_texts(setup.texts, {.slots = 1, .positions = setup.length - 1}, place, chat_remedies());
  setup.mode = fmt::format(
      "{}, at most {} new tokens of {} in a conversation; {} on {}, a cache of {}",
      setup.texts.describe_choice(), std::min(setup.max_new_tokens, setup.length), setup.length,
      name_of(model.dtype), counted(place.world_size, "rank"),
      format_bytes(engine::Decoder::cache_bytes(model, *setup.texts.run.memory.decoder)));
  return setup;
}

void ChatHistory::reset() {
  conversation_ = {};
  if (!setup_.system.empty()) add("system", setup_.system);
}

void ChatHistory::add(const char* role, const std::string& text) {
  conversation_.messages.push_back({{"role", role}, {"content", text}});
  conversation_.learned.push_back(true);
}

Result<engine::TextRequest> ChatHistory::ask(const std::string& text) {
  add("user", text);
  const auto refuse = [&](std::string why) {
    conversation_.messages.erase(conversation_.messages.size() - 1);
    conversation_.learned.pop_back();
    return Failure{std::move(why)};
  };
  const data::TextEncoder& encoder = *setup_.texts.encoder;
  const Result<std::string> rendered =
      encoder.chat_template()->render_prompt(conversation_, encoder);
  if (!rendered.ok()) return refuse(rendered.error());
  engine::TextRequest request{.prompt = encoder.encode(rendered.value()), .variant = answers_};
  if (request.prompt.empty()) return refuse("the chat template makes no text of this message");
  const std::int64_t vocabulary = setup_.texts.run.model.vocabulary;
  const auto largest = std::ranges::max(request.prompt);
  if (largest >= vocabulary) {
    return refuse(
        fmt::format("the tokenizer makes token {}, and the model has {}; pass the "
                    "--tokenizer that it was trained with",
                    largest, vocabulary));
  }
  given_ = std::ssize(request.prompt);
  if (is_full(0)) return refuse(say_full());
  request.max_new_tokens = std::min(setup_.max_new_tokens, setup_.length - given_);
  return request;
}

void ChatHistory::answer(const std::string& text) {
  add("assistant", text);
  ++answers_;
}

std::string ChatHistory::say_full(std::int64_t tokens) const {
  const bool has_more = setup_.length < setup_.texts.run.model.positions;
  return fmt::format("the conversation is full: {} of {} tokens; /reset begins a new one{}",
                     given_ + tokens, setup_.length,
                     has_more ? ", and a larger --max_length makes room for more" : "");
}

}  // namespace dstrain::cmd
