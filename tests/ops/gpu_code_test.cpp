// What nvcc made of the kernels of GPUs, where there is one: without a GPU, it is all that can be
// known of their speed.
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "tests/ops/kernel_code.h"
#include "tests/ops/launched_kernels.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

/// Without namespaces, so that a line of the table holds it.
std::string short_name(std::string name) {
  for (const std::string& part :
       {std::string("dstrain::ops::gpu::"), std::string("(anonymous namespace)::"),
        std::string("dstrain::"), std::string("void ")}) {
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part)) {
      name.erase(at, part.size());
    }
  }
  return name.substr(0, name.find('('));
}

/// Whether it is known of a kernel that has not run: of those of element-wise ops, and of one that
/// is never started.
bool shares_nothing(const std::string& name) {
  return name.starts_with("packs_kernel") || name.starts_with("elements_kernel") ||
         name == "any_kernel";
}

/// The PTX of the kernels of memory-bound ops, by the names that they have there.
std::map<std::string, std::string> memory_bound_kernels() {
  std::istringstream files(DSTRAIN_MEMORY_BOUND_PTX);
  std::map<std::string, std::string> kernels;
  for (std::string file; std::getline(files, file, '|');) {
    std::ifstream ptx(file);
    REQUIRE(ptx);
    std::string name;
    for (std::string line; std::getline(ptx, line);) {
      const std::size_t entry = line.find(".entry ");
      if (entry != std::string::npos) name = line.substr(entry + 7);
      if (!name.empty()) kernels[name] += line + '\n';
    }
  }
  return kernels;
}

}  // namespace

TEST_CASE("GPU code: no kernel keeps its values in memory for want of registers") {
  const std::map<std::string, int> launched = test::launched_kernels();
  fmt::print(
      "{:>7} {:>9} {:>6} {:>5}  kernel (shared: bytes of a block; warps: that a "
      "multiprocessor of an H100 holds)\n",
      "threads", "registers", "shared", "warps");
  for (const test::KernelCode& kernel : test::kernels_in(DSTRAIN_CUDA_PLUG_IN)) {
    CAPTURE(kernel.name);
    const std::string name = short_name(kernel.name);
    const auto found = launched.find(kernel.name);
    CHECK((found != launched.end() || shares_nothing(name)));
    const int shared = found == launched.end() ? 0 : found->second;
    fmt::print("{:>7} {:>9} {:>6} {:>5}  {}\n", kernel.threads, kernel.registers, shared,
               kernel.warps_at_once(shared), name);
    CHECK(kernel.stack_bytes == 0);
    CHECK(kernel.threads > 0);
    CHECK(kernel.warps_at_once(0) >= 8);
    CHECK(kernel.warps_at_once(shared) >= 4);
  }
}

TEST_CASE("GPU code: memory-bound kernels load 16 bytes at once") {
  int seen = 0;
  for (const auto& [name, ptx] : memory_bound_kernels()) {
    const auto is = [&](const char* part) {
      return name.find(part) != std::string::npos;
    };
    if (!is("packs_kernel") && !is("forward_kernel") && !is("backward_kernel") &&
        !is("cross_entropy_kernel") && !is("sum_kernel") && !(is("folded_kernel") && is("Lb1E"))) {
      continue;
    }
    CAPTURE(name);
    CHECK(ptx.find("ld.global.v4") != std::string::npos);
    CHECK(ptx.find(".local") == std::string::npos);
    ++seen;
  }
  CHECK(seen > 50);
}

}  // namespace dstrain
