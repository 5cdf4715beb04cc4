#pragma once
#include <exception>
#include <memory>
#include <string>

#include <gloo/context.h>
#include <gloo/transport/device.h>

#include "runtime/comm/gloo/gloo_transport.h"

namespace dstrain::comm {

using GlooDevice = std::shared_ptr<gloo::transport::Device>;

/// The device of this process at `address`: a thread that waits for sockets.
GlooDevice make_gloo_device(const std::string& address);

/// Connects the ranks of a group, each to each, through gloo. gloo takes whoever comes first to a
/// port for the rank that it expects there, and its thread ends the process at bytes that cannot
/// be: log_uncaught_exceptions() says so then.
std::shared_ptr<gloo::Context> connect_mesh(Store& store,
                                            const GlooOptions& options,
                                            GlooDevice device);

/// How long joining may take.
double join_seconds(const GlooOptions& options);

/// "[/build/gloo/transport/tcp/pair.cc:599] Connection closed by peer": the place is of no use.
std::string words_of(const std::exception& error);

}  // namespace dstrain::comm
