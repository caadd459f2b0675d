#!/usr/bin/env bash
# `./dev bench depot`: the depot and its cache beside the least that is needed, beside other caches, and beside SQLite, all measured in
# this run. A figure that misses its bar is marked SHORT.
#
#   bench/depot.sh BUILD_DIR [--quick] [--dir DIR] [PART ...]
#
# BUILD_DIR is a release build with the target `benches`. PART is hit, bytes, ratio, storm, watch, land, file or memo; all by default.
# DIR is the folder for files. A cache that is not installed has an empty column, and a line says which package brings it.
# The exit code says only whether something could be measured, never how fast it was.
set -euo pipefail
export LC_ALL=C

quick=0 build_dir= dir= parts=()
while (($# > 0)); do
    case $1 in
        --quick) quick=1 ;;
        --dir) dir=$2; shift ;;
        -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
        -*) echo "depot.sh: unknown option $1" >&2; exit 2 ;;
        *) if [[ -z $build_dir ]]; then build_dir=$1; else parts+=("$1"); fi ;;
    esac
    shift
done
if [[ -z $build_dir || ! -x $build_dir/bench/depot ]]; then
    echo "depot.sh: no $build_dir/bench/depot; build the target 'benches' first (./dev bench does)" >&2
    exit 2
fi
((${#parts[@]} > 0)) || parts=(hit bytes ratio storm watch land file memo)
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "$build_dir/bench" && pwd)
scratch=$(realpath "$(mktemp -d "${dir:-$build_dir}/depot_data.XXXXXX")")
memcached_pid=
cleanup()
{
    [[ -n $memcached_pid ]] && kill "$memcached_pid" 2>/dev/null
    rm -rf "$scratch"
}
trap cleanup EXIT
seconds=1 warm_up=10 count=1000000 rounds=5
if ((quick)); then
    seconds=0.2 warm_up=2 count=100000 rounds=2
fi

has() { [[ " ${parts[*]} " == *" $1 "* ]]; }

# ---- Other caches: each appends lines of "metric<TAB>value" ------------------------------------------------------------

peers=$scratch/peers
: >"$peers"

absent() { echo "  without $1: it comes with Debian's $2"; }

measure_caffeine()
{
    local jar=/usr/share/java/caffeine.jar
    if ! command -v javac >/dev/null || [[ ! -e $jar ]]; then
        absent Caffeine "libcaffeine-java and default-jdk-headless"
        return
    fi
    mkdir -p "$scratch/java"
    javac -cp "$jar" -d "$scratch/java" "$here/peers/Hits.java"
    java -Xmx2g -cp "$jar:$scratch/java" Hits "$scratch" "$seconds" "$warm_up" >>"$peers" || echo "  Caffeine failed"
}

measure_go()
{
    local sources=/usr/share/gocode/src/github.com
    if ! command -v go >/dev/null || [[ ! -d $sources/dgraph-io/ristretto || ! -d $sources/hashicorp/golang-lru ]]; then
        absent "Ristretto and golang-lru" "golang-github-dgraph-io-ristretto-dev, golang-github-hashicorp-golang-lru-dev and golang-go"
        return
    fi
    if ! GO111MODULE=off GOFLAGS= GOPATH=/usr/share/gocode GOCACHE=$scratch/go go build -o "$scratch/go_hits" "$here/peers/hits.go"; then
        echo "  Ristretto and golang-lru cannot be built"
        return
    fi
    "$scratch/go_hits" "$scratch" "$seconds" >>"$peers" || echo "  Ristretto or golang-lru failed"
}

measure_memcached()
{
    if ! command -v memcached >/dev/null; then
        absent memcached memcached
        return
    fi
    memcached -u "$(id -un)" -s "$scratch/socket" -m 2048 -t 1 &
    memcached_pid=$!
    local i
    for ((i = 0; i < 100; i++)); do
        [[ -S $scratch/socket ]] && break
        sleep 0.05
    done
    "$programs/cache" memcached "$scratch/socket" "$memcached_pid" >>"$peers" || echo "  memcached failed"
    kill "$memcached_pid" && wait "$memcached_pid" 2>/dev/null || true
    memcached_pid=
}

# ---- Activities with a memo: what workflows get of a depot ---------------------------------------------------------------

# W1 with 128 clients, with and without, in turns; the best round of each.
measure_memo()
{
    local i lines=$scratch/memo
    "$programs/workflows" once 1000 --store memory | sed 's/^/once\t/' >"$lines"
    for ((i = 0; i < rounds; i++)); do
        "$programs/workflows" w1 128 --seconds 2 --dir "$scratch" | sed 's/^/plain\t/' >>"$lines"
        "$programs/workflows" w1 128 --seconds 2 --dir "$scratch" --memo depot | sed 's/^/memo\t/' >>"$lines"
    done
    awk -F '\t' '
        function row(what, ours, unit, beside, figure, compared, sign, bar) {
            printf "%-46s %12.1f %-6s %-22s %12s %9.3f  %s %g%s\n", what, ours, unit, beside, figure, compared,
                sign, bar, (sign == "<=" ? compared > bar : compared < bar) ? "  SHORT" : ""
        }
        $2 == "calls" && $1 == "once" { calls = $3 }
        $2 == "ops_s" && $3 > rate[$1] { rate[$1] = $3 }
        $2 == "cpu_op_us" && (!($1 in cpu) || $3 < cpu[$1]) { cpu[$1] = $3 }
        END {
            printf "\n(h) an activity with a memo; W1, 128 clients; compared: ours / without\n%-46s %12s %-6s %-22s %12s %9s  %s\n",
                "", "ours", "", "beside", "", "compared", "bar"
            row("1,000 runs with equal input: calls", calls, "", "", "", calls, "<=", 1)
            row("W1, all but the first are hits", rate["memo"], "/s", "W1", sprintf("%.1f", rate["plain"]),
                rate["memo"] / rate["plain"], ">=", 1)
            printf "%-46s %12.1f %-6s %-22s %12.1f %9.3f\n", "  processor time of a workflow", cpu["memo"], "us", "W1",
                cpu["plain"], cpu["memo"] / cpu["plain"]
        }' "$lines"
}

# ---- The table ---------------------------------------------------------------------------------------------------------

echo "load of the machine before: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
if has hit || has bytes; then
    "$programs/cache" draw "$scratch"
    measure_caffeine
    measure_memcached
fi
if has hit; then
    measure_go
fi
for part in "${parts[@]}"; do
    case $part in
        hit | bytes | ratio) "$programs/cache" "$part" "$seconds" "$peers" ;;
        memo) measure_memo ;;
        *) "$programs/depot" "$part" "$scratch" "$count" ;;
    esac
done
echo
echo "load of the machine after: $(cut -d' ' -f1-3 /proc/loadavg)"
