#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "cmd/chat_setup.h"
#include "cmd/dstraind/chat_input.h"
#include "cmd/dstraind/commands.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/data/text_stream.h"
#include "runtime/engine/name_collective.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/text_session.h"

namespace dstrain::cmd {
namespace {

/// How often rank 0 tells that it still waits for the person: far more often than ranks time out,
/// or count as hanging.
constexpr int wait_milliseconds = 2000;

/// What rank 0 tells the others to do next.
enum class Turn : char { waits = 'w', answers = 'a', ends = 'e' };

void show(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

/// Prints an answer as it grows, until the person stops it.
class Answer final : public engine::TextListener {
 public:
  Answer(const TextSetup& texts, ChatInput& input)
      : ends_(texts.choice.end_tokens), input_(input), stream_(*texts.encoder), stop_(texts.stop) {}

  TextListener::Answer add(std::size_t /*index*/, std::int32_t token) override {
    ++tokens_;
    if (std::ranges::find(ends_, token) != ends_.end()) return TextListener::Answer::ends;
    const std::string piece = stream_.add(token);
    text_ += piece;
    show(piece);
    stopped_ = input_.interrupted();
    const bool ends = stopped_ || stop_.complete(piece, stream_.pending());
    return ends ? TextListener::Answer::ends : TextListener::Answer::goes_on;
  }
  void end(std::size_t /*index*/, engine::FinishReason reason) override {
    const std::string last = stream_.finish();
    text_ += last;
    show(last + "\n");
    reason_ = reason;
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] bool was_cut() const { return reason_ == engine::FinishReason::length; }

 private:
  const std::vector<std::int32_t>& ends_;
  ChatInput& input_;
  data::TextStream stream_;
  data::StopStrings stop_;
  std::string text_;
  std::int64_t tokens_ = 0;
  bool stopped_ = false;
  engine::FinishReason reason_ = engine::FinishReason::eos;
};

/// The conversation on rank 0; the other ranks only take part in its computations.
class Chat {
 public:
  Chat(const ChatSetup& setup, session::JoinedRank& rank, session::TextSession& session)
      : setup_(setup), rank_(rank), session_(session) {}

  void lead() {
    if (terminal_) notify("/reset forgets the conversation, /exit ends it, Ctrl-C stops an answer");
    while (const std::optional<std::string> line = read_line()) {
      if (*line == "/exit") break;
      if (line->find_first_not_of(" \t") == std::string::npos) continue;
      *line == "/reset" ? reset() : answer(*line);
    }
    tell(Turn::ends);
  }

  void follow() {
    for (;;) {
      const Turn turn = tell(Turn::waits);
      if (turn == Turn::ends) return;
      if (turn == Turn::answers) session_.run({}, idle_);
    }
  }

 private:
  /// Collective. Returns the turn of rank 0.
  Turn tell(Turn own) {
    const char letter = static_cast<char>(own);
    return static_cast<Turn>(rank_.control_group().broadcast({&letter, 1}, 0).at(0));
  }

  std::optional<std::string> read_line() {
    input_.ask();
    if (terminal_) show("> ");
    std::string line;
    for (;;) {
      switch (input_.next(line, wait_milliseconds)) {
        case ChatInput::Got::line:
          return line;
        case ChatInput::Got::end:
          if (terminal_) show("\n");
          return std::nullopt;
        case ChatInput::Got::nothing:
          rank_.progress().begin_work(Work::none);  // a rank that waits for a person does not hang
          tell(Turn::waits);
      }
    }
  }

  /// Where a person reads both streams, a notice on stderr might come behind the next mark.
  void notify(const std::string& text) const {
    terminal_ ? show(fmt::format("[{}]\n", text)) : log_info(text);
  }

  /// Says why a message has no answer, also with -q.
  void refuse(const std::string& why) const { terminal_ ? notify(why) : log_warning(why); }

  void reset() {
    history_.reset();
    notify("a new conversation begins");
  }

  void answer(const std::string& message) {
    const Result<engine::TextRequest> request = history_.ask(message);
    if (!request.ok()) return refuse(request.error());
    input_.begin_answer();
    Answer answer(setup_.texts, input_);
    tell(Turn::answers);
    session_.run({&request.value(), 1}, answer);
    history_.answer(answer.text());
    if (!answer.was_cut()) return;
    notify(history_.is_full(answer.tokens())
               ? history_.say_full(answer.tokens())
               : fmt::format("the answer has reached {} tokens, the limit of --max_new_tokens",
                             answer.tokens()));
  }

  const ChatSetup& setup_;
  session::JoinedRank& rank_;
  session::TextSession& session_;
  ChatHistory history_{setup_};
  ChatInput input_{rank_.control()};
  bool terminal_ = ChatInput::is_terminal();
  class Idle final : public engine::TextListener {
    TextListener::Answer add(std::size_t /*index*/, std::int32_t /*token*/) override {
      return TextListener::Answer::ends;
    }
    void end(std::size_t /*index*/, engine::FinishReason /*reason*/) override {}
  } idle_;
};

void announce(const ChatSetup& setup) {
  for (const std::string& warning : setup.texts.warnings) log_warning(warning);
  for (const std::string& warning : setup.texts.run.settings.warnings) log_warning(warning);
  log_info(setup.mode);
}

int run_chat(std::span<const std::string> arguments, ProgressPage& progress) {
  progress.enter(RunPhase::starting);
  const WorkerEnv worker = read_worker_env();
  prepare_compute_threads(core_share(worker));
  const ChatSetup setup = set_up_chat(arguments, place_of(worker));
  if (worker.rank == 0) announce(setup);
  session::JoinedRank rank(worker, setup.texts.run.model.device, progress);
  session::TextSession session(setup.texts.run, rank, chat_remedies(), setup.texts.choice,
                               engine::Generator::Cache::reused);
  Chat chat(setup, rank, session);
  worker.rank == 0 ? chat.lead() : chat.follow();
  rank.control_group().barrier();
  return status::done;
}

}  // namespace

int chat_command(std::span<const std::string> arguments) {
  ProgressPage progress = ProgressPage::from_environment();
  try {
    return run_chat(arguments, progress);
  } catch (const Error& error) {
    throw engine::name_collective(error, progress);
  }
}

}  // namespace dstrain::cmd
