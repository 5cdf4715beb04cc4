#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/unique_handle.h"

/// The messages between a rank and its agent, apart from the rank's output: text messages on a Unix
/// socket (SOCK_SEQPACKET) whose descriptor DSTRAIN_CONTROL_FD names. Any program may use the
/// protocol; it is optional.
///   rank to agent   progress STEP STEPS LOSS TOKENS_PER_SECOND SAVED_STEP
///                   saved NUMBER STEP PATH | unsaved NUMBER STEP REASON
///                   awaits RANKS
///                   unreachable RANK
///                   reads NUMBER
///   agent to rank   save NUMBER
///                   input NUMBER TEXT | input_end NUMBER
///                   interrupt NUMBER
namespace dstrain {

namespace env {
inline constexpr const char* control_fd = "DSTRAIN_CONTROL_FD";
}  // namespace env

inline constexpr std::size_t control_message_bytes_max = 8192;

/// The progress of training.
struct Progress {
  std::int64_t step = 0;   ///< the last one that is done
  std::int64_t steps = 0;  ///< in total; 0: not known
  double loss = 0;
  double tokens_per_second = 0;
  std::int64_t saved_step = 0;  ///< of the last checkpoint; 0: none
};

/// The answer to a request for a checkpoint, or the news of one that nobody has asked for.
struct SaveAnswer {
  std::uint32_t request = 0;  ///< number of the request; also answers smaller ones; 0: none
  std::int64_t step = 0;      ///< the step after which to save
  std::string checkpoint;     ///< absolute path of the checkpoint; empty: it failed
  std::string failure;
};

/// Input of the launcher's stdin, for a rank that has asked for it.
struct RankInput {
  std::uint32_t request = 0;  ///< which it answers
  bool ended = false;         ///< there is no more, nor a text
  std::string text{};         ///< bytes as they were read, at most input_bytes_max
};
inline constexpr std::size_t input_bytes_max = 4096;

std::string encode_progress(const Progress& progress);
std::string encode_save_answer(const SaveAnswer& answer);
std::string encode_save_request(std::uint32_t number);
/// Encodes the ranks that a rank waits for at the rendezvous, as messages name them.
std::string encode_awaited(std::string_view ranks);
/// Encodes the rank whose machine the sender cannot reach, so that it fails.
std::string encode_unreachable(int rank);
/// Encodes that a rank waits for input.
std::string encode_input_request(std::uint32_t number);
std::string encode_input(const RankInput& input);
/// Encodes Ctrl-C, for a rank that has not asked for input since it got that of this request.
std::string encode_interrupt(std::uint32_t number);
/// Returns none for any other message, or a malformed one.
std::optional<Progress> decode_progress(std::string_view message);
std::optional<SaveAnswer> decode_save_answer(std::string_view message);
std::optional<std::uint32_t> decode_save_request(std::string_view message);
std::optional<std::string> decode_awaited(std::string_view message);
std::optional<int> decode_unreachable(std::string_view message);
std::optional<std::uint32_t> decode_input_request(std::string_view message);
std::optional<RankInput> decode_input(std::string_view message);
std::optional<std::uint32_t> decode_interrupt(std::string_view message);

/// The rank's end. Never waits: messages that are not read are dropped. Any thread may call tell();
/// otherwise not thread-safe.
class RankControl {
 public:
  RankControl() = default;  ///< no listener
  /// Takes ownership of the descriptor, so that the rank's own children do not inherit it. Leaves a
  /// descriptor alone that is not such a socket.
  static RankControl from_environment();

  void tell(const Progress& progress) const { send(encode_progress(progress)); }
  void tell_awaited(std::string_view ranks) const { send(encode_awaited(ranks)); }
  void tell_unreachable(int rank) const { send(encode_unreachable(rank)); }
  /// Returns false if it must be told again later.
  [[nodiscard]] bool tell(const SaveAnswer& answer);
  /// Returns the largest number of a request that has arrived; 0: none.
  std::uint32_t newest_save_request();
  /// To be polled for messages; -1: no agent.
  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Asks for input of the launcher's stdin. Returns false if it must be asked again later.
  [[nodiscard]] bool ask_input(std::uint32_t number) const {
    return send(encode_input_request(number));
  }
  /// Returns the next message that has arrived; none: there is none, or the agent is gone and
  /// `fd` is -1 from now on.
  std::optional<std::string> receive();
  /// The request that was answered last; 0: none.
  [[nodiscard]] std::uint32_t answered_save_request() const { return answered_; }

 private:
  bool send(const std::string& message) const;
  UniqueFd socket_;
  std::uint32_t newest_ = 0;
  std::uint32_t answered_ = 0;
};

}  // namespace dstrain
