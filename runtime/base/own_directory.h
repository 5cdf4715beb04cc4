#pragma once
#include <filesystem>
#include <string>
#include <vector>

/// Directories of one user in places where others may take their names, as in /tmp.
namespace dstrain {

/// DIRECTORY/NAME and each DIRECTORY/NAME-ANYTHING that is this user's alone, in order.
std::vector<std::filesystem::path> own_directories(const std::filesystem::path& directory,
                                                   const std::string& name);

/// The first of them. Where there is none it makes NAME, or NAME-RANDOM if somebody else has that.
/// Throws Error{io}.
std::filesystem::path own_directory(const std::filesystem::path& directory,
                                    const std::string& name);

}  // namespace dstrain
