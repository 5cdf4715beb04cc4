#include "tests/e2e/fake_hosts.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "launcher/protocol/protocol.h"
#include "runtime/os/file.h"

namespace dstrain::test {
namespace {

/// PROTOCOL: the version of the agent protocol, as an octal number of three digits.
constexpr std::string_view script = R"(#!/bin/sh
folder=$(dirname "$0")
host=$1
command=$2
clean() {
  exec env -i PATH="$PATH" HOME="$folder" DSTRAIN_TEST_MARKER="$DSTRAIN_TEST_MARKER" "$@"
}
test -e "$folder/$host.down" && { echo "connect to host $host: No route to host" >&2; exit 255; }
while test -e "$folder/$host.slow"; do sleep 0.02; done
cd /
case $host in
  noisy*) echo "Welcome to $host"; printf 'no line end \377' ;;
  refuse*) echo "connect to host $host: Connection refused" >&2; exit 255 ;;
  stall*) exec sleep 1000 ;;
  flood*) exec yes flood ;;
  absent*) PATH=/usr/bin:/bin; command=$(echo "$command" | sed 's#/dstrain#/no-dstrain#') ;;
  path*) PATH=$(dirname "$DSTRAIN_TEST_PROGRAM"):$PATH
    command=$(echo "$command" | sed 's#/dstrain#/no-dstrain#') ;;
  old*) printf '\036dstrain agent speaks\036\n'
    printf '\034\000\000\000\101\PROTOCOL\000\000\000\003\000\000\0000.0'
    head -c 16 /dev/zero
    exec sleep 1000 ;;
  garbage*) printf '\036dstrain agent speaks\036\n\377\377\377\377\377'; exec sleep 1000 ;;
  gpus*) clean env DSTRAIN_GPU_DIRECTORY="$folder" sh -c "$command" ;;
  blind*) # Has a GPU, and shows another.
    clean env DSTRAIN_GPU_DIRECTORY="$folder" CUDA_VISIBLE_DEVICES=7 sh -c "$command" ;;
  some*) # Shows some of its GPUs, not in the order of their numbers.
    clean env DSTRAIN_GPU_DIRECTORY="$folder" CUDA_VISIBLE_DEVICES=3,2 sh -c "$command" ;;
  apart*) # Has a disk of its own where the others share one, and a name of its own.
    clean unshare --mount --uts sh -c 'hostname "$1"; mount -t tmpfs own "$2" && exec sh -c "$3"' \
      sh "$host" "$folder/shared" "$command" ;;
  bash*) clean bash -c "$command" ;;
  zsh*) clean zsh -c "$command" ;;
  addressed*) # As sshd tells who is connected to whom; the process that is the host can be killed.
    echo $$ >"$folder/$host.pid"
    clean env SSH_CONNECTION="127.0.0.1 1 127.0.0.1 22" sh -c "$command" ;;
  alone*) # No network leads to the other hosts, nor from them.
    clean env SSH_CONNECTION="127.0.0.1 1 127.0.0.1 22" unshare --net sh -c "$command" ;;
  cut*) # What goes to the agent and what comes from it pass processes that can be killed.
    mkfifo "$folder/$host.to" "$folder/$host.from"
    exec 3<&0
    cat <&3 >"$folder/$host.to" &
    echo $! >"$folder/$host.to.pid"
    cat <"$folder/$host.from" &
    echo $! >"$folder/$host.from.pid"
    clean sh -c "$command" <"$folder/$host.to" >"$folder/$host.from" 3<&- ;;
esac
clean sh -c "$command"
)";

}  // namespace

FakeHosts::FakeHosts(const std::string& hosts) {
  write_text_file(folder() / "hosts", hosts);
  std::string client(script);
  constexpr std::string_view version = "PROTOCOL";
  client.replace(client.find(version), version.size(),
                 fmt::format("{:03o}", launcher::protocol_version));
  write_text_file(folder() / "client", client);
  std::filesystem::permissions(folder() / "client", std::filesystem::perms::owner_all);
}

std::vector<std::string> FakeHosts::words(const std::vector<std::string>& more) const {
  std::vector<std::string> all{"--log_level",
                               "error",
                               "-H",
                               (folder() / "hosts").string(),
                               "--ssh_command",
                               (folder() / "client").string(),
                               "--master_addr",
                               "127.0.0.1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> FakeHosts::shell(const std::string& script_text) const {
  return words({"sh", "-c", script_text});
}

void FakeHosts::set(const std::string& host, const std::string& state, bool on) const {
  const std::filesystem::path file = folder() / (host + "." + state);
  on ? write_text_file(file, "") : static_cast<void>(std::filesystem::remove(file));
}

void FakeHosts::crash(const std::string& host) const {
  set(host, "down", true);
  std::ifstream file(folder() / (host + ".pid"));
  pid_t pid = 0;
  if (file >> pid) kill(pid, SIGKILL);
}

pid_t FakeHosts::network(const std::string& direction, const std::string& host) const {
  std::ifstream file(folder() / (host + "." + direction + ".pid"));
  pid_t pid = 0;
  file >> pid;
  return pid;
}

}  // namespace dstrain::test
