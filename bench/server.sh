#!/usr/bin/env bash
# `./dev bench server`: W1 (start, one activity, result) through gRPC: a server, a C worker and a C load generator, each a process of its
# own, on the loopback interface; the same with the TypeScript SDK as client and worker, in one process of node; beside Temporal's own dev
# server where that could be built. Then the time from exec to serving, and sizes.
#
#   bench/server.sh BUILD_DIR [--quick] [--dir DIR] [--no-typescript]
#
# BUILD_DIR is a release build with the targets `benches` and `holdfast_program`. Three rounds, the median counts.
# The exit code says only whether something could be measured, never how fast it was.
set -euo pipefail
export LC_ALL=C

quick=0 build_dir= dir= typescript=1
while (($# > 0)); do
    case $1 in
        --quick) quick=1 ;;
        --no-typescript) typescript=0 ;;
        --dir) dir=$2; shift ;;
        -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
        -*) echo "server.sh: unknown option $1" >&2; exit 2 ;;
        *) build_dir=$1 ;;
    esac
    shift
done
if [[ -z $build_dir || ! -x $build_dir/bench/server ]]; then
    echo "server.sh: no $build_dir/bench/server; build the target 'benches' first (./dev bench does)" >&2
    exit 2
fi
if [[ ! -x $build_dir/bin/holdfast ]]; then
    ninja -C "$build_dir" holdfast_program >/dev/null
fi
holdfast=$(realpath "$build_dir/bin/holdfast")
bench=$(realpath "$build_dir/bench/server")
temporal=$(realpath -m "$build_dir/../oracle/temporal-dev")
suite=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../tests/e2e/run.sh")
scratch=$(realpath -m "$build_dir/scratch/e2e")
mkdir -p "$scratch"
if ((typescript)) && ! command -v npm >/dev/null; then
    echo "server.sh: there is no npm here: without the TypeScript SDK" >&2
    typescript=0
fi
if ((typescript)) && ! "$suite" - "$scratch" bench.mjs >/dev/null; then
    echo "server.sh: the TypeScript SDK cannot be installed: without it" >&2
    typescript=0
fi
rounds=3 seconds=5
if ((quick)); then
    rounds=1 seconds=2
fi
data=$(mktemp -d "${dir:-$build_dir}/server_data.XXXXXX")
server= worker=
cleanup()
{
    [[ -n $worker ]] && kill "$worker" 2>/dev/null
    [[ -n $server ]] && kill "$server" 2>/dev/null
    rm -rf "$data"
}
trap cleanup EXIT

