#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/unique_handle.h"

/// What a rank and its agent say to each other beside the rank's output: whole messages of text on
/// a Unix socket (SOCK_SEQPACKET) whose descriptor DSTRAIN_CONTROL_FD names. Any program may speak
/// it, and none must.
///   rank to agent   progress STEP STEPS LOSS TOKENS_PER_SECOND SAVED_STEP
///                   saved NUMBER STEP PATH | unsaved NUMBER STEP REASON
///                   awaits RANKS
///                   unreachable RANK
///   agent to rank   save NUMBER
namespace dstrain {

namespace env {
inline constexpr const char* control_fd = "DSTRAIN_CONTROL_FD";
}  // namespace env

inline constexpr std::size_t control_message_bytes_max = 8192;

/// How far training is.
struct Progress {
  std::int64_t step = 0;   ///< the last one taken
  std::int64_t steps = 0;  ///< in all
  double loss = 0;
  double tokens_per_second = 0;
  std::int64_t saved_step = 0;  ///< of the last checkpoint; 0: none
};

/// What became of a request for a checkpoint.
struct SaveAnswer {
  std::uint32_t request = 0;  ///< its number; answers those with smaller numbers too
  std::int64_t step = 0;      ///< after which it was to be saved
  std::string checkpoint;     ///< absolute path of what was saved; empty: it failed
  std::string failure;
};

std::string encode_progress(const Progress& progress);
std::string encode_save_answer(const SaveAnswer& answer);
std::string encode_save_request(std::uint32_t number);
/// Whom a rank waits for where all meet, as messages name them.
std::string encode_awaited(std::string_view ranks);
/// The rank, to whose machine there is no connection from that of the sender, which fails for it.
std::string encode_unreachable(int rank);
/// None for any other message, or one that is malformed.
std::optional<Progress> decode_progress(std::string_view message);
std::optional<SaveAnswer> decode_save_answer(std::string_view message);
std::optional<std::uint32_t> decode_save_request(std::string_view message);
std::optional<std::string> decode_awaited(std::string_view message);
std::optional<int> decode_unreachable(std::string_view message);

/// The rank's end. Nothing here ever waits: what nobody takes is dropped. Any thread may tell; else
/// not thread-safe.
class RankControl {
 public:
  RankControl() = default;  ///< nobody listens
  /// Takes the descriptor over, so that the rank's own children do not inherit it. One that is no
  /// such socket is let alone.
  static RankControl from_environment();

  void tell(const Progress& progress) const { send(encode_progress(progress)); }
  void tell_awaited(std::string_view ranks) const { send(encode_awaited(ranks)); }
  void tell_unreachable(int rank) const { send(encode_unreachable(rank)); }
  /// False when it must be told again later.
  [[nodiscard]] bool tell(const SaveAnswer& answer) const {
    return send(encode_save_answer(answer));
  }
  /// The largest number of a request that has arrived; 0: none.
  std::uint32_t newest_save_request();

 private:
  bool send(const std::string& message) const;
  UniqueFd socket_;
  std::uint32_t newest_ = 0;
};

}  // namespace dstrain
