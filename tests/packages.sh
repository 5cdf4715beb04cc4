#!/usr/bin/env bash
# Installs what .ci/package.sh makes on a bare Debian, trains with it, upgrades and removes it, and
# checks that nothing is left. Prints what was checked, with seconds and megabytes.
#
#   tests/packages.sh bookworm|trixie [--base FOLDER] [--packages FOLDER] [--only-tarball] [--keep]
#
# --base FOLDER      keeps the bare system in FOLDER and takes it from there the next time
# --packages FOLDER  tests these in place of making some in such a system from the last commit
# --only-tarball     leaves out the Debian packages, as of those that another release has made
# --keep             leaves the used system in place and prints its path
#
# Needs root and debootstrap. Uses this machine's Debian mirror and proxies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

script=tests/packages.sh
release=
base=
packages=
only_tarball=no
keep=no
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' tests/packages.sh && exit 0 ;;
    bookworm | trixie) release=$1 && shift ;;
    --base) base=${2:?--base needs a folder} && shift 2 ;;
    --packages) packages=$(realpath "${2:?--packages needs a folder}") && shift 2 ;;
    --only-tarball) only_tarball=yes && shift ;;
    --keep) keep=yes && shift ;;
    *) echo "tests/packages.sh: unknown option $1; see --help" >&2 && exit 2 ;;
  esac
done
. tests/bare_root.sh
base=${base:-$work/base}

rows=()
row() { rows+=("$(printf '%-44s %s' "$1" "$2")") && printf '== %s: %s\n' "$1" "$2"; }
calc() { awk "BEGIN { printf \"$1\", ($2) }"; }  # calc FORMAT EXPRESSION
fail() {
  printf 'tests/packages.sh: %s\n' "$@" >&2
  exit 1
}

# A bare system, in which only apt-get update has run.
fresh_root() {
  rm -rf --one-file-system "$root"
  cp -a "$base" "$root"
  copy_network_settings
  rm -f "$root"/var/cache/apt/archives/*.deb
  mkdir "$root/packages" "$root/run/training"
  [ -z "$packages" ] || cp "$packages"/*.deb "$packages"/*.tar.gz "$root/packages"
}

apt='export DEBIAN_FRONTEND=noninteractive; apt-get -qq -o Dpkg::Use-Pty=0'
install="$apt install -y --no-install-recommends"

# Every file but what apt and dpkg keep, this test's own, and the user's locks of ports, which last
# until the machine starts anew.
list_files() {
  local path not=()
  for path in packages proc dev sys run/training var/log var/cache var/lib/apt var/lib/dpkg \
    etc/ld.so.cache tmp/dstrain-0; do
    not+=(-path "./$path" -prune -o)
  done
  (cd "$root" && find . -xdev "${not[@]}" -print) | sort >"$work/$1"
}
check_nothing_left() {
  list_files after
  diff "$work/before" "$work/after" || fail "$1 leaves the files above"
  row "$1" "nothing left"
}

model="--config_name gpt2 --config_overrides n_layer=2,n_embd=64,n_head=4,vocab_size=256 \
  --tokenizer byte --train_file /usr/share/common-licenses/GPL-3 --block_size 64 \
  --per_device_train_batch_size 8 --learning_rate 3e-3 --logging_steps 10 --output_dir out"

# Trains a small GPT-2 of a text of Debian's on two ranks; the loss must fall. PROGRAM is dstrain.
trains() {
  local program=$1 start first last
  start=$(date +%s.%N)
  inside "cd /run/training && rm -rf out && '$program' -q --device cpu --num_gpus 2 train $model \
    --max_steps 60 >log 2>&1" || fail "training failed:" "$(cat "$root/run/training/log")"
  train_seconds=$(calc %.1f "$(date +%s.%N) - $start")
  losses=$(sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' "$root/run/training/out/metrics.jsonl")
  first=$(echo "$losses" | head -n 1)
  last=$(echo "$losses" | tail -n 1)
  [ "$(calc %d "$last < $first - 0.5")" = 1 ] || fail "the loss does not fall:" "$losses"
  [ -s "$root/run/training/out/model.safetensors" ] || fail "there is no model"
  losses="loss $(calc %.2f "$first") to $(calc %.2f "$last")"
}

is_well() {
  inside "cd /run/training && '$1' doctor >doctor 2>&1" ||
    fail "dstrain doctor finds a problem:" "$(cat "$root/run/training/doctor")"
}

# The same package as of version 0.0.9, with a file that later ones lack.
make_older() {
  local tree=$work/older file=$1
  rm -rf "$tree" && dpkg-deb --raw-extract "$file" "$tree"
  sed -i "s/$version/$older/g" "$tree/DEBIAN/control"
  mkdir -p "$tree/usr/share/doc/$(basename "$file" | sed 's/_.*//')"
  touch "$tree/usr/share/doc/$(basename "$file" | sed 's/_.*//')/of_an_older_version"
  dpkg-deb --build --root-owner-group "$tree" "$root/packages/older" >/dev/null
}

