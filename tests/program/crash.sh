#!/usr/bin/env bash
# Code that crashes beside code that does not, and what the tools say of it: crash.sh CRASH HOLDFAST SCRATCH.
set -euo pipefail
crash=$1 holdfast=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
"$crash" "$scratch"
"$holdfast" db check --deep "$scratch/crash.db"
for run in bad bad_part; do
    out=$("$holdfast" show "$scratch/crash.db" $run 2>/dev/null)
    echo "$out"
    [[ $out == *"$run  Running for"* && $out =~ the\ program\ ended\ [1-9][0-9]*\ times?\ in\ a\ row ]] || exit 1
done
out=$("$holdfast" show "$scratch/crash.db" good-7 2>/dev/null)
[[ $out == *"good  Completed"* ]] || exit 1
