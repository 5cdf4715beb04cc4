#!/usr/bin/env bash
# Runs the README's two commands as a newcomer would: in a bare Debian with nothing but git added,
# on a fresh clone of the last commit, with an empty environment. Prints what each took.
#
#   tests/distribution.sh bookworm|trixie [--base FOLDER] [--keep] [COMMAND...]
#
# --base FOLDER  keeps the bare system in FOLDER and takes it from there the next time
# --keep         leaves the used system in place and prints its path
# COMMAND        default: ./examples/quickstart.sh ./tests/run.sh
#
# Needs root and debootstrap. Uses this machine's Debian mirror and proxies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

release=
base=
keep=no
commands=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' tests/distribution.sh && exit 0 ;;
    bookworm | trixie) release=$1 && shift ;;
    --base) base=${2:?--base needs a folder} && shift 2 ;;
    --keep) keep=yes && shift ;;
    -*) echo "tests/distribution.sh: unknown option $1; see --help" >&2 && exit 2 ;;
    *) commands+=("$1") && shift ;;
  esac
done
[ ${#commands[@]} -gt 0 ] || commands=(./examples/quickstart.sh ./tests/run.sh)

if [ -z "$release" ]; then
  echo "tests/distribution.sh: name a release: bookworm or trixie" >&2
  exit 2
fi
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "tests/distribution.sh needs root and the package debootstrap" >&2
  exit 2
fi

work=$(mktemp -d /tmp/dstrain-distribution-XXXXXX)
root=$work/root
cleanup() {
  if [ "$keep" = yes ]; then
    echo "kept: $root"
  else
    rm -rf --one-file-system "$work"
  fi
}
trap cleanup EXIT

report=()
timed() {
  local label=$1 start=$SECONDS status=0
  shift
  printf '\n######## %s\n' "$label"
  "$@" || status=$?
  report+=("$(printf '%5d s  status %d  %s' $((SECONDS - start)) "$status" "$label")")
  return $status
}

# Where this machine takes Debian, or its security updates, from.
mirror() {
  local label=$1 otherwise=$2 found
  found=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' |
    awk -v label="$label" '$2 == label { print $1; exit }')
  echo "${found:-$otherwise}"
}
debian=$(mirror Debian http://deb.debian.org/debian)
security=$(mirror Debian-Security http://deb.debian.org/debian-security)

make_base() {
  local target=$1
  [ ! -e "$target/etc/debian_version" ] || return 0
  debootstrap --variant=minbase "$release" "$target" "$debian" >"$work/debootstrap.log" 2>&1 ||
    { tail -n 20 "$work/debootstrap.log" >&2 && return 1; }
}

# Package sources, proxies and name resolution: what reaches the mirror here reaches it there.
copy_network_settings() {
  local path
  printf 'deb %s %s main\n' "$debian" "$release" "$debian" "$release-updates" \
    "$security" "$release-security" >"$root/etc/apt/sources.list"
  for path in /etc/ssl/certs /usr/share/ca-certificates /usr/local/share/ca-certificates; do
    [ ! -e "$path" ] || { mkdir -p "$root${path%/*}" && cp -a "$path" "$root${path%/*}/"; }
  done
  apt-config dump Acquire | grep -E 'Proxy|CaInfo|CaPath' >"$root/etc/apt/apt.conf.d/00host" || true
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
}

# Runs a shell command inside, in namespaces of its own: no mount and no process stays behind. The
# root is a mount, as on any system: tests make mount namespaces too.
inside() {
  local proxies=() name
  for name in http_proxy https_proxy no_proxy; do
    [ -z "${!name:-}" ] || proxies+=("$name=${!name}")
  done
  # shellcheck disable=SC2016  # expands in the inner shell
  unshare --mount --pid --fork --kill-child env -i HOME=/root TERM=dumb "${proxies[@]}" \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c '
      mount --bind "$1" "$1" && mount -t proc proc "$1/proc" || exit
      mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys" || exit
      exec chroot "$1" bash -c "$2"' inside "$root" "$1" </dev/null
}

install_git() {
  inside 'export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update && apt-get -qq install -y --no-install-recommends git >/dev/null'
}

clone() {
  [ -z "$(git status --porcelain)" ] || echo "note: uncommitted changes are not tested"
  git bundle create --quiet "$root/root/dstrain.bundle" HEAD
  inside 'cd && git clone --quiet -c advice.detachedHead=false dstrain.bundle dstrain &&
    git -C dstrain log --oneline -1'
}

timed "bare Debian ($release)" make_base "${base:-$work/base}"
timed "copy of it" cp -a "${base:-$work/base}" "$root"
copy_network_settings
timed "git" install_git
timed "clone" clone
failed=0
for command in "${commands[@]}"; do
  timed "$command" inside "cd /root/dstrain && $command" || failed=1
done
printf '\n######## on %d cores\n' "$(nproc)"
printf '%s\n' "${report[@]}"
exit $failed
