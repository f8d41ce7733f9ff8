# Shared by the scripts that fetch what the tests need; to be sourced by bash.
#
# Everything that no package manager installs goes under one cache folder
# outside the clone. An install is made in a temporary folder and renamed when
# it is complete, so a folder of the final name is always whole.

cache_dir() {
  printf '%s\n' "${THINKFLOW_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/thinkflow-test}"
}

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# as_root CMD...: runs it as root, or fails when that needs a password.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# apt_install PACKAGE...: quietly; the index is fetched only when a package is unknown.
apt_install() {
  have apt-get || return 1
  local log package
  log=$(mktemp)
  for package in "$@"; do
    if ! apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [0-9]'; then
      as_root apt-get update >"$log" 2>&1 || { tail -5 "$log" >&2; rm -f "$log"; return 1; }
      break
    fi
  done
  if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >"$log" 2>&1; then
    # An index that has gone stale names files that are gone: once more with a new one.
    as_root apt-get update >>"$log" 2>&1 || true
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >>"$log" 2>&1; then
      tail -15 "$log" >&2
      rm -f "$log"
      return 1
    fi
  fi
  rm -f "$log"
}

# install_into NAME FUNCTION: makes $(cache_dir)/NAME by calling FUNCTION with an
# empty temporary folder, unless it is there already. Two at once wait for each
# other; what a killed one left behind is removed.
install_into() {
  local name=$1 build=$2 cache target tmp
  cache=$(cache_dir)
  target=$cache/$name
  [ -e "$target/.complete" ] && return 0
  mkdir -p "$cache"
  if have flock; then
    exec 9>"$cache/.$name.lock"
    flock 9
    [ -e "$target/.complete" ] && { exec 9>&-; return 0; }
    rm -rf "$cache/.$name".tmp.*
  fi
  tmp=$(mktemp -d "$cache/.$name.tmp.XXXXXX")
  # Not in a condition: there bash would ignore "set -e" inside the function.
  "$build" "$tmp"
  touch "$tmp/.complete"
  rm -rf "$target"
  mv "$tmp" "$target"
  if have flock; then exec 9>&-; fi
}

# where NAME LAUNCHER: prints the launcher's path if the install is there, else fails.
where() {
  local target
  target=$(cache_dir)/$1
  [ -e "$target/.complete" ] && printf '%s\n' "$target/$2"
}

# run_logged LOG CMD...: the output goes to LOG; its end is shown when CMD fails.
run_logged() {
  local log=$1
  shift
  if ! "$@" >>"$log" 2>&1; then
    tail -20 "$log" >&2
    die "failed: $*"
  fi
}
