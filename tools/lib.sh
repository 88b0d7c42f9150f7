# Shared by the scripts beside it. Sourced, never run.
root_dir="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

say() { printf 'workstead: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else return 126
  fi
}

installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

# Installs those of the named Debian packages that are missing; asks for root only then.
apt_install() {
  local missing=() name
  command -v dpkg-query >/dev/null || die "not Debian or Ubuntu; install by hand: $*"
  for name in "$@"; do installed "$name" || missing+=("$name"); done
  [ ${#missing[@]} = 0 ] && return 0
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || {
    say "needs root once to install: ${missing[*]} (run as root, or: apt-get install ${missing[*]})"
    return 126
  }
  say "installing ${missing[*]}"
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends \
    "${missing[@]}" >/dev/null
}

# True if the package manager could install the package.
available() { [ -n "$(apt-cache policy "$1" 2>/dev/null | grep 'Candidate:' | grep -v '(none)')" ]; }
