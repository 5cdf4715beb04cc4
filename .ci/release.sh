#!/usr/bin/env bash
# Makes a release of the commit that is checked out: runs the tests, makes the packages, and writes
# their checksums and a bill of materials beside them. Neither tags nor pushes: it prints the
# commands for that.
#
#   .ci/release.sh VERSION [--dry_run]
#
# --dry_run  only checks whether this commit can be VERSION
#
# What it makes is in build/package/packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=
dry_run=no
for argument in "$@"; do
  case "$argument" in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' .ci/release.sh && exit 0 ;;
    --dry_run) dry_run=yes ;;
    -*) echo "release.sh: unknown option $argument; see --help" >&2 && exit 2 ;;
    *) [ -z "$version" ] || { echo "release.sh: give one version" >&2 && exit 2; }
      version=$argument ;;
  esac
done
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] ||
  { echo "release.sh: give a version like 0.1.0; see --help" >&2 && exit 2; }
tag=v$version
build=build/package
packages=$build/packages

# All reasons at once.
problems=()
changed=$(git status --porcelain)
[ -z "$changed" ] || problems+=("uncommitted changes: commit or remove them"$'\n'"$changed")
! git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null ||
  problems+=("the tag $tag exists: raise the version in CMakeLists.txt")
line=$(grep -n '^project(' CMakeLists.txt | cut -d : -f 1)
project=$(sed -nE 's/^project\(dstrain VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
[ "$project" = "$version" ] ||
  problems+=("CMakeLists.txt:$line: the version is $project, not $version")
grep -qE "^## ${version//./\\.}, [0-9]{4}-[0-9]{2}-[0-9]{2}\$" docs/changelog.md ||
  problems+=("docs/changelog.md has no line \"## $version, $(date +%F)\": date the section of this \
version")
for problem in "${problems[@]}"; do printf 'release.sh: %s\n' "$problem" >&2; done
[ ${#problems[@]} -eq 0 ] || exit 1
if [ "$dry_run" = yes ]; then
  echo "release.sh: this commit can be $version"
  exit
fi
command -v jq >/dev/null ||
  { echo "release.sh: install jq for the bill of materials" >&2 && exit 1; }

tests/run.sh
.ci/package.sh
tarball=$(find "$packages" -name 'dstrain-*.tar.gz' ! -name '*-debug.tar.gz')
.ci/sbom.sh "$version" "$build/bin" "$tarball" >"$packages/dstrain-$version.spdx.json"
(cd "$packages" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort |
  xargs -d '\n' sha256sum >SHA256SUMS)

echo "$packages has the release $version. To tag and publish this commit:"
echo "  git tag --annotate $tag --message \"dstrain $version\" $(git rev-parse HEAD)"
echo "  git push origin $tag"
