#!/usr/bin/env bash
# `./dev bench pairs COMMIT`: this tree against an older one, their programs in turns.
#
#   bench/pairs.sh NEW_BUILD_DIR OLD_BUILD_DIR [--pairs N] [--seconds S] [--dir DIR] [FILTER]
#
# Both are release builds with the target `benches`. Each cell is played old, new, old, N times over (10), S seconds each (2). The
# table has the medians of the old and the new build and their ratio. The noise is what the same comparison finds between the old
# build and itself: the quarter of the pairs' ratios that lies furthest off is left out. A difference that is not larger than the
# noise means nothing. Cells that one of the builds does not know are left out. FILTER is a regular expression on the cells: w1@128, w4,
# worker@16, fork_join ...
# The exit code says only whether something could be measured, never how fast it was.
set -euo pipefail
export LC_ALL=C

pairs=10 seconds=2 dir='' filter=. builds=()
while (($# > 0)); do
    case $1 in
    --pairs) pairs=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --dir) dir=$2 && shift ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0" && exit 0 ;;
    -*) echo "pairs.sh: unknown option $1" >&2 && exit 2 ;;
    *) if ((${#builds[@]} < 2)); then builds+=("$1"); else filter=$1; fi ;;
    esac
    shift
done
for build in "${builds[@]:-}"; do
    [[ -x $build/bench/engine && -x $build/bench/workflows && -x $build/bench/fibers ]] ||
        { echo "pairs.sh: '$build' has no benchmarks; build the target 'benches' first (./dev bench pairs does)" >&2 && exit 2; }
done
((${#builds[@]} == 2)) || { echo "pairs.sh: which two builds?" >&2 && exit 2; }
new=$(cd "${builds[0]}/bench" && pwd) old=$(cd "${builds[1]}/bench" && pwd)

data=$(mktemp -d "${dir:-$new}/pairs_data.XXXXXX")
trap 'rm -rf "$data"' EXIT
: >"$data/samples"
: >"$data/errors"

# sample SIDE CELL PROGRAM ARGS...: appends "cell<TAB>side<TAB>pair<TAB>metric<TAB>value".
sample()
{
    local side=$1 cell=$2 code=0
    shift 2
    { timeout 300 "$@" >"$data/out" 2>"$data/err" || code=$?; } 2>/dev/null
    ((code == 0)) || printf '%s, %s: exit code %d: %s\n' "$cell" "$side" "$code" "$(tail -n 1 "$data/err")" >>"$data/errors"
    awk -v head="$cell"$'\t'"$side"$'\t'"$pair" 'NF == 2 { print head "\t" $1 "\t" $2 }' "$data/out" >>"$data/samples"
}

# knows MODE: both builds' engines have this cell. Without arguments they say which they have.
knows()
{
    local side
    for side in "$old" "$new"; do
        { "$side/engine" 2>&1 || true; } | tr -c 'a-z0-9_' '\n' | grep -x -- "$1" >/dev/null || return 1
    done
}

# cell ID PROGRAM ARGS...: one pair of it, if the filter wants it.
cell()
{
    local id=$1 program=$2
    shift 2
    [[ $id =~ $filter ]] || return 0
    [[ ! -t 2 ]] || printf '\r\033[Kpair %d of %d: %s' "$pair" "$pairs" "$id" >&2
    sample old "$id" "$old/$program" "$@"
    sample new "$id" "$new/$program" "$@"
    sample again "$id" "$old/$program" "$@"
}

for ((pair = 1; pair <= pairs; pair++)); do
    for shape in w1 w2 w3; do
        for count in 1 16 128 1024; do
            cell "$shape@$count" engine "$shape" "$count" --seconds "$seconds" --dir "$data"
        done
    done
    cell w4 engine w4 20000 --dir "$data"
    cell w5 engine w5 10000 --dir "$data"
    cell load engine load 20000 --dir "$data"
    for mode in update released query child; do
        knows "$mode" || continue
        for count in 1 128; do
            cell "$mode@$count" engine "$mode" "$count" --seconds "$seconds" --dir "$data"
        done
    done
    if knows busy; then
        cell busy engine busy 9000 --dir "$data"
    fi
    for count in 1 16 128; do
        cell "worker@$count" workflows w1 "$count" --seconds "$seconds" --dir "$data"
    done
    for mode in yield fork_one fork_batch scope_one chan mem sleep cancel_tree cancel_flat block1 block64 tree work; do
        cell "$mode" fibers "$mode" 0 1
    done
    for mode in chan_pair chan_split tree work; do
        cell "$mode/2" fibers "$mode" 0 2
    done
done
[[ ! -t 2 ]] || printf '\r\033[K' >&2
[[ -s $data/samples ]] || { cat "$data/errors" >&2 && echo "pairs.sh: nothing could be measured" >&2 && exit 1; }

# Of these metrics less is better, but for ops_s.
awk -F'\t' '
    BEGIN {
        split("ops_s cpu_op_us flushes_op p99_ms ratio yield fork_one fork_batch scope_one chan rss create_s cold_ms warm_ms cancel_ms mark_ms call_us tree work", names, " ")
        for (i in names) metrics[i + 0] = names[i]
        count = length(metrics)
    }
    { if (!($1 in seen)) { seen[$1] = 1; cells[++cell_count] = $1 } value[$1, $2, $4, $3] = $5 + 0; last = $3 > last ? $3 : last }
    function median(out, n,    i, j, v) {
        for (i = 2; i <= n; i++) { v = out[i]; for (j = i - 1; j > 0 && out[j] > v; j--) out[j + 1] = out[j]; out[j + 1] = v }
        return n ? (out[int((n + 1) / 2)] + out[int(n / 2) + 1]) / 2 : 0
    }
    function of(cell, side, metric,    out, n, i) {
        for (i = 1; i <= last; i++) if ((cell, side, metric, i) in value) out[++n] = value[cell, side, metric, i]
        return median(out, n)
    }
    function noise(cell, metric,    out, n, i, a, b) {
        for (i = 1; i <= last; i++) {
            a = value[cell, "old", metric, i]; b = value[cell, "again", metric, i]
            if (a > 0 && b > 0) out[++n] = a > b ? a / b - 1 : b / a - 1
        }
        median(out, n)
        return n ? 100 * out[int(n * 3 / 4) > 0 ? int(n * 3 / 4) : 1] : 0
    }
    END {
        printf "%-12s %-11s %12s %12s %8s %8s\n", "cell", "metric", "old", "new", "new/old", "noise"
        for (i = 1; i <= cell_count; i++)
            for (j = 1; j <= count; j++) {
                a = of(cells[i], "old", metrics[j]); b = of(cells[i], "new", metrics[j])
                if (a <= 0) continue
                worse = metrics[j] == "ops_s" ? 1 - b / a : b / a - 1
                n = noise(cells[i], metrics[j])
                printf "%-12s %-11s %12.2f %12.2f %8.3f %7.1f%%%s\n", cells[i], metrics[j], a, b, b / a, n,
                    (100 * worse > 3 && 100 * worse > n ? "  worse" : "")
            }
    }' "$data/samples"
if [[ -s $data/errors ]]; then
    echo
    sort "$data/errors" | uniq -c | sed 's/^/failed: /'
fi
