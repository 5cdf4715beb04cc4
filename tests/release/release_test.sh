#!/usr/bin/env bash
# .ci/release.sh in a small repository: what it refuses, and what it makes. Tests and packing are
# replaced by a line each, and the programs by one of this system.
#
# Exits with 77 without git, jq or dpkg-query.
set -euo pipefail
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
for program in git jq dpkg-query; do
  command -v $program >/dev/null || { echo "skipped: $program is not installed" && exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf 'release_test: %s\n' "$@" >&2
  exit 1
}

mkdir -p "$work/tree"/{.ci,docs,tests}
cd "$work/tree"
cp "$source"/.ci/{release,sbom}.sh .ci
printf 'cmake_minimum_required(VERSION 3.25)\nproject(dstrain VERSION 1.2.3 LANGUAGES CXX)\n' \
  >CMakeLists.txt
printf '# Changelog\n\n## 1.2.3, unreleased\n' >docs/changelog.md
printf '/build/\n' >.gitignore
printf '#!/bin/sh\necho tested >>build/log\n' >tests/run.sh
cat >.ci/package.sh <<'END'
#!/bin/sh
echo packed >>build/log
mkdir -p build/package/bin build/package/packages tree/lib/dstrain
cp "$(command -v jq)" build/package/bin/dstrain
touch tree/lib/dstrain/libjq.so.1 build/package/packages/dstrain_1.2.3.deb
tar czf build/package/packages/dstrain-1.2.3-linux.tar.gz tree
tar czf build/package/packages/dstrain-1.2.3-linux-debug.tar.gz CMakeLists.txt
rm -r tree
END
chmod +x tests/run.sh .ci/package.sh
mkdir build
git init --quiet
commit() {
  git add --all
  git -c user.name=t -c user.email=t@t.invalid commit --quiet --message change
}
commit

# refused TEXT VERSION: with status 1 and this text, before anything runs.
refused() {
  local status=0
  .ci/release.sh "$2" >"$work/said" 2>&1 || status=$?
  [ $status -eq 1 ] || fail "status $status instead of 1 for: $1" "$(cat "$work/said")"
  grep -qF -- "$1" "$work/said" || fail "it does not say: $1" "$(cat "$work/said")"
  [ ! -e build/log ] || fail "it ran something before it refused: $1"
}
refused 'docs/changelog.md has no line "## 1.2.3, ' 1.2.3
printf '# Changelog\n\n## 1.2.3, 2026-11-29\n' >docs/changelog.md
refused "uncommitted changes" 1.2.3
commit
refused "CMakeLists.txt:2: the version is 1.2.3, not 1.2.4" 1.2.4
git tag v1.2.3
refused "the tag v1.2.3 exists" 1.2.3
git tag --delete v1.2.3 >/dev/null
.ci/release.sh --dry_run 1.2.3 | grep -q "can be 1.2.3" || fail "the dry run does not accept 1.2.3"
[ ! -e build/log ] || fail "the dry run runs something"

.ci/release.sh 1.2.3 >"$work/said" 2>&1 || fail "$(cat "$work/said")"
[ "$(paste -sd ' ' build/log)" = "tested packed" ] || fail "it ran: $(cat build/log)"
grep -qF "git tag --annotate v1.2.3 --message \"dstrain 1.2.3\" $(git rev-parse HEAD)" \
  "$work/said" || fail "it does not print the command of the tag:" "$(cat "$work/said")"
[ -z "$(git tag)" ] || fail "it tagged by itself"
cd build/package/packages
sha256sum --check --quiet SHA256SUMS || fail "wrong checksums"
[ "$(wc -l <SHA256SUMS)" -eq 4 ] || fail "checksums of other files:" "$(cat SHA256SUMS)"

# What SPDX 2.3 requires of a document, a package and a relationship.
bill=dstrain-1.2.3.spdx.json
holds() {
  jq --exit-status "$1" $bill >/dev/null || fail "the bill of materials fails: $1" "$(cat $bill)"
}
holds '.spdxVersion == "SPDX-2.3" and .dataLicense == "CC0-1.0" and .SPDXID == "SPDXRef-DOCUMENT"'
holds '.name and (.documentNamespace | test("^https://[^#]+$"))'
holds '.creationInfo | (.created | test("^[-0-9]+T[:0-9]+Z$")) and (.creators[0] | test("^Tool: "))'
holds '[.packages[] | .name and .downloadLocation and (.SPDXID | test("^SPDXRef-[A-Za-z0-9.-]+$"))]
  | all'
holds '(.packages | map(.SPDXID)) as $ids | ($ids | length) == ($ids | unique | length)
  and (.relationships | map(.relatedSpdxElement)) - $ids == []'
holds '[.packages[] | .externalRefs[]? | .referenceLocator | test("^pkg:deb/debian/.+@.+[?]arch=")]
  | all'
# What this program links and the tarball carries.
libc=$(dpkg-query --show --showformat '${Version}\n' libc6 | head -n 1)
holds ".packages | map(select(.name == \"libc.so.6\")) | length == 1 and
  .[0].versionInfo == \"$libc\""
holds '.relationships | map(select(.relatedSpdxElement == "SPDXRef-libjq.so.1").relationshipType)
  | sort == ["CONTAINS", "DYNAMIC_LINK"]'
holds '.relationships | map(select(.relatedSpdxElement == "SPDXRef-libc.so.6").relationshipType)
  == ["DYNAMIC_LINK"]'
echo "release_test: all checks passed"
