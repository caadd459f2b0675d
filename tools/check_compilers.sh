#!/usr/bin/env bash
# The library compiles without warnings with gcc and with clang: this checks the compiler that the build tree does not use.
#     check_compilers.sh <source tree> <build tree> <id of the build's compiler: GNU or Clang>
set -euo pipefail
source=$1 build=$2 used=$3
mapfile -t warnings <"$build/warnings.txt"
mapfile -t system <"$build/system_includes.txt" # headers of others that lie elsewhere
system=("${system[@]/#/-isystem}")
failed=0
for cc in gcc clang; do
    if [[ ($cc == gcc && $used == GNU) || ($cc == clang && $used == Clang) ]]; then
        continue
    fi
    if ! command -v "$cc" >/dev/null; then
        echo "FAILED: $cc is not installed"
        failed=1
        continue
    fi
    while IFS=$'\t' read -r layer _; do
        mapfile -t files < <(find "$source/src/$layer" -name '*.c' | sort)
        ((${#files[@]} > 0)) || continue
        if "$cc" -std=c17 -D_GNU_SOURCE -DHF_SWITCH_FPU=0 -O2 -fsyntax-only -pthread "${warnings[@]}" -Werror \
            -I"$build/layers/$layer" -I"$source/include" "${system[@]}" "${files[@]}"; then
            echo "$cc: $layer: ${#files[@]} files clean"
        else
            failed=1
        fi
    done <"$build/layers.txt"
done
exit $failed
