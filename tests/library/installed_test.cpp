// What `cmake --install` installs, moved, and a program that is built with it outside of the tree.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_tree.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;

namespace {

namespace fs = std::filesystem;

struct Ran {
  int status = -1;
  std::string out;
};

Ran shell(const std::string& script, const fs::path& folder) {
  test::RankProcess process(
      {{"/bin/sh", "-c", fmt::format("cd '{}' && {{ {}; }} 2>&1", folder.string(), script)},
       {"HOME=" + folder.string(), std::string("PATH=") + std::getenv("PATH")}});
  std::string out = process.read_all();
  return {process.wait(), std::move(out)};
}

/// The files of a tree, by their paths in it.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory()) files.push_back(entry.path().lexically_relative(folder));
  }
  return files;
}

}  // namespace

TEST_CASE("Installed: each file is in exactly one package", "[library]") {
  const test::TempDir folder;
  const auto install = [&](const std::string& name, const std::string& options) {
    const Ran ran = shell(
        fmt::format("DESTDIR='{}' '{}' --install '{}' --prefix /usr {}",
                    (folder.path() / name).string(), DSTRAIN_CMAKE, DSTRAIN_BUILD_FOLDER, options),
        folder.path());
    CAPTURE(ran.out);
    REQUIRE(ran.status == 0);
    return files_in(folder.path() / name);
  };
  std::map<std::string, std::string> package_of;
  std::istringstream components(DSTRAIN_COMPONENTS);
  for (std::string component; components >> component;) {
    const std::vector<std::string> files = install(component, "--component " + component);
    CAPTURE(component);
    CHECK(!files.empty());
    for (const std::string& file : files) {
      const auto [other, is_new] = package_of.emplace(file, component);
      INFO(file << " is in " << other->second << ", too");
      CHECK(is_new);
    }
  }
  for (const std::string& file : install("all", "")) {
    INFO(file << " is in no package");
    CHECK(package_of.erase(file) == 1);
  }
  CHECK(package_of.empty());
}

TEST_CASE("Installed: a program is built with the moved tree and trains", "[library]") {
  if (*DSTRAIN_SANITIZE != 0)
    test::skip("a program without the sanitizer cannot load its libraries");
  const test::TempDir folder;
  const fs::path moved = folder.path() / "moved to";
  const std::string install = fmt::format(
      "DESTDIR='{0}/staged' '{1}' --install '{2}' --prefix /opt/dstrain && "
      "mv '{0}/staged/opt/dstrain' '{3}'",
      folder.path().string(), DSTRAIN_CMAKE, DSTRAIN_BUILD_FOLDER, moved.string());
  const Ran installed = shell(install, folder.path());
  CAPTURE(installed.out);
  REQUIRE(installed.status == 0);
  for (const char* file :
       {"bin/dstrain", "bin/dstraind", "share/man/man1/dstrain-train.1",
        "share/doc/dstrain/copyright", "lib/libdstrain.so", "lib/dstrain/libdstrain_core.so",
        "include/dstrain/dstrain.h", "include/dstrain/error.h",
        "lib/cmake/dstrain/dstrain-config.cmake", "lib/pkgconfig/dstrain.pc",
        "share/bash-completion/completions/dstrain", "share/zsh/site-functions/_dstrain",
        "share/fish/vendor_completions.d/dstrain.fish"}) {
    CAPTURE(file);
    CHECK(fs::exists(moved / file));
  }
  // Only public names leave the library, and its headers compile alone.
  const Ran exported = shell(
      fmt::format("nm -DC --defined-only '{}/lib/libdstrain.so'", moved.string()), folder.path());
  CHECK_THAT(exported.out, ContainsSubstring("dstrain::Engine::train_batch") &&
                               !ContainsSubstring("Impl::") && !ContainsSubstring("session::"));
  const Ran alone = shell(
      fmt::format("for h in '{0}'/include/dstrain/*.h; do echo \"#include \\\"$h\\\"\" | '{1}' "
                  "-std=c++20 -Wall -Wextra -Werror -fsyntax-only -x c++ -I '{0}/include' - || "
                  "exit 1; done",
                  moved.string(), DSTRAIN_COMPILER),
      folder.path());
  CAPTURE(alone.out);
  CHECK(alone.status == 0);

  const Ran clang = shell(
      "command -v clang++ || ls /usr/bin/clang++-* | sort --version-sort | tail -n 1 | grep .",
      folder.path());
  const auto build_examples = [&](const std::string& compiler) {
    const Ran built =
        shell(fmt::format("rm -rf build && '{0}' -S '{1}/examples/library' -B build "
                          "-DCMAKE_PREFIX_PATH='{2}' -DCMAKE_CXX_COMPILER='{3}' "
                          "-DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' && '{0}' --build build",
                          DSTRAIN_CMAKE, test::source_tree().string(), moved.string(), compiler),
              folder.path());
    CAPTURE(built.out);
    REQUIRE(built.status == 0);
  };
  build_examples(DSTRAIN_COMPILER);
  if (clang.status == 0)
    build_examples(
        clang.out.substr(0, clang.out.find('\n')));  // what runs below is what clang has made
  std::ofstream(folder.path() / "ds.json")
      << R"({"train_batch_size": 4, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
             "zero_optimization": {"stage": 3}})";
  std::ofstream text(folder.path() / "text");
  for (int i = 0; i < 1000; ++i) text << i << '\n';
  text.close();
  const Ran trained =
      shell(fmt::format("'{}/bin/dstrain' -q --num_gpus 2 build/trainer ds.json text out 3 && "
                        "'{}/bin/dstrain' doctor",
                        moved.string(), moved.string()),
            folder.path());
  CAPTURE(trained.out);
  CHECK(trained.status == 0);
  CHECK_THAT(trained.out, ContainsSubstring("step 3 loss ") && ContainsSubstring("tokenizers"));
  CHECK(fs::exists(folder.path() / "out/model.safetensors"));
  const Ran flags =
      shell(fmt::format("PKG_CONFIG_PATH='{0}/lib/pkgconfig' pkg-config --cflags --libs dstrain",
                        moved.string()),
            folder.path());
  CHECK_THAT(flags.out, ContainsSubstring("-ldstrain"));
}
