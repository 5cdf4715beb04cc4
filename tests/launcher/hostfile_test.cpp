#include "launcher/plan/hostfile.h"

#include <string>

#include "launcher/plan/host_name.h"
#include "runtime/base/error.h"
#include "runtime/os/file.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using launcher::HostEntry;
using launcher::parse_hostfile;

namespace {

std::string error_of(const std::string& text) {
  try {
    parse_hostfile(text, "hosts");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::input);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Hostfile: hosts keep their order", "[launcher]") {
  const auto hosts = parse_hostfile(
      "# head\n\n  worker-1 slots=2\r\n\tworker-2\tslots=2  # tail\n#worker-3 slots=3\n"
      "localhost slots=1 max_slots=8\n123.23.12.10 max_slots=4 slots=2\n::1 slots=3\n"
      "[fe80::1] slots=1024",
      "hosts");
  const std::vector<HostEntry> expected{{"worker-1", 2},     {"worker-2", 2}, {"localhost", 1},
                                        {"123.23.12.10", 2}, {"::1", 3},      {"fe80::1", 1024}};
  CHECK(hosts == expected);
}

TEST_CASE("Hostfile: a byte order mark is not part of the first name", "[launcher]") {
  const std::vector<HostEntry> expected{{"worker-1", 2}};
  CHECK(parse_hostfile("\xEF\xBB\xBFworker-1 slots=2\r\n", "hosts") == expected);
  CHECK(error_of("\xEF\xBB\xBF"
                 "a slots=0") == "hosts:1:9: slots must be 1..1024, got \"0\"");
  CHECK_THAT(error_of("a slots=1\n\xEF\xBB\xBF"
                      "b slots=1"),
             Catch::Matchers::ContainsSubstring("hosts:2:1: "));
}

TEST_CASE("Hostfile: every mistake names its place", "[launcher]") {
  struct Row {
    const char* text;
    const char* message;
  };
  const auto row = GENERATE(values<Row>(
      {{"a slots=4junk", "hosts:1:10: \"junk\" follows the number; write slots=4"},
       {"a slots=0", "hosts:1:9: slots must be 1..1024, got \"0\""},
       {"a slots=-1", "hosts:1:9: slots must be 1..1024, got \"-1\""},
       {"a slots=1025", "hosts:1:9: slots must be 1..1024, got \"1025\""},
       {"a slots=99999999", "hosts:1:9: slots must be 1..1024, got \"99999999\""},
       {"a slots=99999999999999999999",
        "hosts:1:9: slots must be 1..1024, got \"99999999999999999999\""},
       {"a slots=", "hosts:1:9: slots must be 1..1024, got \"\""},
       {"a slots=x", "hosts:1:9: slots must be 1..1024, got \"x\""},
       {"a slots = 4", "hosts:1:3: write \"a slots=4\", without blanks around the ="},
       {"a slots= 4", "hosts:1:3: write \"a slots=4\", without blanks around the ="},
       {"a slots =4 # c", "hosts:1:3: write \"a slots=4\", without blanks around the ="},
       {"a slots x", "hosts:1:3: \"slots\" does not belong here; a line is \"a slots=N\""},
       {"[gpu]\na slots=4",
        "hosts:1:1: \"[gpu]\" begins a group of an Ansible inventory; leave only lines \"NAME "
        "slots=N\""},
       {"a slots=4\n[all:vars]\nansible_user=bob",
        "hosts:2:1: \"[all:vars]\" begins a group of an Ansible inventory; leave only lines \"NAME "
        "slots=N\""},
       {"\n missingslots", "hosts:2:14: slots=N is missing; a line is \"missingslots slots=N\""},
       {"this is bad slots=1",
        "hosts:1:6: \"is\" does not belong here; a line is \"this slots=N\""},
       {"a slots=1 slots=2",
        "hosts:1:11: \"slots=2\" does not belong here; a line is \"a slots=N\""},
       {"a slots=3 max_slots=2", "hosts:1:11: slots=3 is more than max_slots=2 of \"a\""},
       {"a max_slots=2 slots=3", "hosts:1:15: slots=3 is more than max_slots=2 of \"a\""},
       {"a slots=1 more", "hosts:1:11: \"more\" does not belong here; a line is \"a slots=N\""},
       {"-oProxyCommand=x slots=1",
        "hosts:1:1: \"-oProxyCommand=x\" is not a host name or address; a line is \"NAME "
        "slots=N\""},
       {"ssh://root@node:22 slots=8",
        "hosts:1:1: a line is \"node slots=N\"; put \"User root\" under \"Host node\" in "
        "~/.ssh/config; give --ssh_port 22"},
       {"ssh://node/", "hosts:1:1: a line is \"node slots=N\""},
       {"${HOST} slots=8",
        "hosts:1:1: \"${HOST}\" is not expanded, since no shell reads this file; write the name "
        "itself"},
       {"a slots=8,", "hosts:1:10: \",\" follows the number; write slots=8"},
       {"node-[1-3] slots=8",
        "hosts:1:1: \"node-[1-3]\" names several hosts; write a line \"NAME slots=N\" for each of "
        "them"},
       {"user@h slots=1",
        "hosts:1:1: a line is \"h slots=N\"; put \"User user\" under \"Host h\" in ~/.ssh/config"},
       {"a:22 slots=1",
        "hosts:1:1: a line is \"a slots=N\"; give --ssh_port 22, or put \"Port 22\" under \"Host "
        "a\" in ~/.ssh/config"},
       {"a:8", "hosts:1:1: a line is \"a slots=8\""},
       {"a:2222 slots=1",
        "hosts:1:1: a line is \"a slots=N\"; give --ssh_port 2222, or put \"Port 2222\" under "
        "\"Host a\" in ~/.ssh/config"},
       {"a slots=4 port=2222",
        "hosts:1:11: \"port=2222\" does not belong here; a line is \"a slots=N\"; give --ssh_port "
        "2222, or put \"Port 2222\" under \"Host a\" in ~/.ssh/config"},
       {"a ansible_user=bob slots=4",
        "hosts:1:3: \"ansible_user=bob\" does not belong here; a line is \"a slots=N\"; put \"User "
        "bob\" under \"Host a\" in ~/.ssh/config"},
       {"a slots=4 ip=10.0.0.1",
        "hosts:1:11: \"ip=10.0.0.1\" does not belong here; a line is \"a slots=N\"; put \"HostName "
        "10.0.0.1\" under \"Host a\" in ~/.ssh/config"},
       {"a gpus=8", "hosts:1:3: \"gpus=8\" does not belong here; a line is \"a slots=8\""},
       {"a SLOTS=8", "hosts:1:3: \"SLOTS=8\" does not belong here; a line is \"a slots=8\""},
       {"a 8", "hosts:1:3: \"8\" does not belong here; a line is \"a slots=8\""},
       {"a port=x", "hosts:1:3: \"port=x\" does not belong here; a line is \"a slots=N\""},
       {"@h slots=1",
        "hosts:1:1: \"@h\" is not a host name or address; a line is \"NAME slots=N\""},
       {"a:x slots=1",
        "hosts:1:1: \"a:x\" is not a host name or address; a line is \"NAME slots=N\""},
       {"a$(x) slots=1",
        "hosts:1:1: \"a$(x)\" is not a host name or address; a line is \"NAME slots=N\""},
       {"a slots=1\nb slots=1\na slots=2",
        "hosts:3:1: host \"a\" was already named in line 1; give all its slots there"},
       {"::1 slots=1\n[::1] slots=1",
        "hosts:2:1: host \"::1\" was already named in line 1; give all its slots there"},
       {"", "hosts: the hostfile names no host; a line is \"NAME slots=N\""},
       {" \n#only\n", "hosts: the hostfile names no host; a line is \"NAME slots=N\""}}));
  CAPTURE(row.text);
  CHECK(error_of(row.text) == row.message);
}

TEST_CASE("Hostfile: the number of hosts and bytes is limited", "[launcher]") {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += fmt::format("h{} slots=1\n", i);
  CHECK(parse_hostfile(text, "hosts").size() == 10'000);
  CHECK(error_of(text + "one-more slots=1") == "hosts:10001:1: more than 10000 hosts");

  const test::TempDir directory;
  const auto path = directory.path() / "hosts";
  write_text_file(path, std::string(1 << 20, '#') + "\na slots=1\n");
  CHECK_THROWS_AS(launcher::read_hostfile(path), Error);
  CHECK_THROWS_AS(launcher::read_hostfile(directory.path() / "absent"), Error);
}

TEST_CASE("Hostfile: the example file is valid", "[launcher]") {
  const std::vector<HostEntry> expected{{"localhost", 2}};
  CHECK(launcher::read_hostfile(DSTRAIN_SOURCE_DIR "/hostfiles/local") == expected);
}

TEST_CASE("Host names: what this machine is called", "[launcher]") {
  using launcher::is_this_machine;
  for (const char* name : {"localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "box.example",
                           "box", "Box.Example", "BOX"}) {
    CAPTURE(name);
    CHECK(is_this_machine(name, "box.example"));
  }
  for (const char* name : {"worker-1", "10.0.0.1", "127.example", "boxer", "", "::2"}) {
    CAPTURE(name);
    CHECK_FALSE(is_this_machine(name, "box.example"));
  }
}
