#include "cmd/dstraind/chat_input.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "runtime/base/environment.h"

namespace dstrain::cmd {

bool ChatInput::is_terminal() {
  const char* const told = std::getenv(env::terminal);
  if (told != nullptr) return std::string_view(told) == "1";
  return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
}

bool ChatInput::take_line(std::string& line) {
  const std::size_t end = text_.find('\n');
  if (end == std::string::npos && (!ended_ || text_.empty())) return false;
  line = text_.substr(0, end);
  text_.erase(0, end == std::string::npos ? end : end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

void ChatInput::read_messages() {
  while (const std::optional<std::string> message = control_.receive()) {
    interrupted_ |= decode_interrupt(*message) == request_;
    const std::optional<RankInput> input = decode_input(*message);
    if (!input || !asked_ || input->request != request_) continue;
    asked_ = false;
    text_ += input->text;
    ended_ |= input->ended;
  }
  ended_ |= control_.fd() < 0;
}

void ChatInput::read_stdin() {
  std::array<char, input_bytes_max> piece;
  const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    ended_ = true;
  } else {
    text_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

void ChatInput::ask() {
  const bool has_line = ended_ || text_.find('\n') != std::string::npos;
  if (from_launcher_ && !asked_ && !has_line) asked_ = control_.ask_input(++request_);
}

ChatInput::Got ChatInput::next(std::string& line, int milliseconds) {
  while (!take_line(line)) {
    if (ended_) return Got::end;
    ask();
    pollfd source{from_launcher_ ? control_.fd() : STDIN_FILENO, POLLIN, 0};
    if (::poll(&source, 1, milliseconds) <= 0) return Got::nothing;
    from_launcher_ ? read_messages() : read_stdin();
  }
  return Got::line;
}

bool ChatInput::interrupted() {
  if (from_launcher_) read_messages();
  return interrupted_;
}

}  // namespace dstrain::cmd
