#!/usr/bin/env bash
# `./dev bench workflows`: W1 to W5 with real C workflows through the public API, beside the same on a scripted worker, and the
# memory of a run that waits.
#
#   bench/workflows.sh BUILD_DIR [--quick] [--dir DIR]
#
# BUILD_DIR is a release build with the target `benches`. Three rounds, all programs in turn, the median counts.
# The exit code says only whether something could be measured, never how fast it was.
set -euo pipefail
export LC_ALL=C

quick=0 build_dir= dir=
while (($# > 0)); do
    case $1 in
        --quick) quick=1 ;;
        --dir) dir=$2; shift ;;
        -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
        -*) echo "workflows.sh: unknown option $1" >&2; exit 2 ;;
        *) build_dir=$1 ;;
    esac
    shift
done
if [[ -z $build_dir || ! -x $build_dir/bench/workflows ]]; then
    echo "workflows.sh: no $build_dir/bench/workflows; build the target 'benches' first (./dev bench does)" >&2
    exit 2
fi
programs=$(cd "$build_dir/bench" && pwd)
rounds=3 seconds=5 many=10000
if ((quick)); then
    rounds=1 seconds=1 many=5000
fi
data=$(mktemp -d "${dir:-$programs}/workflows_data.XXXXXX")
trap 'rm -rf "$data"' EXIT

# sample ID PROGRAM ARGS...: appends "id<TAB>metric<TAB>value". What a program printed before it failed still counts.
sample() {
    local id=$1 code=0
    shift
    { timeout 120 "$@" --seconds "$seconds" --dir "$data" >"$data/out" 2>"$data/err" || code=$?; } 2>/dev/null
    if ((code != 0)); then
        printf '%s: exit code %d: %s\n' "$id" "$code" "$(tail -n 1 "$data/err")" >>"$data/errors"
    fi
    awk -v id="$id" 'NF == 2 { print id "\t" $0 }' "$data/out" >>"$data/samples"
}

: >"$data/errors"
: >"$data/samples"
limit_seconds=1
if ((quick)); then
    limit_seconds=0.5
fi
# What SQLite alone does with the rows of a hundred transitions per commit: "limit/100".
limit() {
    timeout 120 "$programs/limit_sqlite" "$data" "$limit_seconds" 4096 unit 2>>"$data/errors" |
        awk '/sync=FULL/ && $1 ~ /^unit\/batch/ { sub(/.*group=/, ""); print "limit\trows/" $1 "\t" $2 }' >>"$data/samples"
}
for ((round = 0; round < rounds; round++)); do
    limit
    for count in 1 16 128; do
        sample "script/$count" "$programs/engine" w1 "$count"
        sample "worker/$count" "$programs/workflows" w1 "$count"
        sample "worker, on fibers/$count" "$programs/workflows" w1 "$count" --activities fiber
        sample "through the owner/$count" "$programs/workflows" w1 "$count" --activities fiber --through owner
    done
    for shape in w2 w3; do
        sample "$shape script" "$programs/engine" "$shape" 128
        sample "$shape worker" "$programs/workflows" "$shape" 128 --activities fiber
    done
    for shape in w4 w5; do
        sample "$shape script" "$programs/engine" "$shape" "$many"
        sample "$shape worker" "$programs/workflows" "$shape" "$many"
    done
    sample "w5 durable" "$programs/engine" w5 "$many" --patient
    sample "parked" "$programs/workflows" parked 3000 --store memory
done
sample "idle/1000" "$programs/release" idle 1000
if [[ ! -s $data/samples ]]; then
    cat "$data/errors" >&2
    echo "workflows.sh: nothing could be measured" >&2
    exit 1
