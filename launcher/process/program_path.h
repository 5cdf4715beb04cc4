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

/// The program of a command's first word: the file itself if the word has a slash, else the program
/// of that name on $PATH. Throws Error{remote} if there is none.
std::string program_path(const std::string& word);

/// The path of the running program.
std::string own_path();

}  // namespace dstrain::launcher
