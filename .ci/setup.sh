#!/usr/bin/env bash
# Installs the Debian packages that the build needs and this machine lacks, then configures and
# builds.
#
#   .ci/setup.sh [--preset NAME] [TARGET...]     default: preset release, everything with its tests
#   .ci/setup.sh --unpack PACKAGE FOLDER         only unpacks a package's files into FOLDER
#
# Needs a Debian 12 with its package sources set up, and root or sudo when a package is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  g++ cmake ninja-build  # ccache is used where it is; one build of a fresh machine gains nothing
  nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
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
  openssh-client libwrap0 zsh    # launching over SSH; see tests/run.sh for the server
  slurm-wlm munge                # a SLURM of two nodes on this machine
)

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

install_missing() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "not a Debian system: the build needs ${packages[*]}, or what your system calls them"
    return
  fi
  local package missing=()
  for package in "${packages[@]}"; do
    case "$(dpkg-query --show --showformat '${db:Status-Abbrev}' "$package" 2>/dev/null || true)" in
      ?i*) ;;
      *) missing+=("$package") ;;
    esac
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
  say "installing ${missing[*]}"
  apt_get update || die "apt-get update failed: check the network and the files in /etc/apt"
  apt_get install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get install failed: see its messages above"
}

if [ "${1:-}" = --unpack ]; then
  [ $# -eq 3 ] || die "--unpack needs a package and a folder"
  unpack "$2" "$3"
  exit
fi
preset=release
if [ "${1:-}" = --preset ]; then
  [ $# -ge 2 ] || die "--preset needs a name"
  preset=$2
  shift 2
fi

[ $# -gt 0 ] || packages+=("${test_packages[@]}")
install_missing
say "configuring (preset $preset)"
cmake --preset "$preset" >/dev/null
say "building ${*:-everything}"
cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"}