fi
awk -F'\t' -v many="$many" '
    { key = $1 SUBSEP $2; all[key, ++n[key]] = $3 + 0; seen[$1] = 1 }
    function sorted(key, out,    i, j, v) {
        for (i = 1; i <= n[key]; i++) {
            v = all[key, i]
            for (j = i - 1; j > 0 && out[j] > v; j--) out[j + 1] = out[j]
            out[j + 1] = v
        }
        return n[key]
    }
    function get(id, metric,    out, m) { m = sorted(id SUBSEP metric, out); return m ? out[int((m + 1) / 2)] : 0 }
    function spread(id, metric,    out, m) {
        m = sorted(id SUBSEP metric, out)
        return m > 1 && get(id, metric) > 0 ? sprintf("%.0f%%", 100 * (out[m] - out[1]) / get(id, metric)) : "-"
    }
    BEGIN {
        bar[1] = 0.36; bar[16] = 0.41; bar[128] = 0.45 # of the rows of SQLite alone, in the column before
        group[1] = 1; group[16] = 10; group[128] = 100
    }
    END {
        printf "%-20s %5s %9s %7s %8s %8s %8s %7s %8s %6s  %s\n", "w1", "runs", "per s", "spread", "p50 ms", "p99 ms", "CPU us",
            "MiB", "/script", "/rows", "bar"
        split("1 16 128", counts, " ")
        split("script|worker|worker, on fibers", sides, "|")
        for (i = 1; i <= 3; i++)
            for (j = 1; j <= 3; j++) {
                id = sides[j] "/" counts[i]
                if (!(id in seen)) continue
                ours = get(id, "ops_s"); script = get("script/" counts[i], "ops_s")
                rows = get("limit", "rows/" group[counts[i]])
                printf "%-20s %5d %9.0f %7s %8.2f %8.2f %8.1f %7.0f %8s %6s  %s\n", sides[j], counts[i], ours,
                    spread(id, "ops_s"), get(id, "p50_ms"), get(id, "p99_ms"), get(id, "cpu_op_us"), get(id, "rss_mib"),
                    (script > 0 ? sprintf("%.2f", ours / script) : "-"),
                    (rows > 0 ? sprintf("%.2f", ours / rows) : "-"),
                    (rows == 0 ? "" : (ours / rows >= bar[counts[i]] ? "ok   >= " : "SHORT < ") bar[counts[i]])
            }
        embedded = get("worker, on fibers/128", "ops_s"); through = get("through the owner/128", "ops_s")
        if (embedded > 0 && through > 0)
            printf "\nthrough the owner of the file, at 128: %.0f per s, %.2f of embedded  %s 0.5\n", through, through / embedded,
                (through / embedded >= 0.5 ? "ok   >=" : "SHORT <")
        printf "\n%-20s %5s %9s %7s %8s %8s\n", "at 128", "", "per s", "spread", "p50 ms", "/script"
        split("w2 w3", shapes, " ")
        for (i = 1; i <= 2; i++) {
            script = get(shapes[i] " script", "ops_s"); ours = get(shapes[i] " worker", "ops_s")
            if (ours > 0)
                printf "%-20s %5s %9.0f %7s %8.2f %8s\n", shapes[i] (i == 1 ? ", in sequence" : ", forked"), "", ours,
                    spread(shapes[i] " worker", "ops_s"), get(shapes[i] " worker", "p50_ms"),
                    (script > 0 ? sprintf("%.2f", ours / script) : "-")
        }
        if ("w4 worker" in seen) {
            rows = get("limit", "rows/100")
            printf "\n%d runs wait, then each gets a signal: %.0f signals per s, p99 %.2f ms (script %.0f, %.2f); then %.0f results per s, signals included (script, ended: %.0f, %.2f of it); " \
                "%d were released\n", many, get("w4 worker", "signals_s"), get("w4 worker", "p99_ms"), get("w4 script", "ops_s"),
                get("w4 script", "p99_ms"), get("w4 worker", "ended_s"), get("w4 script", "ended_s"),
                (get("w4 script", "ended_s") > 0 ? get("w4 worker", "ended_s") / get("w4 script", "ended_s") : 0), get("w4 worker", "released")
            if (rows > 0)
                printf "  signals per s of the rows of SQLite alone at 100: %.2f  %s 1.36\n", get("w4 worker", "signals_s") / rows,
                    (get("w4 worker", "signals_s") / rows >= 1.36 ? "ok   >=" : "SHORT <")
        }
        if ("w5 worker" in seen)
            printf "%d sleeps that end at once: the code goes on p50 %.0f, p99 %.0f ms late (script, durable, %.0f and %.0f); a client has the result " \
                "p50 %.0f, p99 %.0f ms late (script %.0f and %.0f; bar %.0f)  %s\n", many, get("w5 worker", "task_p50_ms"), get("w5 worker", "task_p99_ms"),
                get("w5 durable", "task_p50_ms"), get("w5 durable", "task_p99_ms"), get("w5 worker", "p50_ms"), get("w5 worker", "p99_ms"),
                get("w5 script", "p50_ms"), get("w5 script", "p99_ms"), 150 * many / 10000,
                (get("w5 worker", "p99_ms") <= 150 * many / 10000 ? "ok" : "SHORT")
        if ("parked" in seen)
            printf "\na run that waits, 3,000 of them, the engine with its store in memory included: %.0f bytes resident  %s\n" \
                "  %.0f its stack; %.0f crew, scopes and branch; %.0f the run itself, the engine and the store\n",
                get("parked", "parked_bytes"), (get("parked", "parked_bytes") <= 10240 ? "ok   <= 10240" : "SHORT > 10240"),
                get("parked", "parked_bytes") - get("parked", "parked_heap"), get("parked", "parked_runtime"),
                get("parked", "parked_heap") - get("parked", "parked_runtime")
        printf "\nSQLite alone, rows of units per second by units per commit: 1: %.0f, 10: %.0f, 100: %.0f\n",
            get("limit", "rows/1"), get("limit", "rows/10"), get("limit", "rows/100")
        printf "(a workflow is about 4 units of three events; a bar is workflows per unit, at 1, 10 and 100 units per commit)\n"
        if ("idle/1000" in seen) {
            ratio = get("idle/1000", "ratio"); again = get("idle/1000", "again_ratio")
            printf "\n1,000 runs that wait: %.1f KiB each in memory; MiB at the start %.1f, with all in memory %.1f, when they were released %.1f\n",
                get("idle/1000", "run_kib"), get("idle/1000", "start_mib"), get("idle/1000", "loaded_mib"),
                get("idle/1000", "released_mib")
            printf "after a release / at the start: %.2f, after four: %.2f  %s 1.10\n", ratio, again,
                ratio <= 1.1 && again <= 1.1 ? "ok   <=" : "SHORT >"
        }
    }' "$data/samples"
if [[ -s $data/errors ]]; then
    echo
    sed 's/^/failed: /' "$data/errors"
fi
