#pragma once
#include "launcher/plan/options.h"
#include "launcher/plan/raw_options.h"

namespace dstrain::launcher {

/// Whether the values and combinations of options can be; the raw ones find their way into
/// `options`. Throws Error{usage} that names the option and what to do.
void check_options(LaunchOptions& options, const RawOptions& raw);

}  // namespace dstrain::launcher
