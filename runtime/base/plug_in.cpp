#include "runtime/base/plug_in.h"

#include <filesystem>
#include <system_error>

#include <dlfcn.h>

namespace dstrain {

namespace fs = std::filesystem;

Result<void*> open_plug_in(const PlugIn& plug_in) {
  const int flags = RTLD_NOW | (plug_in.scope == PlugInScope::global ? RTLD_GLOBAL : RTLD_LOCAL);
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path beside = program.parent_path() / plug_in.file;
  // Where there is one it is the right one, and another reason than its own would mislead.
  const bool is_beside = fs::exists(beside, ignored);
  void* const opened = ::dlopen(is_beside ? beside.c_str() : plug_in.file, flags);
  if (opened == nullptr) return Failure{::dlerror()};
  return opened;
}

void* plug_in_symbol(const PlugIn& plug_in, void* opened, const char* symbol) {
  void* const address = ::dlsym(opened, symbol);
  if (address == nullptr) {
    fail(ErrorCode::config, "{} is of another version: it lacks {}; install one version",
         plug_in.file, symbol);
  }
  return address;
}

}  // namespace dstrain
