#!/usr/bin/env bash
# `./dev bench kept`: lists, retention, batches, deletions and streams, each figure with its bar.
#
#   bench/kept.sh BUILD_DIR [--quick] [--dir DIR] [FILTER]
#
# BUILD_DIR is a release build with the target `benches`. FILTER is a regular expression on the cells: million, retire, batch, delete, append,
# readers@100, readers@1000. --quick: a tenth of the runs. --dir: where the files go (a real disk, please; the build tree unless said). A cell takes up
# to three minutes. A row without a bar is only printed; one that misses its bar ends in SHORT.
# The exit code says only whether something could be measured, never how fast it was.
set -euo pipefail
export LC_ALL=C

quick=1 filter=. build_dir='' dir=''
while (($# > 0)); do
    case $1 in
    --quick) quick=10 ;;
    --dir) dir=$2 && shift ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 0 ;;
    -*) echo "kept.sh: unknown option $1" >&2 && exit 2 ;;
    *) if [[ -z $build_dir ]]; then build_dir=$1; else filter=$1; fi ;;
    esac
    shift
done
if [[ -z $build_dir || ! -x $build_dir/bench/engine || ! -x $build_dir/bench/streams ]]; then
    echo "kept.sh: no benchmarks in '$build_dir'; build the target 'benches' first (./dev bench does)" >&2
    exit 2
fi
programs=$(cd "$build_dir/bench" && pwd)
data=$(mktemp -d "${dir:-$programs}/kept_data.XXXXXX")
trap 'rm -rf "$data"' EXIT
measured=0

# cell ID PROGRAM ARGS...: its figures, if the filter wants it.
cell()
{
    local id=$1
    shift
    [[ $id =~ $filter ]] || return 0
    printf '%s\n' "$id"
    measured=1
    { timeout 600 "$@" 2>"$data/err" || printf '  failed: %s\n' "$(tail -n 1 "$data/err")" >&2; } |
    awk -F'\t' '
        NF == 2 && $1 ~ /^bar_/ { bar[substr($1, 5)] = $2; next }
        NF == 2 { names[++count] = $1; value[$1] = $2 }
        END {
            for (i = 1; i <= count; i++) {
                n = names[i]
                printf "  %-26s %14.3f", n, value[n]
                if (n in bar) printf("   at most %8.1f%s", bar[n], (value[n] > bar[n] * 1.0001 ? "  SHORT" : ""))
                printf "\n"
            }
        }'
}

cell million "$programs/engine" ended $((1000000 / quick)) --dir "$data"
cell retire "$programs/engine" retire $((100000 / quick)) --dir "$data"
cell batch "$programs/engine" batch $((100000 / quick)) --dir "$data"
cell delete "$programs/engine" delete $((20000 / quick)) --dir "$data"
cell append "$programs/streams" append $((20000 / quick)) "$data"
cell readers@100 "$programs/streams" readers 100 1000 "$data"
cell readers@1000 "$programs/streams" readers 1000 100 "$data"
((measured)) || { echo "kept.sh: no cell is called '$filter'" >&2 && exit 1; }
