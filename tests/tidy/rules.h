#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/source_file.h"

/// Rules that the tree obeys. Each returns what is wrong, one line a problem that begins with
/// "path:line: "; nothing when all is well.
namespace dstrain::tidy {

using Problems = std::vector<std::string>;

/// Quoted includes name files of the repository, from its root, and follow the folder arrows.
Problems check_includes(const SourceFile& file, const std::vector<SourceFile>& tree);

/// The ways into the memory and the streams of the CPU as a device are for its ops and collectives
/// alone.
Problems check_host_access(const SourceFile& file);

/// CUDA, NCCL and MPI headers only in the folders of those plug-ins; heavy headers in no header.
Problems check_vendor_headers(const SourceFile& file);

/// Headers begin with #pragma once.
Problems check_pragma_once(const SourceFile& file);

/// Lines of code have at most 100 columns. How many there are in a file nobody counts: a class is
/// not cut over sources.
Problems check_columns(const SourceFile& file);

/// No tabs, no blanks at line ends, no carriage returns, a newline at the end.
Problems check_whitespace(const SourceFile& file);

/// No calls that end the process, print, start a shell, sleep in tests and the like.
Problems check_banned_words(const SourceFile& file);

/// Every .cpp file is named in the CMakeLists.txt of its folder or of one above.
Problems check_built(const SourceFile& file, const std::vector<SourceFile>& tree);

/// Test names have no comma, bracket or quote: ctest passes them as filters.
Problems check_test_names(const SourceFile& file);

/// No `return` in a test case, lambdas aside: a test that cannot run here says so and is skipped.
Problems check_early_returns(const SourceFile& file);

/// Every test binary has one of the known labels.
Problems check_test_labels(const SourceFile& file);

/// Links of Markdown pages to files of the repository lead somewhere. `exists` gets a path from the
/// repository root.
Problems check_links(const SourceFile& file, const std::function<bool(const std::string&)>& exists);

}  // namespace dstrain::tidy
