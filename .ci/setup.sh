#!/usr/bin/env bash
# Installs the packages that the build needs and this machine lacks, then configures and builds.
#
#   .ci/setup.sh [--preset NAME] [TARGET...]     default: preset release, all with its tests
#   .ci/setup.sh --unpack PACKAGE FOLDER         only unpacks a package's files into FOLDER
#
# Tested on Debian 12 and 13. Uses apt, with its package sources set up, and root or sudo if a
# package is missing. Without apt, as on Fedora, RHEL and Arch, it names the packages and builds
# with what is installed; this has not been tested.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  g++ cmake ninja-build pkgconf  # ccache is used if installed; one build gains nothing from it
  nlohmann-json3-dev libyaml-cpp-dev libcli11-dev libspdlog-dev libfmt-dev
  libxxhash-dev                  # checksums of checkpoints and swap files
  libicu-dev libpcre2-dev        # tokenizers: Unicode, regular expressions
  libsentencepiece-dev           # likewise, and SentencePiece's models
  zlib1g-dev libzstd-dev         # compressed texts, for tokenize
  libdnnl-dev ocl-icd-opencl-dev # oneDNN's CMake package asks for OpenCL
  libopenmpi-dev openmpi-bin     # likewise, for jobs that its mpirun starts
  libmpich-dev mpich             # likewise
  libssh-dev                     # likewise, to launch on other hosts
  liburing-dev                   # likewise, for files that memory is offloaded to
  libhwloc-dev                   # likewise, for ranks that are bound to cores
  libdw-dev                      # likewise, for the stacks of ranks that hang
)
test_packages=(
  catch2
  clang-tidy libomp-dev          # over the sources that the last commit changed
  iproute2                       # nodes that network namespaces stand in for
  jq                             # the commands that messages give, and the bill of materials
  openssh-client libwrap0        # launching over SSH; see tests/run.sh for the server
  fish zsh                       # their completion
  man-db systemd                 # check the manual pages, and the example of a unit
  slurm-wlm munge                # a SLURM of two nodes on this machine
)

package_tools=(dpkg-dev file)    # for the preset package: .ci/package.sh

newer_packages=(                 # likewise for tests; not in every release, and none needs them
  libwtmpdb0                     # of Debian 13's SSH server, which tests/run.sh unpacks
  g++-14                         # warns of more than older ones: tests/tidy/newest_gcc.sh
)

# The same where there is no apt. In parentheses: what the distribution itself does not have.
fedora="gcc-c++ cmake ninja-build pkgconf-pkg-config json-devel yaml-cpp-devel cli11-devel
  spdlog-devel fmt-devel xxhash-devel libicu-devel pcre2-devel sentencepiece-devel zlib-devel
  libzstd-devel onednn-devel
  openmpi-devel mpich-devel libssh-devel liburing-devel hwloc-devel elfutils-devel catch-devel
  clang-tools-extra jq openssh-server slurm slurm-slurmctld slurm-slurmd munge"
rhel="$fedora (from EPEL; gcc-toolset-12 or newer; libicu 72 and pcre2 10.42, newer than its own)"
arch="gcc cmake ninja pkgconf nlohmann-json yaml-cpp cli11 spdlog fmt xxhash icu pcre2 zlib zstd
  onednn openmpi libssh liburing hwloc libelf catch2 clang jq openssh
  (AUR: sentencepiece mpich slurm-llnl munge)"

say() { printf '== %s\n' "$*"; }

die() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    env "$@"
  else
    sudo env "$@"
  fi
}

apt_get() {
  as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Needs the package lists, not root: root is asked for only when there are none.
unpack() {
  local package=$1 folder=$2 options=(-qq)
  [ "$(id -u)" -ne 0 ] || options+=(-o APT::Sandbox::User=root)
  rm -rf "$folder" "$folder.part"
  mkdir -p "$folder.part"
  cd "$folder.part"
  say "fetching the package $package"
  apt-get "${options[@]}" download "$package" 2>/dev/null ||
    { apt_get update && apt-get "${options[@]}" download "$package"; } ||
    die "cannot fetch the package $package: check the network, or apt-get install $package"
  dpkg-deb --extract "${package}"_*.deb .
  cd - >/dev/null
  mv "$folder.part" "$folder"
}

# For a system without apt, which is what /etc/os-release says.
name_packages() {
  local names="${packages[*]} (Debian's names)"
  case " $ID ${ID_LIKE:-} " in
    *\ rhel\ * | *\ centos\ *) names=$rhel ;;
    *\ fedora\ *) names=$fedora ;;
    *\ arch\ *) names=$arch ;;
  esac
  say "there is no apt-get: building with what is installed of"
  # shellcheck disable=SC2086  # one line of words
  echo "   " $names
}

is_installed() {
  [[ $(dpkg-query --show --showformat '${db:Status-Abbrev}' "$1" 2>/dev/null) == ?i* ]]
}

install_missing() {
  local ID=unknown PRETTY_NAME='this system'
  # shellcheck source=/dev/null
  [ ! -r /etc/os-release ] || . /etc/os-release
  [ "$ID" = debian ] || say "$PRETTY_NAME is not tested"
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    name_packages
    return
  fi
  local package said missing=()
  for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "all ${#packages[@]} packages are installed"
    return
  fi
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    die "missing packages: ${missing[*]}" \
      "this needs root, and there is no sudo here; run as root:" \
      "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" \
      "and then this command again"
  fi
  apt_get update || die "apt-get update failed: check the network and the files in /etc/apt"
  for package in "${newer_packages[@]}"; do
    is_installed "$package" || ! apt-cache show "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  say "installing ${missing[*]}"
  said=$(apt_get install -y --no-install-recommends "${missing[@]}" 2>&1) ||
    die "apt-get install failed:" "$said"
}

if [ "${1:-}" = --unpack ]; then
  [ $# -eq 3 ] || die "--unpack needs a package and a folder"
  unpack "$2" "$3"
  exit
fi
case "${1:-}" in
  -h | --help)
    sed -n '2,/^set/s/^# \{0,1\}//p' .ci/setup.sh
    exit
    ;;
esac
preset=release
if [ "${1:-}" = --preset ]; then
  [ $# -ge 2 ] || die "--preset needs a name"
  preset=$2
  grep --quiet "\"name\": \"$preset\", *\"configurePreset\"" CMakePresets.json ||
    die "$preset is not a preset of CMakePresets.json"
  shift 2
fi
for argument in "$@"; do
  [[ $argument != -* ]] || die "$argument is not an option here; see .ci/setup.sh --help"
done

if [ "$preset" = package ]; then
  newer_packages=()
  packages+=("${package_tools[@]}")
elif [ $# -gt 0 ]; then
  newer_packages=()
else
  packages+=("${test_packages[@]}")
fi
install_missing
# What was asked for with all tests must have them.
tests=ON
[ $# -eq 0 ] || tests=AUTO
[ "$preset" != package ] || tests=OFF
say "configuring (preset $preset)"
cmake --preset "$preset" -DDSTRAIN_TESTS=$tests >/dev/null
say "building ${*:-everything}"
cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"}
