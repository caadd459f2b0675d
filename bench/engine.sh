#!/usr/bin/env bash
# `./dev bench engine`: the engine under a scripted worker, beside what SQLite alone can do, all measured in this run.
#
#   bench/engine.sh BUILD_DIR [--quick] [--direct] [--dir DIR] [--idle N] [--json] [FILTER]
#
# BUILD_DIR is a release build with the target `benches`. FILTER is a regular expression on the cells' ids (w1@128, w4, load,
# reopen, idle, update@1, gap). --direct plays the worker on the engine's own thread. --dir: where the files go (a real disk, please; the
# build tree unless said). --idle N: so many open runs in one file (1,000,000; 20,000 with --quick), and half as many families.
# The exit code says only whether something could be measured, never how fast it was.
set -euo pipefail
export LC_ALL=C

usage() {
    sed -n '2,9s/^# \{0,1\}//p' "$0"
}

quick=0 json=0 filter=. build_dir= dir= idle= direct=()
while (($# > 0)); do
    case $1 in
        --quick) quick=1 ;;
        --json) json=1 ;;
        --direct) direct=(--direct) ;;
        --dir) dir=$2; shift ;;
        --idle) idle=$2; shift ;;
        -h | --help) usage; exit 0 ;;
        -*) echo "engine.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
        *) if [[ -z $build_dir ]]; then build_dir=$1; else filter=$1; fi ;;
    esac
    shift
done
if [[ -z $build_dir || ! -x $build_dir/bench/engine ]]; then
    echo "engine.sh: no $build_dir/bench/engine; build the target 'benches' first (./dev bench does)" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "$build_dir/bench" && pwd)
rounds=3 seconds=5 limit_seconds=1 parked=100000 loads=50000 run_timeout=1800
if ((quick)); then
    rounds=1 seconds=1 limit_seconds=0.5 parked=20000 loads=20000
fi
idle=${idle:-$((quick ? 20000 : 1000000))}
idle_memory=(--mem $((16 << 20)) --cache $((8 << 20)) --journal $((8 << 20))) # 48 MiB as hf_open splits it, with room

data=$(mktemp -d "${dir:-$programs}/engine_data.XXXXXX")
trap 'rm -rf "$data"' EXIT
samples=$data/samples errors=$data/errors
: >"$samples"
: >"$errors"

note() {
    if [[ -t 2 ]]; then
        printf '\r\033[K%s' "$*" >&2
    fi
}

# sample ID PROGRAM ARGS...: appends "id<TAB>metric<TAB>value". What a program printed before it failed still counts.
sample() {
    local id=$1 code=0
    shift
    note "$id"
    { timeout "$run_timeout" "$@" >"$data/out" 2>"$data/err" || code=$?; } 2>/dev/null
    if ((code != 0)); then
        printf '%s: exit code %d: %s\n' "$id" "$code" "$(tail -n 1 "$data/err")" >>"$errors"
    fi
    awk -v id="$id" 'NF == 2 { print id "\t" $0 }' "$data/out" >>"$samples"
}

# cell ID ARGS...: one sample, if the filter wants it.
cell() {
    local id=$1
    shift
    if [[ $id =~ $filter ]]; then
        sample "$id" "$programs/engine" "$@" --dir "$data" "${direct[@]}"
    fi
}

# Units per second by layout and units per commit: "limit<TAB>batch/100<TAB>44000".
limits() {
    note "what SQLite can do"
    timeout "$run_timeout" "$programs/limit_sqlite" "$data" "$limit_seconds" 4096 unit 2>>"$errors" |
        awk '/sync=FULL/ && match($1, /^unit\/(batch|group)/) {
                 layout = substr($1, 6, 5)
                 sub(/.*group=/, "")
                 print "limit\t" layout "/" $1 "\t" $2
             }' >>"$samples"
}

for ((round = 0; round < rounds; round++)); do
    limits # twice a round: the disk of a shared machine is not the same from one minute to the next
    for shape in w1 w2 w3; do
        for count in 1 16 128 1024; do
            cell "$shape@$count" "$shape" "$count" --seconds "$seconds"
        done
    done
    limits
    cell w4 w4 "$parked"
    cell w5 w5 10000
    cell w5/durable w5 10000 --patient
    cell load load "$loads"
    cell reopen reopen 8
    for count in 1 16 128; do
        cell "update@$count" update "$count" --seconds "$seconds"
        cell "child@$count" child "$count" --seconds "$seconds"
    done
    for count in 1 128; do
        cell "released@$count" released "$count" --seconds "$seconds"
        cell "query@$count" query "$count" --seconds "$seconds"
    done
    cell rejected@1 rejected 1 --seconds "$seconds"
    cell busy busy 9000
    cell gap gap 16 --seconds "$seconds"
done
for count in 1000 "$idle"; do
    cell "idle@$count/make" idle_make "$count" "${idle_memory[@]}"
    cell "idle@$count" idle_use "$count" "${idle_memory[@]}"
done
families=$((idle / 2))
cell "family@$families/make" family_make "$families" "${idle_memory[@]}"
cell "family@$families" family_use "$families" "${idle_memory[@]}"
note ""

if [[ ! -s $samples ]]; then
    cat "$errors" >&2
    echo "engine.sh: nothing could be measured" >&2
    exit 1
fi
awk -f "$here/engine.awk" -v json="$json" "$samples"
if [[ -s $errors ]]; then
    echo
    sed 's/^/failed: /' "$errors"
fi
