#pragma once
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain {

/// Whether libraries opened later see a plug-in's symbols.
enum class PlugInScope { local, global };

/// One of our shared libraries that is opened when needed, so that programs start without its
/// dependencies. It is built together with libdstrain_core.so and is beside it, or where the
/// environment says.
struct PlugIn {
  const char* file;
  PlugInScope scope = PlugInScope::local;
};

/// Returns the folders to search for plug-ins, in order: those of DSTRAIN_PLUGIN_PATH, whose value
/// is `named` (null: not set), and that of the library.
std::vector<std::string> plug_in_folders(const char* named, std::string library_folder);

/// Returns the folder of libdstrain_core.so, or of a program that holds it.
std::string library_folder();

/// Opens a plug-in and never closes it: from the first of these folders that has it, else by the
/// loader's search. The failure is the loader's reason.
Result<void*> open_plug_in(const PlugIn& plug_in);

/// Whether these folders have the plug-in. It may still fail to open.
bool has_plug_in(const PlugIn& plug_in);

/// Returns the address of a symbol of an opened plug-in. Throws Error{config} if the plug-in lacks
/// it because it has another version.
void* plug_in_symbol(const PlugIn& plug_in, void* opened, const char* symbol);

}  // namespace dstrain
