#include "runtime/os/plug_in.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <dlfcn.h>

#include "runtime/base/environment.h"

namespace dstrain {

namespace fs = std::filesystem;

namespace {

/// Returns an empty path if there is none.
fs::path find(const PlugIn& plug_in) {
  std::error_code ignored;
  for (const fs::path folder : plug_in_folders(std::getenv(env::plug_in_path), library_folder())) {
    if (fs::exists(folder / plug_in.file, ignored)) return folder / plug_in.file;
  }
  return {};
}

}  // namespace

std::vector<std::string> plug_in_folders(const char* named, std::string library_folder) {
  std::vector<std::string> folders;
  std::istringstream path(named == nullptr ? "" : named);
  for (std::string folder; std::getline(path, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  folders.push_back(std::move(library_folder));
  return folders;
}

std::string library_folder() {
  Dl_info info{};
  static const char here = 0;
  if (::dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return ".";
  // The loader names a program as it was started, which may be a word that PATH has found.
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const bool own = fs::path(info.dli_fname).filename() == program.filename();
  return (own ? program : fs::path(info.dli_fname)).parent_path().string();
}

Result<void*> open_plug_in(const PlugIn& plug_in) {
  const int flags = RTLD_NOW | (plug_in.scope == PlugInScope::global ? RTLD_GLOBAL : RTLD_LOCAL);
  // An existing plug-in is the right one, so report its own error, not that of another lookup.
  const fs::path found = find(plug_in);
  void* const opened = ::dlopen(found.empty() ? plug_in.file : found.c_str(), flags);
  if (opened == nullptr) return Failure{::dlerror()};
  return opened;
}

bool has_plug_in(const PlugIn& plug_in) {
  return !find(plug_in).empty();
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
