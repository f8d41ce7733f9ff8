#!/bin/bash
# get-neovim.sh [--where] [SUITE]: puts the Neovim of a Debian suite into the test
# cache and prints the path of its launcher. The suite is trixie, which has Neovim
# 0.10.4, the version that the tests are for; sid has the newest. With --where
# nothing is installed: the exit code says whether it is there.
#
# The packages of Debian 13 are unpacked next to their own C library, not
# installed: the host keeps its packages, and an older Debian can run them. The
# mirror and the keys are the host's own.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/editors/common.sh"

only_where=
[ "${1:-}" = --where ] && { only_where=1; shift; }
suite=${1:-trixie}
name=neovim-$suite
if [ -n "$only_where" ]; then
  where "$name" nvim
  exit
fi

build() {
  local dir=$1 state=$1/.apt log=$1/.apt/log mirror
  have apt-get && have dpkg-deb || die "no apt here: install Neovim 0.10 or newer and set THINKFLOW_NVIM to it"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/\?$' | grep -v security | sort -u | head -1 || true)
  [ -n "$mirror" ] || die "no Debian mirror among the apt sources: install Neovim 0.10 or newer and set THINKFLOW_NVIM to it"
  mkdir -p "$state"/lists/partial "$state"/cache/archives/partial
  : >"$state/status" # nothing counts as installed: all dependencies come along
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$state/sources.list"
  local apt=(apt-get
    -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State::Lists="$state/lists" -o Dir::State::status="$state/status"
    -o Dir::Cache="$state/cache" -o Acquire::Languages=none -o APT::Sandbox::User="$(id -un)"
    -o Debug::NoLocking=1)
  run_logged "$log" "${apt[@]}" update
  run_logged "$log" "${apt[@]}" install -y --no-install-recommends --download-only neovim
  local deb
  for deb in "$state"/cache/archives/*.deb; do
    # The packages ship /lib and /lib64 as links into /usr or as folders: keep what is there.
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir" --keep-directory-symlink --no-same-owner
  done
  rm -rf "$state"
  cat >"$dir/nvim" <<'LAUNCHER'
#!/bin/bash
# Runs the unpacked Neovim with its own C library.
root=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
lib=$(dirname "$(ls "$root"/usr/lib/*/libc.so.6 | head -1)")
loader=$(ls "$lib"/ld-linux*.so.* "$root"/lib64/ld-linux*.so.* "$root"/lib/ld-linux*.so.* 2>/dev/null | head -1)
export VIM=$root/usr/share/nvim VIMRUNTIME=$root/usr/share/nvim/runtime
export LUA_PATH="$root/usr/share/lua/5.1/?.lua;$root/usr/share/lua/5.1/?/init.lua;;"
export LUA_CPATH="$lib/lua/5.1/?.so;;"
run=("$loader" --library-path "$lib:$lib/lua/5.1" "$root/usr/bin/nvim")
parsers=$(dirname "$(ls -d "$root"/usr/lib/nvim/parser "$root"/usr/lib/*/nvim/parser 2>/dev/null | head -1)")
for argument; do
  case $argument in
    --server | --remote* | --version | -v | -l) exec "${run[@]}" "$@" ;;
    --headless | --embed | -es | -Es) exec "${run[@]}" --cmd "set runtimepath+=$parsers" "$@" ;;
  esac
done
# On a terminal Neovim starts itself once more as its own server, which does not
# work through a loader: start the server here and attach the screen to it.
folder=$(mktemp -d)
"${run[@]}" --headless --listen "$folder/s" --cmd "set runtimepath+=$parsers" "$@" </dev/null >"$folder/log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
while [ ! -S "$folder/s" ] && kill -0 "$server" 2>/dev/null; do sleep 0.02; done
"${run[@]}" --server "$folder/s" --remote-ui
LAUNCHER
  chmod +x "$dir/nvim"
  "$dir/nvim" --headless --clean -n +'lua io.stdout:write("ok " .. tostring(vim.version()) .. "\n")' +qa! 2>&1 | grep -q '^ok 0\.' ||
    die "the unpacked Neovim does not start"
}

install_into "$name" build
echo "$(cache_dir)/$name/nvim"
