# Turns the dictionary's file into prose: one paragraph a line, a blank line between paragraphs.
# Writes two disjoint texts, to the files named by the variables `train` and `held_out`: every
# 100th block of 100 entries is held out, so that both cover the whole alphabet.
#
# Only paragraphs from Webster's dictionary of 1913 are kept; they are in the public domain. Each
# ends with the line "[1913 Webster]". Pronunciations stand between backslashes, etymologies and
# labels in brackets, cross references in braces; asterisks part syllables, quotes mark an accent.

BEGIN { RS = "" }  # a record is a paragraph

/^[^ \n]/ { ++entry }  # a headword stands in the first column

/\[1913 Webster\][ \n]*$/ && !/[\200-\377]/ {
  gsub(/[ \n\t]+/, " ")
  gsub(/ ?\\[^\\]*\\/, "")
  while (gsub(/ ?\[[^][]*\]/, "")) {
  }
  gsub(/ ?\([^()]*["?][^()]*\)| ?\(\)/, "")  # pronunciations without backslashes
  gsub(/[{}*|]/, "")
  while (match($0, /[a-z]"[a-z]/)) {  # an accent within a word
    $0 = substr($0, 1, RSTART) substr($0, RSTART + 2)
  }
  gsub(/ +--/, " -- ")
  gsub(/ +/, " ")
  sub(/^ /, "")
  sub(/ $/, "")
  if (length($0) < 40 || /[][\\]/) next
  print $0 "\n" > (int(entry / 100) % 100 == 99 ? held_out : train)
}
