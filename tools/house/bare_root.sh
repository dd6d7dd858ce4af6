#!/usr/bin/env bash
# Runs a command of this repository on a bare system: a minimal Debian or Ubuntu in a folder, a
# clean clone of HEAD inside it, and nothing else. It shows whether `dev` installs all it needs.
#
#   sudo tools/house/bare_root.sh                              # ./dev demo on this machine's suite
#   sudo tools/house/bare_root.sh --suite bookworm ./dev test  # any command, run in the clone
#   sudo tools/house/bare_root.sh --as-user ./dev demo         # a user without sudo: must exit 3
#
# The network is reached the way this machine reaches it: its apt mirror and proxy, its resolver,
# its certificates. The folder is kept, so the next run starts from what is installed in it; --fresh
# starts from the bare system again (a copy is kept beside it, so nothing is fetched for that).
# shellcheck disable=SC1091,SC2016  # os-release is not here to read; single quotes are meant
set -euo pipefail

usage() {
  sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//;p}' "$0"
  cat <<'TEXT'
Options, before the command:
  --suite NAME     bookworm, noble, ... (default: this machine's own)
  --mirror URL     default: the one that this machine's apt uses for the suite
  --root DIR       default: $TMPDIR/octet-root-SUITE
  --fresh          throw the folder away and start from the bare system again
  --prepare        make the bare system only; run nothing
  --worktree       copy the working tree (tracked, and untracked but not ignored), not HEAD
  --tarball        copy HEAD without its history (no .git)
  --as-user        run as a user who is not root and has no sudo
TEXT
}

say() { printf 'bare_root: %s\n' "$*"; }
fail() {
  say "$*" >&2
  exit 2
}

suite='' mirror='' root='' fresh=no prepare=no source=clone as_user=no
while [ $# -gt 0 ]; do
  case "$1" in
    --suite) suite=${2:?--suite needs a name} && shift 2 ;;
    --mirror) mirror=${2:?--mirror needs an address} && shift 2 ;;
    --root) root=${2:?--root needs a folder} && shift 2 ;;
    --fresh) fresh=yes && shift ;;
    --prepare) prepare=yes && shift ;;
    --worktree) source=worktree && shift ;;
    --tarball) source=tarball && shift ;;
    --as-user) as_user=yes && shift ;;
    -h | --help) usage && exit 0 ;;
    -*) usage >&2 && exit 2 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || set -- ./dev demo

[ "$(id -u)" = 0 ] || fail "must be root (debootstrap and chroot need it)"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
top=$(cd "$(dirname "$0")/../.." && pwd)
suite=${suite:-$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:?}")}
root=${root:-${TMPDIR:-/tmp}/octet-root-$suite}
bare=$root.bare.tar

# --- The bare system -----------------------------------------------------------------------------

make_bare_system() {
  if [ -z "$mirror" ]; then
    mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
      awk -v suite="$suite" '$1 == suite { print $2; exit }')
    [ -n "$mirror" ] || fail "apt here has no mirror for '$suite': name one with --mirror URL"
  fi
  local components=main
  case "$mirror" in *ubuntu*) components=main,universe ;; esac
  say "making a bare $suite in $root"
  mkdir -p "$root"
  debootstrap --variant=minbase --components="$components" "$suite" "$root" "$mirror"
  rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/archives/*.deb # as on a fresh image
  tar -C "$root" -cf "$bare.part" . && mv "$bare.part" "$bare"
}

# Lets apt, pip and git inside reach what they reach out here. No address is written in this file.
copy_network_settings() {
  cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
  apt-config dump | grep -E '^Acquire::(.*[Pp]roxy|Check-|http|https)' \
    >"$root/etc/apt/apt.conf.d/90-as-outside" || true
  local name outside=/etc/ssl/certs/ca-certificates.crt inside=/etc/ssl/certs/as-outside.pem
  environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
  for name in CI TERM http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY \
    PIP_INDEX_URL OCTET_CUDA OCTET_JOBS; do
    [ -z "${!name:-}" ] || environment+=("$name=${!name}")
  done
  [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
  if [ -f "$outside" ]; then # under a name that the package ca-certificates leaves alone
    install -D -m 644 "$outside" "$root$inside"
    environment+=("PIP_CERT=$inside" "SSL_CERT_FILE=$inside")
  fi
}

copy_source() {
  local to=$root/srv/octet
  rm -rf "$to"
  case "$source" in
    clone) git clone --quiet --no-hardlinks "$top" "$to" ;;
    tarball) mkdir -p "$to" && git -C "$top" archive HEAD | tar -x -C "$to" ;;
    worktree)
      mkdir -p "$to"
      git -C "$top" ls-files -z --cached --others --exclude-standard |
        (cd "$top" && tar -c --null --no-recursion --ignore-failed-read -T -) | tar -x -C "$to"
      ;;
  esac
  chroot "$root" chown -R "$user" /srv/octet
}

[ $fresh = no ] || rm -rf --one-file-system "$root"
if [ ! -e "$root/etc/os-release" ]; then
  if [ -e "$bare" ]; then
    mkdir -p "$root" && tar -C "$root" -xf "$bare"
  else
    make_bare_system
  fi
fi
say "$(. "$root/etc/os-release" && printf '%s' "$PRETTY_NAME") in $root"
[ $prepare = no ] || exit 0

# --- The run -------------------------------------------------------------------------------------

user=root home=/root
if [ $as_user = yes ]; then
  user=newcomer home=/home/newcomer
  chroot "$root" id "$user" >/dev/null 2>&1 || chroot "$root" useradd --create-home "$user"
fi
copy_network_settings
copy_source

# The mounts live in a mount namespace of their own: they are gone when the command ends, however.
inside='cd /srv/octet && exec "$@"'
enter='mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmp "$0/tmp" &&
  exec chroot "$@"'
say "$* (as $user)"
start=$SECONDS
status=0
unshare --mount --propagation private bash -c "$enter" "$root" --userspec="$user" "$root" \
  env -i "${environment[@]}" HOME="$home" USER="$user" bash -c "$inside" bash "$@" </dev/null ||
  status=$?
say "$* ended with $status after $((SECONDS - start)) s"
exit "$status"
