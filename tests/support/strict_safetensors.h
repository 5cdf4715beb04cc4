#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace dstrain::test {

/// What a file breaks of the safetensors format as its specification states it, and of what Hugging
/// Face's readers expect beyond it (metadata format "pt", data at multiples of 8 bytes); nothing
/// for a good file. Shares no code with the reader under test. Link strict_safetensors.cpp.
std::vector<std::string> safetensors_faults(const std::filesystem::path& path);

}  // namespace dstrain::test
