#include "runtime/tokenizer/grapheme.h"

#include <unicode/uchar.h>

#include "runtime/base/utf8.h"

namespace dstrain::tokenizer {
namespace {

int cluster_class(char32_t code) {
  return u_getIntPropertyValue(static_cast<UChar32>(code), UCHAR_GRAPHEME_CLUSTER_BREAK);
}

bool is_pictograph(char32_t code) {
  return u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_EXTENDED_PICTOGRAPHIC) != 0;
}

bool is_control(int kind) {
  return kind == U_GCB_CONTROL || kind == U_GCB_CR || kind == U_GCB_LF;
}

/// Rules GB6 to GB8, for the parts of a Hangul syllable.
bool joins_hangul(int left, int right) {
  switch (left) {
    case U_GCB_L:
      return right == U_GCB_L || right == U_GCB_V || right == U_GCB_LV || right == U_GCB_LVT;
    case U_GCB_LV:
    case U_GCB_V:
      return right == U_GCB_V || right == U_GCB_T;
    case U_GCB_LVT:
    case U_GCB_T:
      return right == U_GCB_T;
    default:
      return false;
  }
}

/// The state that the rules need about the characters so far.
struct Cluster {
  int last = 0;
  int flags = 0;            ///< number of regional indicators; 0 if there is anything else
  bool pictograph = false;  ///< a pictograph, followed only by extenders and joiners
};

bool continues(const Cluster& cluster, char32_t code, int kind) {
  if (cluster.last == U_GCB_CR) return kind == U_GCB_LF;
  if (is_control(cluster.last) || is_control(kind)) return false;
  if (joins_hangul(cluster.last, kind)) return true;
  if (kind == U_GCB_EXTEND || kind == U_GCB_ZWJ || kind == U_GCB_SPACING_MARK) return true;
  if (cluster.last == U_GCB_PREPEND) return true;
  if (cluster.last == U_GCB_ZWJ && cluster.pictograph && is_pictograph(code)) return true;
  return kind == U_GCB_REGIONAL_INDICATOR && cluster.flags % 2 == 1;
}

Cluster extended(const Cluster& cluster, char32_t code, int kind) {
  const bool extends = kind == U_GCB_EXTEND || kind == U_GCB_ZWJ;
  return {.last = kind,
          .flags = kind == U_GCB_REGIONAL_INDICATOR ? cluster.flags + 1 : 0,
          .pictograph = extends ? cluster.pictograph : is_pictograph(code)};
}

}  // namespace

std::size_t grapheme_size(std::string_view text) {
  std::size_t size = 0;
  Cluster cluster;
  while (size < text.size()) {
    const Character character = first_character(text.substr(size));
    const int kind = cluster_class(character.code);
    if (size > 0 && !continues(cluster, character.code, kind)) break;
    cluster = extended(cluster, character.code, kind);
    size += character.size;
  }
  return size;
}

bool always_parts_graphemes(char32_t left, char32_t right) {
  // The context before `left` that is most likely to join the two.
  const Cluster cluster{.last = cluster_class(left), .flags = 1, .pictograph = true};
  return !continues(cluster, right, cluster_class(right));
}

}  // namespace dstrain::tokenizer
