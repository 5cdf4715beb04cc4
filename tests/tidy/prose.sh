#!/usr/bin/env bash
# Reports how the documentation reads: for each file, the number of sentences, the median and the
# 90th percentile of words per sentence, and each sentence that opens with a word which often
# begins an inverted clause or a noun clause ("Of the memory ...", "What is kept ..."). It is a
# report: the exit status is 0 whatever it finds.
#
#   tests/tidy/prose.sh [FILE...]     (default: README.md docs/*.md)
#
# Code blocks, tables, headings and HTML comments are left out. A list item begins a sentence.
set -euo pipefail

if [[ "${1:-}" == --help || "${1:-}" == -h ]]; then
  sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 0
fi
if [[ $# -eq 0 ]]; then
  cd "$(dirname "${BASH_SOURCE[0]}")/../.."
  set -- README.md docs/*.md
fi

# LC_ALL=C: the same numbers everywhere; a word is what lies between spaces.
LC_ALL=C awk '
  function reset(  i) {
    for (i in words) delete words[i]
    count = 0; suspects = ""; suspect_count = 0; length_now = 0; in_code = 0
  }

  function end_sentence() {
    if (length_now > 0) words[++count] = length_now
    length_now = 0
  }

  # Insertion sort: a file has a few hundred sentences.
  function sort_words(  i, j, value) {
    for (i = 2; i <= count; ++i) {
      value = words[i]
      for (j = i - 1; j >= 1 && words[j] > value; --j) words[j + 1] = words[j]
      words[j + 1] = value
    }
  }

  # Nearest rank.
  function percentile(p,  at) {
    if (count == 0) return 0
    at = int((p * count + 99) / 100)
    return words[at < 1 ? 1 : at]
  }

  function report() {
    end_sentence()
    sort_words()
    printf "%-28s %6d %8d %6d %8d\n", file, count, percentile(50), percentile(90), suspect_count
    details = details suspects
  }

  # A full stop ends a sentence, but not in "e.g." and the like; nor does a bare number "1.".
  function ends_sentence(word) {
    gsub(/[)"*_\]]+$/, "", word)
    if (word ~ /^[("]*(e\.g\.|i\.e\.|cf\.|vs\.|No\.|[0-9]+\.)$/) return 0
    return word ~ /[.!?]$/
  }

  # The words from the i-th on, for the report.
  function rest(field, i, n,  text) {
    for (text = field[i++]; i <= n && length(text) < 60; ++i) text = text " " field[i]
    return text
  }

  function read_words(line,  n, i, field, bare) {
    n = split(line, field, /[ \t]+/)
    for (i = 1; i <= n; ++i) {
      bare = field[i]
      gsub(/^[*_("]+/, "", bare)
      if (bare !~ /[A-Za-z0-9`]/) continue
      if (length_now == 0 && bare ~ suspect_words) {
        ++suspect_count
        suspects = suspects sprintf("%s:%d: %s\n", file, FNR, rest(field, i, n))
      }
      ++length_now
      if (ends_sentence(field[i])) end_sentence()
    }
  }

  BEGIN {
    suspect_words = "^(Of|What|Whatever|Who|Whoever|Whose|Where|Wherever|Which|Whether)$"
    printf "%-28s %6s %8s %6s %8s\n", "file", "sents", "median", "p90", "suspects"
  }

  FNR == 1 { if (file != "") report(); reset(); file = FILENAME }
  /^[ \t]*(```|~~~)/ { end_sentence(); in_code = !in_code; next }
  in_code { next }
  /^[ \t]*(\||#|<!--)/ || /^[ \t]*$/ { end_sentence(); next }
  {
    line = $0
    if (line ~ /^[ \t]*([-*+]|[0-9]+\.)[ \t]/) {
      end_sentence()
      sub(/^[ \t]*([-*+]|[0-9]+\.)[ \t]+/, "", line)
    }
    sub(/^[ \t>]+/, "", line)
    read_words(line)
  }

  END {
    if (file != "") report()
    if (details != "") printf "\n%s", details
  }
' "$@"
