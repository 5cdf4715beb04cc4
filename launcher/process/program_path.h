#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace dstrain::launcher {

bool is_executable_file(const std::filesystem::path& path);

/// The executable files of that name on $PATH, in its order.
std::vector<std::string> all_on_path(const std::string& name);

/// The first of them; empty when there is none.
std::string find_on_path(const std::string& name);

/// What a command's first word stands for: the file itself when there is a slash in it, else the
/// program of that name on $PATH. Throws Error{remote} when there is none.
std::string program_path(const std::string& word);

/// The path of the running program.
std::string own_path();

}  // namespace dstrain::launcher
