#!/bin/sh
# Writes the manual pages of dstrain and its commands from what `--help` prints, which comes from
# the tables of options.
#
#   .ci/man_pages.sh DSTRAIN FOLDER     FOLDER/dstrain.1, FOLDER/dstrain-train.1 ...
set -eu
program=$1 folder=$2
version=$("$program" --version)
mkdir -p "$folder"

# page NAME SUMMARY: what stdin says as a page.
page() {
  awk -v name="$1" -v summary="$2" -v version="$version" '
    function plain(text) {          # nothing of a text is a request to troff
      gsub(/\\/, "\\e", text)
      gsub(/-/, "\\-", text)
      return text ~ /^[.\047]/ ? "\\&" text : text
    }
    function heading(text) { print ".SH \"" toupper(text) "\""; in_lines = 0 }
    # A line of text is filled with the next ones; one that is indented stands as it is.
    function write(text) {
      if (text ~ /^ / && !in_lines) { print ".nf"; in_lines = 1 }
      if (text !~ /^ / && in_lines) { print ".fi"; in_lines = 0 }
      print plain(text)
    }
    BEGIN {
      print ".TH \"" toupper(name) "\" 1 \"\" \"" version "\" \"User commands\""
      heading("Name")
      print name " \\- " plain(summary)
      heading("Description")
    }
    /^[A-Z][A-Za-z ]*:?$/ && length($0) < 50 {    # "Where ranks run:"
      sub(/:$/, "")
      heading($0)
      next
    }
    # An option, a command, or a word in its place.
    /^  +-/ || /^  [A-Za-z_0-9]+( [A-Z]+)?  +[a-z]/ {
      if (in_lines) { print ".fi"; in_lines = 0 }
      sub(/^ +/, "")
      if (/,$/) { names = names $0 " "; next }    # more names follow
      $0 = names $0
      names = ""
      at = match($0, /  +/)
      print ".TP"
      print ".B \"" plain(at ? substr($0, 1, at - 1) : $0) "\""
      if (at) print plain(substr($0, at + RLENGTH))
      in_option = 1
      next
    }
    /^            / && in_option {                       # its text goes on
      sub(/^ +/, "")
      print plain($0)
      next
    }
    /^Usage: / { print ".PP" }
    /^$/ { print in_lines ? "" : ".PP"; in_option = 0; next }
    { in_option = 0; write($0) }
    END {
      heading("See also")
      if (name == "dstrain") print "dstrain help COMMAND; dstrain\\-COMMAND(1) for each command"
      else print ".BR dstrain (1)"
    }' >"$folder/$1.1"
}

"$program" --help | page dstrain "train language models on many processes"
"$program" list | sed -n 's/^  \([a-z_0-9]*\)  *\(.*\)/\1 \2/p' | while read -r command summary; do
  help=--help
  [ "$command" = train ] && help=--help-all
  "$program" "$command" "$help" | page "dstrain-$command" "$summary"
done
