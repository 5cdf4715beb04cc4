#include "launcher/hosts/ssh/library_log.h"

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

namespace dstrain::launcher {
namespace {

constexpr int keys_and_options = 4;  // libssh's highest: it moves these lines between its levels

void pass_on(int /*priority*/, const char* /*function*/, const char* line, void* listener) {
  if (listener != nullptr) (*static_cast<LibraryLog::Listener*>(listener))(line);
}

}  // namespace

LibraryLog::LibraryLog(Listener listener) : listener_(std::move(listener)) {
  ssh_set_log_callback(pass_on);
  ssh_set_log_userdata(&listener_);
  ssh_set_log_level(keys_and_options);
}

LibraryLog::~LibraryLog() {
  ssh_set_log_level(SSH_LOG_NOLOG);
  ssh_set_log_userdata(nullptr);
}

std::string_view text_after(std::string_view line, std::string_view start) {
  const std::size_t at = line.find(start);
  return at == line.npos ? "" : line.substr(at + start.size());
}

}  // namespace dstrain::launcher
