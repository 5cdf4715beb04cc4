#include "runtime/config/trainer_checkpoint.h"

#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "runtime/os/file.h"

namespace dstrain::config {

bool is_trainer_checkpoint(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (std::filesystem::exists(directory / "optimizer.pt", ignored) ||
      !any_paths_matching((directory / "global_step*" / "*_states.pt").string()).empty()) {
    return true;
  }
  // Our checkpoints have a file of that name too, but without a log history. Keys are sorted, so it
  // comes early.
  constexpr std::size_t enough = 65'536;
  std::ifstream file(directory / "trainer_state.json", std::ios::binary);
  std::string text(enough, '\0');
  file.read(text.data(), static_cast<std::streamsize>(enough));
  return std::string_view(text).find("\"log_history\"") != std::string_view::npos;
}

}  // namespace dstrain::config
