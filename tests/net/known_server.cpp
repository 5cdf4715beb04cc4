#include "tests/net/known_server.h"

#include <atomic>

#include <dlfcn.h>

namespace {

constexpr int as_found = -100;
std::atomic<int> told{as_found};

}  // namespace

namespace dstrain::test {

void say_of_servers(std::optional<KnownServer> answer) {
  told = answer ? static_cast<int>(*answer) : as_found;
}

}  // namespace dstrain::test

extern "C" __attribute__((visibility("default"))) int ssh_session_is_known_server(void* session) {
  if (told != as_found) return told;
  // The plug-in has opened it.
  void* const library = dlopen("libssh.so.4", RTLD_NOW | RTLD_NOLOAD);
  void* const found = dlsym(library, "ssh_session_is_known_server");
  return reinterpret_cast<int (*)(void*)>(found)(session);
}
