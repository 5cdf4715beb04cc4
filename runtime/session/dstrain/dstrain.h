#pragma once

/// The public interface of libdstrain: training of one's own loop under ZeRO, offload, mixed
/// precision and the launcher. See docs/library.md.
#include <dstrain/config.h>
#include <dstrain/engine.h>
#include <dstrain/error.h>
#include <dstrain/model.h>
#include <dstrain/model_builder.h>
#include <dstrain/rank.h>
