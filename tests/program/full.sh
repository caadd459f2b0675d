#!/usr/bin/env bash
# A full disk, for real: full.sh FULL HOLDFAST SCRATCH. Needs a filesystem of its own, so a mount namespace, as root or as a user
# that may make one; where neither works the test is skipped, in the words that ./dev counts.
set -euo pipefail
full=$1 holdfast=$2 scratch=$3

if [[ ${HF_MOUNTED:-} != yes ]]; then
    rm -rf "$scratch"
    mkdir -p "$scratch"
    for flags in -m -rm; do
        if unshare $flags mount -t tmpfs -o size=64k none "$scratch" 2>/dev/null; then
            HF_MOUNTED=yes exec unshare $flags "$0" "$@"
        fi
    done
    echo "[  SKIPPED ] full_disk: no filesystem can be mounted here"
    exit 0
fi

mount -t tmpfs -o size=4m none "$scratch"
timeout 100 "$full" "$scratch"
"$holdfast" db check --deep "$scratch/x.db"

# The tools write nothing, so they need no room; what they are asked to write they refuse, and take back.
dd if=/dev/zero of="$scratch/ballast" bs=1k status=none 2>/dev/null || true
"$holdfast" db check "$scratch/x.db"
if out=$("$holdfast" db backup "$scratch/x.db" "$scratch/copy.db" 2>&1); then
    echo "FAILED: a backup was made where there is no room"
    exit 1
fi
echo "$out"
[[ $out == *"disk is full"* && $out == *"make room"* ]] || exit 1
[[ ! -e $scratch/copy.db ]] || exit 1
echo "a full disk loses nothing"

# The space of deleted runs is given back with little room for the log.
rm "$scratch/ballast"
mount -o remount,size=16m "$scratch"
"$holdfast" list "$scratch/x.db" --json --limit 100 >"$scratch/last.json" # they stay, and lie at the end of the file
last=$(grep -o '"startTime":"[^"]*"' "$scratch/last.json" | tail -1 | cut -d'"' -f4)
"$holdfast" batch start "$scratch/x.db" most delete "StartTime < '$last'"
"$holdfast" db stats "$scratch/x.db"
before=$(stat -c %s "$scratch/x.db")
dd if=/dev/zero of="$scratch/ballast" bs=1k status=none 2>/dev/null || true
truncate -s -128k "$scratch/ballast"
"$holdfast" db shrink "$scratch/x.db"
(($(stat -c %s "$scratch/x.db") * 2 < before)) || { echo "FAILED: the file has not become smaller"; exit 1; }
"$holdfast" db check --deep "$scratch/x.db"
