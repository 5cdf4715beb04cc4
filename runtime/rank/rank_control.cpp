#include "runtime/rank/rank_control.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "runtime/base/number.h"

namespace dstrain {
namespace {

/// Reads words of a message. After an unexpected one it stays bad.
class Words {
 public:
  explicit Words(std::string_view message) : rest_(message) {}

  std::string_view word() {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view taken = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return taken;
  }
  template <class Number>
  Number number() {
    const std::optional<Number> value = parse_number<Number>(word());
    good_ &= value.has_value();
    return value.value_or(Number{});
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

/// The number of a message "VERB NUMBER".
std::optional<std::uint32_t> decode_number(std::string_view verb, std::string_view message) {
  Words words(message);
  if (words.word() != verb) return std::nullopt;
  const auto number = words.number<std::uint32_t>();
  if (!words.good()) return std::nullopt;
  return number;
}

int option_of(int socket, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

}  // namespace

std::string encode_progress(const Progress& progress) {
  return fmt::format("progress {} {} {} {} {}", progress.step, progress.steps, progress.loss,
                     progress.tokens_per_second, progress.saved_step);
}

std::string encode_save_answer(const SaveAnswer& answer) {
  const bool saved = !answer.checkpoint.empty();
  return fmt::format("{} {} {} {}", saved ? "saved" : "unsaved", answer.request, answer.step,
                     saved ? answer.checkpoint : answer.failure)
      .substr(0, control_message_bytes_max);
}

std::string encode_save_request(std::uint32_t number) {
  return fmt::format("save {}", number);
}

std::string encode_awaited(std::string_view ranks) {
  return fmt::format("awaits {}", ranks).substr(0, control_message_bytes_max);
}

std::string encode_unreachable(int rank) {
  return fmt::format("unreachable {}", rank);
}

std::string encode_input_request(std::uint32_t number) {
  return fmt::format("reads {}", number);
}

std::string encode_input(const RankInput& input) {
  return input.ended ? fmt::format("input_end {}", input.request)
                     : fmt::format("input {} {}", input.request, input.text);
}

std::string encode_interrupt(std::uint32_t number) {
  return fmt::format("interrupt {}", number);
}

std::optional<Progress> decode_progress(std::string_view message) {
  Words words(message);
  if (words.word() != "progress") return std::nullopt;
  Progress progress;
  progress.step = words.number<std::int64_t>();
  progress.steps = words.number<std::int64_t>();
  progress.loss = words.number<double>();
  progress.tokens_per_second = words.number<double>();
  progress.saved_step = words.number<std::int64_t>();
  if (!words.good()) return std::nullopt;
  return progress;
}

std::optional<SaveAnswer> decode_save_answer(std::string_view message) {
  Words words(message);
  const std::string_view verb = words.word();
  if (verb != "saved" && verb != "unsaved") return std::nullopt;
  SaveAnswer answer;
  answer.request = words.number<std::uint32_t>();
  answer.step = words.number<std::int64_t>();
  (verb == "saved" ? answer.checkpoint : answer.failure) = words.rest();
  if (!words.good() || (verb == "saved" && answer.checkpoint.empty())) return std::nullopt;
  return answer;
}

std::optional<std::uint32_t> decode_save_request(std::string_view message) {
  return decode_number("save", message);
}

std::optional<std::string> decode_awaited(std::string_view message) {
  Words words(message);
  if (words.word() != "awaits" || words.rest().empty()) return std::nullopt;
  return std::string(words.rest());
}

std::optional<int> decode_unreachable(std::string_view message) {
  Words words(message);
  if (words.word() != "unreachable") return std::nullopt;
  const auto rank = words.number<int>();
  if (!words.good() || rank < 0) return std::nullopt;
  return rank;
}

std::optional<std::uint32_t> decode_input_request(std::string_view message) {
  return decode_number("reads", message);
}

std::optional<RankInput> decode_input(std::string_view message) {
  if (const auto number = decode_number("input_end", message)) return RankInput{*number, true};
  Words words(message);
  if (words.word() != "input") return std::nullopt;
  RankInput input;
  input.request = words.number<std::uint32_t>();
  input.text = words.rest();
  if (!words.good()) return std::nullopt;
  return input;
}

std::optional<std::uint32_t> decode_interrupt(std::string_view message) {
  return decode_number("interrupt", message);
}

RankControl RankControl::from_environment() {
  RankControl control;
  const char* const text = std::getenv(env::control_fd);
  if (text == nullptr) return control;
  Words words(text);
  const int fd = words.number<int>();
  const bool ours = words.good() && option_of(fd, SO_DOMAIN) == AF_UNIX &&
                    option_of(fd, SO_TYPE) == SOCK_SEQPACKET;
  if (!ours || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return control;
  control.socket_ = UniqueFd(fd);
  return control;
}

bool RankControl::tell(const SaveAnswer& answer) {
  if (!send(encode_save_answer(answer))) return false;
  answered_ = answer.request;
  return true;
}

bool RankControl::send(const std::string& message) const {
  if (!socket_) return true;
  for (;;) {
    const auto flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    if (::send(socket_.get(), message.data(), message.size(), flags) >= 0) return true;
    if (errno != EINTR) return errno != EAGAIN;
  }
}

std::optional<std::string> RankControl::receive() {
  std::array<char, control_message_bytes_max> buffer;
  while (socket_) {
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) return std::string(buffer.data(), static_cast<std::size_t>(got));
    if (got == 0) socket_.reset();
    break;
  }
  return std::nullopt;
}

std::uint32_t RankControl::newest_save_request() {
  while (const std::optional<std::string> message = receive()) {
    newest_ = std::max(newest_, decode_save_request(*message).value_or(0));
  }
  return newest_;
}

}  // namespace dstrain
