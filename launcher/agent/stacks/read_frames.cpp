// The plug-in that reads stacks through libdw: no program links it, and few open it.
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <cxxabi.h>
#include <elfutils/libdwfl.h>

#include <fmt/format.h>

#include "launcher/agent/take_stacks.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t frames_max = 40;
constexpr std::size_t name_bytes_max = 160;

struct EndDwfl {
  void operator()(Dwfl* dwfl) const noexcept { dwfl_end(dwfl); }
};
using OwnedDwfl = std::unique_ptr<Dwfl, EndDwfl>;

/// The modules of the last process that was asked for, read once.
struct OpenProcess {
  pid_t pid = 0;
  OwnedDwfl dwfl;
};

std::string readable(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string readable = status == 0 ? text : name;
  std::free(text);
  if (readable.size() > name_bytes_max) readable.replace(name_bytes_max, std::string::npos, "...");
  return readable;
}

/// "dstrain::engine::Engine::run_call(...) in dstraind"
std::string describe(Dwfl* dwfl, Dwarf_Addr address) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl, address);
  if (module == nullptr) return "not in any module";
  Dwarf_Addr start = 0;
  const char* const path =
      dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr);
  const char* const slash = path != nullptr ? std::strrchr(path, '/') : nullptr;
  const char* const file = slash != nullptr ? slash + 1 : path;
  const char* const name = dwfl_module_addrname(module, address);
  return fmt::format("{} in {}",
                     name != nullptr ? readable(name) : fmt::format("+0x{:x}", address - start),
                     file != nullptr ? file : "?");
}

struct Frames {
  Dwfl* dwfl;
  std::vector<std::string>* lines;
};

int add_frame(Dwfl_Frame* frame, void* argument) {
  const auto& frames = *static_cast<Frames*>(argument);
  Dwarf_Addr address = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &address, &is_activation)) return DWARF_CB_ABORT;
  if (!is_activation) --address;  // in the call, not after it
  frames.lines->push_back(describe(frames.dwfl, address));
  return frames.lines->size() < frames_max ? DWARF_CB_OK : DWARF_CB_ABORT;
}

OwnedDwfl open_process(pid_t process) {
  static char no_path[] = "";
  // The symbols in the files themselves are enough. The library requires a pointer that it may
  // change. NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
  static char* debug_info_path = no_path;
  static const Dwfl_Callbacks callbacks{dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo,
                                        nullptr, &debug_info_path};
  OwnedDwfl dwfl(dwfl_begin(&callbacks));
  if (!dwfl || dwfl_linux_proc_report(dwfl.get(), process) != 0 ||
      dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0 ||
      dwfl_linux_proc_attach(dwfl.get(), process, true) < 0) {
    return nullptr;
  }
  return dwfl;
}

void read_frames(pid_t process, pid_t thread, std::vector<std::string>* lines) {
  static OpenProcess open;
  if (open.pid != process) open = {process, open_process(process)};
  if (!open.dwfl) {
    lines->push_back(fmt::format("no frames: {}", dwfl_errmsg(-1)));
    return;
  }
  Frames frames{open.dwfl.get(), lines};
  dwfl_getthread_frames(open.dwfl.get(), thread, add_frame, &frames);
}

}  // namespace
}  // namespace dstrain::launcher

extern "C" __attribute__((visibility("default"))) void dstrain_read_frames(
    pid_t process, pid_t thread, std::vector<std::string>* lines) {
  dstrain::launcher::read_frames(process, thread, lines);
}