debian_packages() {
  local start seconds said lists download file build_id
  fresh_root
  version=$(dpkg-deb --field "$root"/packages/dstrain_*.deb Version)
  older=0.0.9-${version#*-}
  list_files before

  # From nothing to a falling loss.
  start=$(date +%s.%N)
  lists=$(inside "apt-get update" | sed -n 's/^Fetched \(.*\) in .*/\1/p')
  said=$(inside "export DEBIAN_FRONTEND=noninteractive; apt-get -o Dpkg::Use-Pty=0 install -y \
    --no-install-recommends /packages/dstrain_*.deb /packages/libdstrain[0-9]_*.deb" 2>&1) ||
    fail "apt-get install failed:" "$said"
  seconds=$(calc %.1f "$(date +%s.%N) - $start")
  row "apt-get update, install" "$seconds s"
  echo "$said" | grep -E '^(Need to get|After this operation|  Download size|  Space needed)' |
    while IFS= read -r line; do echo "   $line"; done || true
  download=$(du -cb "$root"/var/cache/apt/archives/*.deb | tail -n 1 | cut -f 1)
  row "downloaded dependencies" "$(calc %.1f "$download / 1000000") MB"
  row "downloaded package lists" "$lists"
  row "dstrain and libdstrain" "$(calc %.1f "$(cat "$root"/packages/dstrain_*.deb \
    "$root"/packages/libdstrain[0-9]_*.deb | wc -c) / 1000000") MB"
  trains dstrain
  row "60 steps on 2 ranks" "$train_seconds s, $losses"
  row "from nothing to that" "$(calc %.1f "$(date +%s.%N) - $start") s"
  is_well dstrain
  row "dstrain doctor" "no problem"
  inside "cd /run/training && bash -c '. /usr/share/bash-completion/completions/dstrain &&
    complete -p dstrain' >completion" || fail "bash does not complete"
  inside "! ldd /usr/bin/dstrain /usr/bin/dstraind | grep 'not found'"

  build_id=$(inside "$install binutils file >/dev/null; \
    readelf --notes /usr/lib/*/dstrain/libdstrain_core.so" | sed -n 's/.*Build ID: //p')
  inside "$apt purge -y binutils file >/dev/null; $install /packages/libdstrain0-dbgsym_*.deb \
    >/dev/null && $apt autoremove --purge -y >/dev/null"
  [ -s "$root/usr/lib/debug/.build-id/${build_id:0:2}/${build_id:2}.debug" ] ||
    fail "libdstrain0-dbgsym lacks the debug information of libdstrain_core.so"
  row "libdstrain0-dbgsym" "matches by build id"
  inside "$apt purge -y '*dstrain*' >/dev/null && $apt autoremove --purge -y >/dev/null"
  rm -rf "$root/run/training" && mkdir "$root/run/training"
  check_nothing_left "purge"

  # From an older version, with which the new one must not mix.
  mkdir "$root/packages/older"
  for file in "$root"/packages/{dstrain,libdstrain0}_*.deb; do make_older "$file"; done
  inside "$install /packages/older/*.deb >/dev/null"
  [ -n "$(find "$root/usr" -name of_an_older_version)" ] || fail "the older version is not there"
  inside "$install /packages/dstrain_*.deb /packages/libdstrain0_*.deb >/dev/null" ||
    fail "the upgrade failed"
  [ -z "$(find "$root/usr" -name of_an_older_version)" ] || fail "the upgrade leaves old files"
  trains dstrain
  row "upgrade from $older" "trains"
  if inside "apt-get --simulate install --allow-downgrades /packages/dstrain_*.deb \
    /packages/older/libdstrain0_*.deb" >"$work/mix" 2>&1; then
    fail "libdstrain0 of another version is accepted"
  fi
  grep -q "dstrain : Depends: libdstrain0 (= $version)" "$work/mix" || fail "$(cat "$work/mix")"
  row "libdstrain0 of another version" "refused"
  inside "$apt purge -y '*dstrain*' >/dev/null && $apt autoremove --purge -y >/dev/null"
  rm -rf "$root/run/training" && mkdir "$root/run/training"
  check_nothing_left "purge after the upgrade"

  # Programs of one's own, then the packages for MPI and GPUs.
  inside "$install /packages/{dstrain,libdstrain0,libdstrain-dev}_*.deb g++ make cmake pkgconf \
    >/dev/null"
  inside "cd /run/training && { cmake -S /usr/share/doc/libdstrain-dev/examples/library -B build &&
    cmake --build build --parallel; } >log 2>&1" ||
    fail "the examples do not build:" "$(cat "$root/run/training/log")"
  echo '{"train_batch_size": 4, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}' \
    >"$root/run/training/ds.json"
  inside "cd /run/training && dstrain -q --num_gpus 2 build/trainer ds.json \
    /usr/share/common-licenses/GPL-3 own 3 >log 2>&1 && grep -q 'step 3 loss' log &&
    pkg-config --exists dstrain" || fail "$(cat "$root/run/training/log")"
  row "libdstrain-dev: examples/library" "built, trains on 2 ranks"
  inside "$install /packages/dstrain-openmpi_*.deb openmpi-bin >/dev/null; cd /run/training
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun -np 2 --oversubscribe env DSTRAIN_COMM=mpi dstraind train $model --max_steps 20" \
    >"$work/mpi" 2>&1 || fail "with OpenMPI:" "$(cat "$work/mpi")"
  is_well dstrain
  row "dstrain-openmpi, openmpi-bin" "trains through MPI, doctor finds no problem"
  if compgen -G "$root/packages/dstrain-cuda_*.deb" >/dev/null; then
    inside "$install /packages/dstrain-cuda_*.deb >/dev/null" || fail "dstrain-cuda"
    is_well dstrain
    row "dstrain-cuda, no GPU" "doctor finds no problem"
  fi
  inside "$apt purge -y '*dstrain*' >/dev/null"
  [ -z "$(find "$root/usr" "$root/etc" -name '*dstrain*')" ] || fail "purge leaves files"
}

tarball() {
  local file name program
  fresh_root
  list_files before
  file=$(find "$root/packages" -name 'dstrain-*.tar.gz' ! -name '*-debug.tar.gz')
  name=$(basename "$file" .tar.gz)
  mkdir "$root/run/training/moved to"
  tar --extract --file "$file" -C "$root/run/training/moved to"
  program="/run/training/moved to/$name/bin/dstrain"
  local newest=0
  while IFS= read -r symbol; do
    newest=$(printf '%s\n' "$newest" "${symbol#GLIBC_}" | sort -V | tail -n 1)
  done < <(find "$root/run/training" -type f -exec objdump -T {} + 2>/dev/null |
    grep -o 'GLIBC_2[.0-9]*' | sort -u)
  [ "$release" != bookworm ] || [ "$newest" = 2.34 ] ||
    fail "the tarball needs glibc $newest, and its documentation says 2.34"
  row "tarball" "$(calc %.1f "$(stat --format %s "$file") / 1000000") MB, \
$(du -sm "$root/run/training" | cut -f 1) MB unpacked, needs glibc $newest"
  inside "cd '/run/training/moved to/$name' && ! ldd bin/* lib/libdstrain.so \
    lib/dstrain/libdstrain_{core,tokenizers,decompress,ssh,stacks}.so | grep 'not found'" ||
    fail "the tarball lacks libraries"
  trains "$program"
  row "tarball: 60 steps on 2 ranks" "$train_seconds s, $losses"
  is_well "$program"
  row "tarball: dstrain doctor" "no problem"
  rm -rf "$root/run/training" && mkdir "$root/run/training"
  check_nothing_left "tarball removed"
}

make_packages() {
  root=$work/builder
  cp -a "$base" "$root"
  copy_network_settings
  install_git && clone
  inside "cd /root/dstrain && .ci/package.sh" >"$work/packages.log" 2>&1 ||
    fail "$(tail -n 40 "$work/packages.log")"
  grep ' MB  ' "$work/packages.log"
  packages=$work/packages
  cp -r "$root/root/dstrain/build/package/packages" "$packages"
  rm -rf --one-file-system "$root"
  root=$work/root
}

make_base "$base"
[ -n "$packages" ] || make_packages
[ "$only_tarball" = yes ] || debian_packages
tarball
printf '\n%s, %d cores\n' "$release" "$(nproc)"
printf '%s\n' "${rows[@]}"
