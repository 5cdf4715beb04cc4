#include "launcher/hosts/ssh/authentication.h"

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "launcher/hosts/ssh/library_log.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr const char* stage = "the host to accept the login";

/// Collects the keys that libssh tries, in its order.
class Attempts {
 public:
  void take_line(std::string_view line) {
    const std::string_view agent_key = text_after(line, "Trying identity ");
    const std::string_view file = text_after(line, "Trying to authenticate with ");
    if (!agent_key.empty()) keys_.push_back(fmt::format("{} of the SSH agent", agent_key));
    if (!file.empty()) keys_.emplace_back(file);
    const bool absent = line.find("Private key ") != line.npos && line.ends_with("doesn't exist.");
    if (absent && !keys_.empty()) keys_.pop_back();
  }
  void needs_passphrase() {
    if (!keys_.empty() && !keys_.back().ends_with(')')) {
      keys_.back() += " (it has a passphrase: ssh-add it)";
    }
  }
  [[nodiscard]] std::string text() const {
    if (!keys_.empty()) return fmt::format("tried {}", fmt::join(keys_, ", "));
    const bool agent = std::getenv("SSH_AUTH_SOCK") != nullptr;
    return agent ? "the SSH agent has no key and there is no key file"
                 : "there is no SSH agent (SSH_AUTH_SOCK) and no key file";
  }

 private:
  std::vector<std::string> keys_;
};

int refuse_passphrase(
    const char* /*prompt*/, char* /*buffer*/, size_t /*size*/, int, int, void* attempts) {
  static_cast<Attempts*>(attempts)->needs_passphrase();
  return -1;
}

/// Calls again until the answer is there.
template <class Call>
int repeat(const SshRoute& route, const ConnectTimeout& timeout, Call&& call) {
  for (;;) {
    const int answer = call();
    if (answer != SSH_AUTH_AGAIN) return answer;
    wait_for_session(route.session.get(), timeout, stage);
  }
}

std::string method_names(int offered) {
  constexpr std::array<std::pair<unsigned, std::string_view>, 5> known{
      {{SSH_AUTH_METHOD_PUBLICKEY, "publickey"},
       {SSH_AUTH_METHOD_PASSWORD, "password"},
       {SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive"},
       {SSH_AUTH_METHOD_HOSTBASED, "hostbased"},
       {SSH_AUTH_METHOD_GSSAPI_MIC, "gssapi"}}};
  std::vector<std::string_view> names;
  for (const auto& [method, name] : known) {
    if ((static_cast<unsigned>(offered) & method) != 0) names.push_back(name);
  }
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

[[noreturn]] void refused(const SshRoute& route, const Attempts& attempts, int answer) {
  const int methods = ssh_userauth_list(route.session.get(), nullptr);
  std::string cause = answer == SSH_AUTH_ERROR
                          ? fmt::format(" ({})", ssh_get_error(route.session.get()))
                      : answer == SSH_AUTH_PARTIAL ? " (it requires more than a key)"
                                                   : "";
  if (!route.ignored.empty()) {
    cause += fmt::format("; libssh ignores {} in the configuration", route.ignored);
  }
  fail(ErrorCode::remote,
       "the host does not let {} in: {}; it accepts {}{}; add your key there (ssh-copy-id {}@{}), "
       "name it (IdentityFile in ssh_config), or use your ssh client: --ssh_command ssh",
       route.user, attempts.text(), method_names(methods), cause, route.user, route.host);
}

void try_keys(const SshRoute& route, const ConnectTimeout& timeout) {
  ssh_session session = route.session.get();
  Attempts attempts;
  route.callbacks->userdata = &attempts;
  route.callbacks->auth_function = refuse_passphrase;
  const LibraryLog log([&](std::string_view line) { attempts.take_line(line); });
  int answer = repeat(route, timeout, [&] { return ssh_userauth_none(session, nullptr); });
  if (answer != SSH_AUTH_SUCCESS && ssh_get_fd(session) >= 0) {
    answer = repeat(route, timeout,
                    [&] { return ssh_userauth_publickey_auto(session, nullptr, nullptr); });
  }
  if (answer != SSH_AUTH_SUCCESS) refused(route, attempts, answer);
}

}  // namespace

void authenticate(const SshRoute& route, const ConnectTimeout& timeout) {
  // An SSH agent may wait for its user, and libssh for the agent.
  run_apart(timeout, stage, [route, timeout] { try_keys(route, timeout); });
}

}  // namespace dstrain::launcher
