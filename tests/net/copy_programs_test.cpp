// Our programs on a host that has none.
#include <fstream>
#include <iterator>

#include <sys/stat.h>

#include <fmt/format.h>

#include "tests/net/link_end.h"
#include "tests/net/ssh_server.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace dstrain;
using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;
using launcher::BinaryBundle;

namespace fs = std::filesystem;

namespace {

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A "dstrain" that says who it is, and something big beside it.
BinaryBundle make_bundle(const fs::path& folder, const std::string& says) {
  std::ofstream(folder / "dstrain") << "#!/bin/sh\necho " << says << " $0 $*\n";
  std::string big;
  for (int i = 0; i < 3'000'000; ++i) big += static_cast<char>(i * 13 + i / 77);
  std::ofstream(folder / "dstraind", std::ios::binary) << big;
  std::ofstream(folder / "libdstrain_mpi_openmpi.so") << "plug-in";
  std::ofstream(folder / "libdnnl.so.2") << "of a tarball";
  std::ofstream(folder / "libdstrain.so.0") << "stays";
  std::ofstream(folder / "unrelated") << "stays";
  return launcher::read_bundle(folder, folder, "0.1.0");
}

LinkEnd run_bundle(const BinaryBundle& bundle) {
  launcher::SshTarget node = target("node", "echo not this");
  node.programs = std::make_shared<const BinaryBundle>(bundle);
  return run(node);
}

}  // namespace

TEST_CASE("CopyPrograms: checksums are those of cksum", "[net][ssh]") {
  const TempDir folder;
  const fs::path path = folder.path() / "file";
  for (const std::size_t size : {0U, 1U, 255U, 256U, 70'000U}) {
    const std::string bytes(size, 'x');
    std::ofstream(path) << bytes;
    CHECK(run_program({find_program("cksum"), path}) ==
          fmt::format("{} {} {}\n", launcher::posix_checksum(bytes), size, path.string()));
  }
}

TEST_CASE("CopyPrograms: are copied once and run from there", "[net][ssh]") {
  if (::geteuid() != 0) skip("only root may make hosts with homes of their own");
  SshServer::Settings settings;
  settings.shell = GENERATE("/bin/bash", "/bin/dash", "/usr/bin/zsh");
  if (!fs::exists(settings.shell)) skip("there is no " + settings.shell);
  const KnownNode node(settings);
  std::ofstream(node.server.home() / ".bashrc") << "echo noise; echo more noise >&2\n";
  std::ofstream(node.server.home() / ".zshenv") << "echo noise\n";
  const TempDir folder;
  const BinaryBundle bundle = make_bundle(folder.path(), "first");
  REQUIRE(bundle.files.size() == 4);
  const fs::path place = node.server.home() / ".cache/dstrain" / bundle.name / "bin";
  const LinkEnd first = run_bundle(bundle);
  CHECK(first.reason == "");
  CHECK_THAT(first.output, ContainsSubstring("first " + (place / "dstrain").string() + " agent"));
  for (const auto& file : bundle.files) CHECK((bytes_of(place / file.name) == file.bytes));
  struct stat before {};
  REQUIRE(::stat((place / "dstraind").c_str(), &before) == 0);
  CHECK_THAT(run_bundle(bundle).output, ContainsSubstring("first"));
  struct stat after {};
  REQUIRE(::stat((place / "dstraind").c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK_THAT(run_bundle(make_bundle(folder.path(), "second")).output, ContainsSubstring("second"));
  std::size_t places = 0;
  for (const auto& entry : fs::directory_iterator(node.server.home() / ".cache/dstrain")) {
    CHECK(entry.path().string().find(".part.") == std::string::npos);
    ++places;
  }
  CHECK(places == 2);
}

TEST_CASE_METHOD(KnownNode, "CopyPrograms: many at once give one place", "[net][ssh]") {
  if (::geteuid() != 0) skip("only root may make hosts with homes of their own");
  const TempDir folder;
  launcher::SshTarget node = target("node", "");
  node.programs = std::make_shared<const BinaryBundle>(make_bundle(folder.path(), "here"));
  std::vector<std::unique_ptr<launcher::AgentLink>> links;
  for (int i = 0; i < 8; ++i) links.push_back(launcher::connect_ssh_agent(node));
  for (const auto& link : links) {
    const LinkEnd end = finish(*link);
    CHECK(end.reason == "");
    CHECK_THAT(end.output, ContainsSubstring("here"));
  }
  const auto places = fs::directory_iterator(server.home() / ".cache/dstrain");
  CHECK(std::distance(fs::begin(places), fs::end(places)) == 1);
}

TEST_CASE_METHOD(KnownNode, "CopyPrograms: no room for them is told", "[net][ssh]") {
  if (::geteuid() != 0) skip("only root may make hosts with homes of their own");
  const TempDir folder;
  const BinaryBundle bundle = make_bundle(folder.path(), "here");
  SECTION("a cache that is no directory") {
    std::ofstream(server.home() / ".cache") << "a file";
    CHECK_THAT(run_bundle(bundle).reason,
               ContainsSubstring("cannot copy our programs to the host: mkdir"));
  }
  SECTION("a limit on the size of files") {
    std::ofstream(server.home() / ".bashrc") << "ulimit -f 100\n";
    CHECK_THAT(run_bundle(bundle).reason,
               ContainsSubstring("cannot copy our programs to the host"));
    CHECK(fs::is_empty(server.home() / ".cache/dstrain"));
  }
}
