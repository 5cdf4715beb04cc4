#pragma once
#include <memory>
#include <string>

#include <libssh/libssh.h>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// A session may be left behind with a thread that is stuck in it, hence shared.
using SharedSession = std::shared_ptr<ssh_session_struct>;

struct SshKeyTraits {
  using Raw = ssh_key;
  static constexpr Raw null() noexcept { return nullptr; }
  static void release(Raw key) noexcept { ssh_key_free(key); }
};
using UniqueSshKey = UniqueHandle<SshKeyTraits>;

/// Takes over a text that libssh has allocated.
inline std::string take_text(char* text) {
  std::string copy = text != nullptr ? text : "";
  ssh_string_free_char(text);
  return copy;
}

/// The text of an option that is set, or nothing.
inline std::string option_text(ssh_session session, ssh_options_e option) {
  char* text = nullptr;
  return ssh_options_get(session, option, &text) == SSH_OK ? take_text(text) : "";
}

}  // namespace dstrain::launcher
