#pragma once

namespace dstrain::session {

/// Of libdstrain_core.so, "0.1.0".
const char* version();

}  // namespace dstrain::session
