#!/usr/bin/env bash
# Histories that Temporal servers wrote and its Rust core keeps as tests, read by our codec: fetched from npm once, kept in
# the build tree, given to the program file by file.
#     histories.sh <program> <scratch folder>
set -euo pipefail
program=$1 scratch=$2
package=@temporalio/core-bridge
version=1.24.0
mkdir -p "$scratch"
cd "$scratch"

archive=$(find . -maxdepth 1 -name 'temporalio-core-bridge-*.tgz' | sort | head -n 1)
if [[ -z $archive ]]; then
    npm pack --silent "$package@$version" >/dev/null || npm pack --silent "$package" >/dev/null
    archive=$(find . -maxdepth 1 -name 'temporalio-core-bridge-*.tgz' | sort | head -n 1)
fi
if [[ ! -d histories ]]; then
    rm -rf unpacked
    mkdir unpacked
    tar -xzf "$archive" -C unpacked --wildcards '*/tests/histories/*'
    mkdir -p fresh
    find unpacked -type f \( -path '*/histories/*.bin' -o -path '*/histories/*.json' \) -exec cp {} fresh/ \;
    rm -rf unpacked
    mv fresh histories # only a complete folder gets the name
fi

mapfile -t files < <(find histories -type f | sort)
if ((${#files[@]} == 0)); then
    echo "FAILED: $archive holds no histories"
    exit 1
fi
echo "$archive: ${#files[@]} histories"
exec "$program" "${files[@]}"
