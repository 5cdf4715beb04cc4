#pragma once

/// Marks what libdstrain.so exports.
#define DSTRAIN_API __attribute__((visibility("default")))
/// Marks what it does not.
#define DSTRAIN_INTERNAL __attribute__((visibility("hidden")))