# CPU seconds of the server so far, and its resident MiB.
cpu_of() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) / hz }' "/proc/$1/stat"; }
rss_of() { awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$1/status"; }

# await_line FILE PATTERN PID: until the file has such a line; fails if the process has ended.
await_line()
{
    local i
    for ((i = 0; i < 600; i++)); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        kill -0 "$3" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}

start_holdfast()
{
    rm -f "$data"/bench.db*
    : >"$data/server.out"
    "$holdfast" serve --store "sqlite:$data/bench.db" --listen 127.0.0.1:0 --log-level warn >"$data/server.out" 2>"$data/server.err" &
    server=$!
    await_line "$data/server.out" ':[0-9]' "$server" || return 1
    address=temporal://127.0.0.1:$(sed -n 's/.*:\([0-9]*\).*/\1/p' "$data/server.out" | head -1)
}

start_temporal()
{
    local port=17233
    "$temporal" --port "$port" >"$data/server.out" 2>"$data/server.err" &
    server=$!
    address=temporal://127.0.0.1:$port
    local i
    for ((i = 0; i < 100; i++)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return 0
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.2
    done
    return 1
}

stop_all()
{
    local pid
    for pid in $worker $server; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    worker= server=
}

# sample ID LOAD...: one measurement on the running server, as lines "id<TAB>metric<TAB>value". LOAD is the command that makes the load.
sample()
{
    local id=$1 before after worker_before=0 worker_after=0 load
    shift
    : >"$data/load.out"
    "$@" >"$data/load.out" 2>>"$data/errors" &
    load=$!
    await_line "$data/load.out" '^begin$' "$load" || { wait "$load" || true; return 0; }
    before=$(cpu_of "$server")
    [[ -z $worker ]] || worker_before=$(cpu_of "$worker")
    await_line "$data/load.out" '^end$' "$load" || { wait "$load" || true; return 0; }
    after=$(cpu_of "$server")
    [[ -z $worker ]] || worker_after=$(cpu_of "$worker")
    rss=$(rss_of "$server")
    wait "$load" || true
    [[ -n $rss ]] || return 0
    awk -v id="$id" 'NF == 2 { print id "\t" $1 "\t" $2 }' "$data/load.out" >>"$data/samples"
    awk -v id="$id" -v cpu="$before $after $worker_before $worker_after" -v rss="$rss" '
        $1 == "runs" { split(cpu, c, " "); runs = $2 > 0 ? $2 : 1
            print id "\tserver_us\t" (c[2] - c[1]) * 1e6 / runs
            print id "\tworker_us\t" (c[4] - c[3]) * 1e6 / runs
            print id "\trss_mib\t" rss }' "$data/load.out" >>"$data/samples"
}

: >"$data/errors"
: >"$data/samples"
servers=(holdfast)
if [[ -x $temporal ]]; then
    servers+=(temporal)
fi
for ((round = 0; round < rounds; round++)); do
    for name in "${servers[@]}"; do
        if ! "start_$name"; then
            echo "$name: the server did not start: $(tail -n 1 "$data/server.err")" >>"$data/errors"
            stop_all
            continue
        fi
        [[ $name == holdfast ]] && printf 'holdfast idle\trss_mib\t%s\n' "$(rss_of "$server")" >>"$data/samples"
        : >"$data/worker.out"
        "$bench" worker "$address" >"$data/worker.out" 2>>"$data/errors" &
        worker=$!
        if await_line "$data/worker.out" '^ready$' "$worker"; then
            for n in 1 16 128; do
                sample "$name/$n" "$bench" load "$address" "$n" "$seconds"
            done
        fi
        kill "$worker" 2>/dev/null || true
        wait "$worker" 2>/dev/null || true
        worker=
        if ((typescript)); then
            for n in 1 16 128; do
                sample "$name ts/$n" "$suite" - "$scratch" bench.mjs "${address#temporal://}" "$n" "$seconds"
            done
        fi
        stop_all
    done
done
# boot STORE: ms from exec to the line that says it serves.
boot()
{
    local from line
    from=$(date +%s%N)
    coproc boot { exec "$holdfast" serve --store "$1" --listen 127.0.0.1:0 --log-level never; }
    # shellcheck disable=SC2154
    read -r line <&"${boot[0]}"
    printf 'boot\tms\t%s\n' $((($(date +%s%N) - from) / 1000))e-3 >>"$data/samples"
    kill "$boot_PID"
    wait "$boot_PID" 2>/dev/null || true
    [[ $line == *ready* ]]
}
for ((round = 0; round < (quick ? 3 : 11); round++)); do
    rm -f "$data"/boot.db*
    boot "sqlite:$data/boot.db" || echo "the server did not say that it is ready" >>"$data/errors"
done
cp "$holdfast" "$data/stripped"
strip "$data/stripped" 2>/dev/null || true
printf 'program\tmib\t%s\n' "$(awk -v n="$(stat -c %s "$data/stripped")" 'BEGIN { print n / 1048576 }')" >>"$data/samples"

if [[ ! -s $data/samples ]]; then
    cat "$data/errors" >&2
    echo "server.sh: nothing could be measured" >&2
    exit 1
fi
awk -F'\t' '
    { key = $1 SUBSEP $2; all[key, ++n[key]] = $3 + 0; seen[$1] = 1 }
    function get(id, metric,    key, m, i, j, v, out) {
        key = id SUBSEP metric; m = n[key]
        for (i = 1; i <= m; i++) {
            v = all[key, i]
            for (j = i - 1; j > 0 && out[j] > v; j--) out[j + 1] = out[j]
            out[j + 1] = v
        }
        return m ? out[int((m + 1) / 2)] : 0
    }
    END {
        printf "%-12s %5s %9s %8s %8s %10s %10s %8s %8s  %s\n", "w1, gRPC", "runs", "per s", "p50 ms", "p99 ms", "server us", "worker us",
            "load us", "RSS MiB", "bar"
        split("holdfast,temporal,holdfast ts,temporal ts", names, ",")
        split("1 16 128", counts, " ")
        for (i = 1; i <= 4; i++)
            for (j = 1; j <= 3; j++) {
                id = names[i] "/" counts[j]
                if (!(id in seen)) continue
                bar = ""
                if (names[i] == "holdfast" && counts[j] == 128) bar = get(id, "ops_s") >= 4000 ? "ok   >= 4000" : "SHORT < 4000"
                if (names[i] == "holdfast ts") {
                    part = get(id, "server_us") / (get(id, "load_us") > 0 ? get(id, "load_us") : 1)
                    bar = sprintf("%s of the CPU of node: %.2f", part <= 0.25 ? "ok" : "SHORT", part)
                }
                printf "%-12s %5d %9.0f %8.2f %8.2f %10.0f %10.0f %8.0f %8.1f  %s\n", names[i], counts[j], get(id, "ops_s"),
                    get(id, "p50_ms"), get(id, "p99_ms"), get(id, "server_us"), get(id, "worker_us"), get(id, "load_us"),
                    get(id, "rss_mib"), bar
            }
        idle = get("holdfast idle", "rss_mib")
        printf "\nholdfast serve, idle, on an empty store: %.1f MiB resident  %s 20\n", idle, idle <= 20 ? "ok   <=" : "SHORT >"
        ms = get("boot", "ms")
        printf "from exec to serving, on an empty store: %.1f ms  %s 50\n", ms, ms <= 50 ? "ok   <=" : "SHORT >"
        mib = get("program", "mib")
        printf "the program, stripped, with shared libraries: %.1f MiB  %s 6\n", mib, mib <= 6 ? "ok   <=" : "SHORT >"
    }' "$data/samples"
if [[ -s $data/errors ]]; then
    echo
    sed 's/^/failed: /' "$data/errors"
fi
