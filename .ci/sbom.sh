#!/usr/bin/env bash
# Prints a bill of materials (SPDX 2.3, JSON): the libraries that the programs link or contain, and
# those that the tarball brings along, each with its Debian package, its version and its license.
#
#   .ci/sbom.sh VERSION FOLDER [TARBALL]      FOLDER: programs and libraries of a build
#
# Reads ldd, dpkg-query and /usr/share/doc/PACKAGE/copyright; needs jq and no network. A license is
# given where the copyright file is machine-readable and SPDX has a name for all that it lists.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2; }
version=$1 folder=$2 tarball=${3:-}
[ -d "$folder" ] || { echo "sbom.sh: $folder is not a folder" >&2 && exit 2; }
# Contained in the programs as headers.
headers=(nlohmann-json3-dev libcli11-dev)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The paths of all libraries, also of those that a library needs, without our own.
libraries() {
  find "$folder" -maxdepth 1 -type f -print0 |
    while IFS= read -r -d '' file; do
      ldd "$file" 2>/dev/null | sed -nE 's/^\t([^ ]+ => )?(\/[^ ]+) \(0x.*/\2/p'
    done | sort -u | grep -v '/libdstrain[^/]*$' || true
}

# The Debian package that owns a file, or nothing. Packages may know /usr/lib/x as /lib/x.
package_of() {
  local path
  for path in "$1" "$(realpath "$1")" "${1#/usr}" "/usr$1" "$(realpath "$1" | sed 's/^.usr//')"; do
    dpkg-query --search "$path" 2>/dev/null | sed -n '1s/:.*//p' | grep . && return
  done || true
}

# The names of licenses in a machine-readable copyright file, one a line.
debian_licenses() {
  local file=/usr/share/doc/$1/copyright
  head -n 20 "$file" 2>/dev/null | grep -qE '^Format: *https?://.*copyright-format' || return 0
  sed -nE 's/^License:[[:space:]]*(.*[^[:space:]])[[:space:]]*$/\1/p' "$file" | sort -u
}

# SPDX's name of a license that Debian names, or nothing.
spdx_license() {
  case "$1" in
    Expat | MIT) echo MIT ;;
    Apache-2 | Apache-2.0) echo Apache-2.0 ;;
    BSD-2-clause | BSD-2-Clause) echo BSD-2-Clause ;;
    BSD-3-clause | BSD-3-Clause) echo BSD-3-Clause ;;
    GPL-[123]) echo "$1.0-only" ;;
    GPL-[123]+) echo "${1%+}.0-or-later" ;;
    LGPL-2 | LGPL-3) echo "$1.0-only" ;;
    LGPL-2+ | LGPL-3+) echo "${1%+}.0-or-later" ;;
    LGPL-2.1) echo LGPL-2.1-only ;;
    LGPL-2.1+) echo LGPL-2.1-or-later ;;
    ISC | Zlib | BSL-1.0 | CC0-1.0) echo "$1" ;;
    zlib) echo Zlib ;;
  esac
}

# The licenses of a package as an expression of SPDX, if each of them has a name there.
license_of() {
  local name known=()
  while IFS= read -r name; do
    name=$(spdx_license "$name")
    [ -n "$name" ] || { echo NOASSERTION && return; }
    known+=("$name")
  done < <(debian_licenses "$1")
  [ ${#known[@]} -gt 0 ] || { echo NOASSERTION && return; }
  printf '%s\n' "${known[@]}" | sort -u | sed ':a; N; $!ba; s/\n/ AND /g'
}

# add NAME PACKAGE LINK: one line of JSON. LINK is how dstrain has it.
add() {
  local name=$1 package=$2 link=$3 of='' architecture='' license=NOASSERTION
  [ -z "$package" ] || IFS=$'\t' read -r of architecture < <(
    dpkg-query --show --showformat '${Version}\t${Architecture}\n' "$package" | head -n 1)
  [ -z "$package" ] || license=$(license_of "$package")
  jq --null-input --compact-output --arg name "$name" --arg package "$package" --arg link "$link" \
    --arg version "$of" --arg architecture "$architecture" \
    --arg license "$license" \
    --arg said "$([ -z "$package" ] || debian_licenses "$package" | paste -sd ';' |
      sed 's/;/; /g')" '
    {link: $link, package: ({
      SPDXID: ("SPDXRef-" + ($name | gsub("[^A-Za-z0-9.-]"; "-"))),
      name: $name, downloadLocation: "NOASSERTION", filesAnalyzed: false,
      licenseConcluded: "NOASSERTION", licenseDeclared: $license, copyrightText: "NOASSERTION"}
      + if $said == "" then {} else {licenseComments:
        ("The copyright file of the Debian package names: " + $said)} end
      + if $package == "" then {sourceInfo: "No Debian package owns this library."} else
        {versionInfo: $version, sourceInfo: ("Debian package " + $package + " " + $version),
         externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl",
           referenceLocator: ("pkg:deb/debian/" + ($package | @uri) + "@" + ($version | @uri)
             + "?arch=" + $architecture)}]} end)}'
}

[ -z "$tarball" ] || tar --list --file "$tarball" | sed 's/.*\///' >"$work/carried"
touch "$work/carried"
libraries >"$work/libraries"
while IFS= read -r path; do
  name=$(basename "$path")
  add "$name" "$(package_of "$path")" DYNAMIC_LINK
  if grep -qxF "$name" "$work/carried"; then
    jq --null-input --compact-output --arg id "SPDXRef-${name//[^A-Za-z0-9.-]/-}" \
      '{link: "CONTAINS", id: $id}'
  fi
done <"$work/libraries" >"$work/found"
for package in "${headers[@]}"; do
  dpkg-query --status "$package" >/dev/null 2>&1 || continue
  add "$package" "$package" STATIC_LINK
done >>"$work/found"

# The same build has the same text: its commit's time and name, not this moment's.
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
seconds=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
jq --slurp --arg version "$version" --arg commit "$commit" \
  --arg created "$(date --utc --date "@$seconds" +%Y-%m-%dT%H:%M:%SZ)" '
  {spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT",
   name: ("dstrain-" + $version),
   documentNamespace: ("https://dstrain.invalid/spdx/dstrain-" + $version + "-" + $commit),
   creationInfo: {created: $created, creators: ["Tool: dstrain-sbom.sh-" + $version]},
   documentDescribes: ["SPDXRef-dstrain"],
   packages: ([{SPDXID: "SPDXRef-dstrain", name: "dstrain", versionInfo: $version,
     sourceInfo: ("commit " + $commit), downloadLocation: "NOASSERTION", filesAnalyzed: false,
     licenseConcluded: "NOASSERTION", licenseDeclared: "NOASSERTION",
     copyrightText: "NOASSERTION"}] + map(.package | values) | unique_by(.SPDXID)),
   relationships: ([{spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES",
     relatedSpdxElement: "SPDXRef-dstrain"}] + map({spdxElementId: "SPDXRef-dstrain",
       relationshipType: .link, relatedSpdxElement: (.id // .package.SPDXID)}) | unique)}
  ' "$work/found"
