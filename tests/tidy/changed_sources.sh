# Sourced, from the root of the tree, by checks of what has changed. Sets `sources` to the newest
# sources of the product, 8 at most. Of a header the source of its name is taken, or one that
# includes it.
#
#   . tests/tidy/changed_sources.sh           the 8 sources that changed last
#   . tests/tidy/changed_sources.sh BASE      those that changed since BASE: the rest is named
#
# Ends the check with 77, skipped, if there are none.
sources_max=8
folders=(cmd launcher offload runtime zero)

skip() {
  echo "skipped: $1"
  exit 77
}

git rev-parse --verify --quiet HEAD >/dev/null || skip "this is no git repository"

# The newest first.
changed() {
  if [ $# -gt 0 ]; then
    git diff --name-only --diff-filter=d "$1" -- "${folders[@]}"
  else
    git log --max-count=100 --format= --name-only -- "${folders[@]}"
  fi
}

source_of() {
  local source=${1%.h}.cpp
  [ -e "$source" ] || source=$(git grep --files-with-matches --fixed-strings \
    "#include \"$1\"" -- "${folders[@]/%//*.cpp}" | head -n 1 || true)
  [ -z "$source" ] || echo "$source"
}

mapfile -t sources < <(
  changed "$@" | awk '!seen[$0]++' | while read -r path; do
    case $path in
      *.cpp) [ ! -e "$path" ] || echo "$path" ;;
      *.h) [ ! -e "$path" ] || source_of "$path" ;;
    esac
  done | awk '!seen[$0]++')
[ ${#sources[@]} -gt 0 ] || skip "no source of the product has changed"
[ $# -gt 0 ] || sources=("${sources[@]:0:$sources_max}")
for path in "${sources[@]:$sources_max}"; do
  echo "not looked at, more than $sources_max: $path"
done
sources=("${sources[@]:0:$sources_max}")

# Those of `sources` that are compiled in a build folder, each with a NUL: one may need a library
# that this machine lacks.
built_sources() {
  local path
  for path in "${sources[@]}"; do
    if grep --quiet --fixed-strings "\"file\": \"$PWD/$path\"" "$1/compile_commands.json"; then
      printf '%s\0' "$path"
    else
      echo "not built here: $path" >&2
    fi
  done
}
