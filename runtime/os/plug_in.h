#pragma once
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain {

/// Whether libraries that are opened later find a plug-in's symbols.
enum class PlugInScope { local, global };

/// A shared library of ours that is opened when it is needed, so that programs start without what
/// it is linked to. It is built together with the programs and lies beside them, or
/// where the environment says.
struct PlugIn {
  const char* file;
  PlugInScope scope = PlugInScope::local;
};

/// Where plug-ins are looked for, in this order: the folders of DSTRAIN_PLUGIN_PATH, which is
/// `named` (null: it is not set), and the program's own.
std::vector<std::string> plug_in_folders(const char* named, std::string program_folder);

/// Opens a plug-in for good: from the first of these folders that has it, else wherever the loader
/// looks. The failure is the loader's reason.
Result<void*> open_plug_in(const PlugIn& plug_in);

/// Whether there is one in these folders; it need not be one that opens.
bool has_plug_in(const PlugIn& plug_in);

/// The address of a symbol of an opened plug-in. Throws Error{config} where the plug-in lacks it,
/// because it is of another version.
void* plug_in_symbol(const PlugIn& plug_in, void* opened, const char* symbol);

}  // namespace dstrain
