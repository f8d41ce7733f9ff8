#!/bin/bash
# test-deps.sh [--list]: installs what the tests need and Go does not bring, by
# package manager or into a cache folder outside the clone, and prints where it is.
#
# What cannot be installed is an error when CI=true; elsewhere it is listed, and
# the tests that need it are skipped. With --list nothing is installed.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/editors/common.sh"

list_only=
[ "${1:-}" = --list ] && list_only=1
missing=()

found() { printf '%-12s %s\n' "$1" "$2"; }

lacks() { # NAME WHAT-IT-MEANS
  missing+=("$1: $2")
}

# command_or_package COMMAND PACKAGE WHAT-IT-MEANS
command_or_package() {
  if ! have "$1" && [ -z "$list_only" ]; then
    say "installing $2"
    apt_install "$2"
  fi
  if have "$1"; then found "$1" "$(command -v "$1")"; else lacks "$1" "$3"; fi
}

# fetched NAME SCRIPT VARIABLE WHAT-IT-MEANS: VARIABLE names one that is there already.
fetched() {
  local path=${!3:-}
  if [ -z "$path" ]; then
    path=$("$here/$2" --where)
    if [ -z "$path" ] && [ -z "$list_only" ]; then
      say "fetching $1"
      path=$("$here/$2")
    fi
  fi
  if [ -n "$path" ] && [ -x "$path" ]; then found "$1" "$path"; else lacks "$1" "$4"; fi
}

a_chromium() {
  local name
  if [ -n "${THINKFLOW_CHROMIUM:-}" ]; then
    found chromium "$THINKFLOW_CHROMIUM"
    return
  fi
  for name in chromium chromium-browser google-chrome; do
    have "$name" && { found chromium "$(command -v "$name")"; return; }
  done
  [ -z "$list_only" ] && say "installing chromium" && apt_install chromium
  if have chromium; then found chromium "$(command -v chromium)"; else
    lacks chromium "the VS Code tests cannot open a window; set THINKFLOW_CHROMIUM to a Chromium or Chrome"
  fi
}

# The race detector needs cgo, and that a C compiler with the headers of its library.
a_compiler() {
  if ! have cc && ! have gcc && [ -z "$list_only" ]; then
    say "installing gcc"
    apt_install gcc libc6-dev
  fi
  if have cc; then found cc "$(command -v cc)"; elif have gcc; then found gcc "$(command -v gcc)"; else
    lacks cc "no race detector: use make test-go"
  fi
}

# The extension's own build tools, pinned by its package-lock.json.
extension_modules() {
  local dir=$here/../editors/vscode
  [ -f "$dir/package.json" ] || return 0
  if ! cmp -s "$dir/package-lock.json" "$dir/node_modules/.installed-lock" && [ -z "$list_only" ]; then
    say "npm ci in editors/vscode"
    (cd "$dir" && npm ci --ignore-scripts --no-fund --no-audit --no-update-notifier --loglevel=error >&2) &&
      cp "$dir/package-lock.json" "$dir/node_modules/.installed-lock"
  fi
  if cmp -s "$dir/package-lock.json" "$dir/node_modules/.installed-lock"; then
    found npm-modules "$(cd "$dir" && pwd)/node_modules"
  else
    lacks npm-modules "the VS Code extension cannot be built"
  fi
}

a_compiler
command_or_package git git "tests that look at repositories are skipped"
[ "$(uname -s)" = Linux ] && command_or_package bwrap bubblewrap "the stronger sandbox is not tested"
command_or_package tmux tmux "terminal programs cannot be looked at"
command_or_package npm npm "no VS Code"
fetched neovim get-neovim.sh THINKFLOW_NVIM "the Neovim tests are skipped; set THINKFLOW_NVIM to Neovim 0.10 or newer"
fetched vscode get-vscode.sh THINKFLOW_CODE_SERVER "the VS Code tests are skipped"
a_chromium
extension_modules

if [ ${#missing[@]} -gt 0 ]; then
  say ""
  say "MISSING, so not everything will be tested:"
  printf '  %s\n' "${missing[@]}" >&2
  [ "${CI:-}" = true ] && die "with CI=true all of it must be there"
fi
exit 0
