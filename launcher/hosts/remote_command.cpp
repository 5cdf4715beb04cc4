#include "launcher/hosts/remote_command.h"

#include "launcher/hosts/shell_quote.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
std::string remote_command(std::string_view path) {
  // A line end ends a command for some shells, quoted or not.
  const bool plain = path.find_first_of("\r\n") == path.npos;
  if (!plain || !path.starts_with('/')) {
    fail(ErrorCode::remote,
         "the path of dstrain, \"{}\", cannot be named to every remote shell; move the program "
         "where its path has no line end",
         path);
  }
  const std::string script =
      "if [ -x \"$0\" ]; then exec \"$0\" agent; fi; "
      "if command -v dstrain >/dev/null 2>&1; then exec dstrain agent; fi; echo " +
      std::string(absent_line);
  return shell_command(script, {std::string(path)});
}

}  // namespace dstrain::launcher
