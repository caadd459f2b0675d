#!/usr/bin/env bash
# A build without temporal:// can be configured, tests and all; its library needs neither HTTP/2 nor TLS, and says what it lacks.
#     alone.sh <cmake> <source tree> <compiler> <alone program> <library> <scratch folder>
set -euo pipefail
cmake=$1 tree=$2 compiler=$3 program=$4 library=$5 scratch=$6
rm -rf "$scratch"
mkdir -p "$scratch"
if ! "$cmake" -S "$tree" -B "$scratch" -G Ninja -DCMAKE_C_COMPILER="$compiler" -DHF_WITH_REMOTE=OFF >"$scratch/log" 2>&1; then
    cat "$scratch/log"
    exit 1
fi
if grep -qE '(unit_remote_|sim_remote_sim|through_)' "$scratch/build.ninja"; then
    echo "FAILED: the build has tests of the layer that it leaves out"
    exit 1
fi
"$tree/tools/check_needed.sh" "$library" "$scratch/holdfast.pc" 0
"$program"
