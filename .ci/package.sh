#!/usr/bin/env bash
# Makes the packages: installs what the build needs, builds (preset package) and packs.
#
#   .ci/package.sh
#
# Debian packages for the system that this runs on, with packages of debug information; a tarball
# that needs no package of the system, and one with its debug information. Prints their sizes and
# SHA-256 sums. They are in build/package/packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -gt 0 ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' .ci/package.sh
  [[ $1 == -h || $1 == --help ]] && exit || exit 2
fi
build=build/package
packages=$build/packages

.ci/setup.sh --preset package
rm -rf "$packages"

# pack GENERATOR STRIP [cmake options]
pack() {
  local generator=$1 strip=$2
  shift 2
  printf '== packing: %s\n' "$generator"
  cmake --preset package "$@" >/dev/null
  cmake --build --preset package --parallel "$(nproc)" >/dev/null
  (cd "$build" && cpack -G "$generator" -D CPACK_STRIP_FILES="$strip" >/dev/null)
}

# CPack's packages of debug information list their files by paths of this machine, and lack what
# Debian's have to have.
mend_debug_package() {
  local file=$1 tree=$packages/tree name
  name=$(dpkg-deb --field "$file" Package)
  dpkg-deb --raw-extract "$file" "$tree"
  sed -i '/^Package-Type: ddeb$/d' "$tree/DEBIAN/control"
  mkdir -p "$tree/usr/share/doc"
  ln -s "${name%-dbgsym}" "$tree/usr/share/doc/$name"
  (cd "$tree" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
  dpkg-deb --root-owner-group -Zxz --build "$tree" "${file%.ddeb}.deb" >/dev/null
  rm -r "$tree" "$file"
}

# The debug information of the tarball's programs, where debuggers look for it by build id.
pack_debug() {
  local stage=$packages/stage name=$1-debug program id
  cmake --install "$build" --prefix "$PWD/$stage/tree" >/dev/null
  find "$stage/tree" -type f \( -name 'dstrain' -o -name 'dstraind' -o -name 'libdstrain*.so*' \) \
    -perm -u+x -print0 |
    while IFS= read -r -d '' program; do
      id=$(readelf --notes "$program" | sed -n 's/.*Build ID: //p')
      mkdir -p "$stage/$name/lib/debug/.build-id/${id:0:2}"
      objcopy --only-keep-debug --compress-debug-sections "$program" \
        "$stage/$name/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
    done
  tar --create --gzip --owner 0 --group 0 --file "$packages/$name.tar.gz" -C "$stage" "$name"
  rm -r "$stage"
}

if command -v dpkg-shlibdeps >/dev/null; then
  # dbgsym packages need the symbols that CPack's own strip would remove.
  pack DEB OFF -DDSTRAIN_BUNDLE=OFF -DCMAKE_INSTALL_PREFIX=/usr \
    -DCMAKE_INSTALL_LIBDIR="lib/$(dpkg-architecture --query DEB_HOST_MULTIARCH)"
  for file in "$packages"/*.ddeb; do mend_debug_package "$file"; done
fi
pack TGZ ON -DDSTRAIN_BUNDLE=ON -DCMAKE_INSTALL_PREFIX=/opt/dstrain \
  -DCMAKE_INSTALL_LIBDIR=lib
pack_debug "$(basename "$packages"/dstrain-*.tar.gz .tar.gz)"
rm -r "$packages/_CPack_Packages"

cd "$packages"
sha256sum -- * | while read -r sum file; do
  printf '%8.2f MB  %s  %s\n' "$(stat --format %s "$file")e-6" "$sum" "$file"
done
