# Bare Debian systems for tests: sourced by distribution.sh and packages.sh, which set `script` (its
# name), `release` (bookworm or trixie) and `keep` (yes, or no). Sets `work` (a folder for logs) and
# `root` (the system that is used), which are removed at the end unless they are kept.
# shellcheck shell=bash disable=SC2154

if [ -z "$release" ]; then
  echo "$script: name a release: bookworm or trixie" >&2
  exit 2
fi
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "$script needs root and the package debootstrap" >&2
  exit 2
fi

work=$(mktemp -d "/tmp/dstrain-$(basename "$script" .sh)-XXXXXX")
root=$work/root
cleanup() {
  if [ "$keep" = yes ]; then
    echo "kept: $root"
  else
    rm -rf --one-file-system "$work"
  fi
}
trap cleanup EXIT

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
