#!/usr/bin/env bash
# `./dev bench fibers`: the library beside the raw floor and Go, all measured in this run.
#
#   bench/fibers.sh BUILD_DIR [--quick] [--json] [FILTER]
#
# BUILD_DIR is a release build with the target `benches`. FILTER is a regular expression on the rows' ids. Each program
# run is one sample; the samples of the three sides are taken in turns, so that noise of the machine hits them alike.
# The exit code says only whether something could be measured, never how fast it was.
set -euo pipefail
export LC_ALL=C

usage() {
    sed -n '2,9s/^# \{0,1\}//p' "$0"
}

quick=0 json=0 filter=. build_dir=
for word in "$@"; do
    case $word in
        --quick) quick=1 ;;
        --json) json=1 ;;
        -h | --help) usage; exit 0 ;;
        -*) echo "fibers.sh: unknown option $word" >&2; usage >&2; exit 2 ;;
        *) if [[ -z $build_dir ]]; then build_dir=$word; else filter=$word; fi ;;
    esac
done
if [[ -z $build_dir || ! -x $build_dir/bench/fibers ]]; then
    echo "fibers.sh: no $build_dir/bench/fibers; build the target 'benches' first (./dev bench does)" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "$build_dir/bench" && pwd)
seconds_max=210 # no further round of repetitions starts after this
run_timeout=60  # for one sample

# One line per row:
#   id | text | ours | floor | Go | target | at most x floor | at least x Go | samples | median at most x Go's median
# A figure is "PROGRAM MODE COUNT THREADS > METRIC"; COUNT 0 is the program's own, "go" stands for the Go program with
# GOMAXPROCS=THREADS. "PROGRAM+busy" runs beside a process that keeps one core busy. Smaller is better throughout. An empty limit
# means: printed, no target.
table() {
    cat <<'ROWS'
yield|yield, 2 fibers, ns|fibers yield 0 1>yield|floor yield 0 1>yield|go yield 0 1>yield|12|2|3|7
fork_one|fork + join, one at a time, ns|fibers fork_one 0 1>fork_one|floor fork_one 0 1>fork_one|go fork_one 0 1>fork_one|60|3|3|7
fork_batch|fork + join, batches of 1000, ns|fibers fork_batch 0 1>fork_batch|floor lazy_batch 0 1>lazy_batch|go fork_batch 0 1>fork_batch|25||3|7
scope_one|scope open, fork, join, close, ns|fibers scope_one 0 1>scope_one|floor fork_one 0 1>fork_one|go fork_one 0 1>fork_one||||7
chan|channel, one thread, ns/message|fibers chan 0 1>chan|floor chan 0 1>chan|go chan 0 1>chan|35|5|3|7
chan_pair|channel, pair on 1 thread of 2, ns|fibers chan_pair 0 2>chan|floor_mn chan 0 2>chan|go chan_wall 0 2>chan|60|||7
chan_split|channel, pair over 2 threads, ns|fibers chan_split 0 2>chan|floor_pool spin 0 2>spin|go chan_wall 0 2>chan||||9|3
chan_busy|  beside a busy core, ns|fibers+busy chan_split 0 2>chan||go+busy chan_wall 0 2>chan||||9|3
chan_pinned|  the same with .pin_threads, ns|fibers+busy chan_pinned 0 2>chan||go+busy chan_wall 0 2>chan||||9|3
mem_rss|parked fiber + job, resident B|fibers mem 0 1>rss|floor mem 0 1>rss|go mem 0 1>rss|4400|||3
mem_pte|parked fiber + job, page table B|fibers mem 0 1>pte|floor mem 0 1>pte||130|||3
mem_queued|job queued, not started, B|fibers queued 0 1>queued|floor queued 0 1>queued|go mem 0 1>rss|256|||3
mem_delayed|job delayed, not started, B|fibers delayed 0 1>delayed|floor queued 0 1>queued|go mem 0 1>rss|256|||3
million|make 1,000,000 parked fibers, s|fibers mem 1000000 1>create_s|floor mem 1000000 1>create_s|go mem 1000000 1>create_s|5|||2
sleep_cold|100k x sleep 10 ms, cold, ms|fibers sleep 0 1>cold_ms|floor sleep 0 1>cold_ms|go sleep 0 1>cold_ms|350|||5
sleep_warm|100k x sleep 10 ms, warm, ms|fibers sleep 0 1>warm_ms|floor sleep 0 1>warm_ms|go sleep 0 1>warm_ms|80|||5
cancel_tree|cancel + join 100 x 1000, ms|fibers cancel_tree 0 1>cancel_ms|floor cancel_tree 0 1>cancel_ms|go cancel_tree 0 1>cancel_ms|40||1|5
cancel_mark|  of it: marking, ms|fibers cancel_tree 0 1>mark_ms|floor cancel_tree 0 1>mark_ms|go cancel_tree 0 1>mark_ms|4|||5
cancel_flat|cancel + join 100,000 flat, ms|fibers cancel_flat 0 1>cancel_ms|floor cancel_flat 0 1>cancel_ms|go cancel_flat 0 1>cancel_ms|||1|5
block1|blocking call, 1 at a time, us|fibers block1 0 1>call_us|floor_pool call 5000 1>call_us||25|||7
block64|blocking call, 64 at a time, us|fibers block64 0 1>call_us|floor_pool call 64000 64>call_us||1.5|||7
dump|dump of 10,000 fibers, ms|fibers dump 0 1>dump_ms||go dump 0 1>dump_ms||||5
tree1|tree of 2^18 scopes, 1 thread, ns|fibers tree 0 1>tree|floor_mn tree 0 1>tree|go tree 0 1>tree||||3
tree2|tree of 2^18 scopes, 2 threads|fibers tree 0 2>tree|floor_mn tree 0 2>tree|go tree 0 2>tree||||3
work1|0.7 us jobs by 1000, 1 thread, ns|fibers work 0 1>work|floor_mn work 0 1>work|go work 0 1>work||||5
work2|0.7 us jobs by 1000, 2 threads, ns|fibers work 0 2>work|floor_mn work 0 2>work|go work 0 2>work||||5
y14_50|Y14: 50 sleeps of 100 ms, ms|fibers sleep50 0 1>ms||go sleep50 0 1>ms|105|||5
y14_3|Y14: 3 sleeps of 1 s, ms|fibers sleep3 0 1>ms||go sleep3 0 1>ms|1050|||1
y14_100|Y14: 100 sleeps of 10 ms, ms|fibers sleep100 0 1>ms||go sleep100 0 1>ms|100|||5
y14_fork|Y14: fork + join, ns|fibers fork_one 0 1>fork_one|floor fork_one 0 1>fork_one|go fork_one 0 1>fork_one|1000|||7
y14_switch|Y14: switch, ns|fibers yield 0 1>yield|floor yield 0 1>yield|go yield 0 1>yield|100|||7
ROWS
}

work_dir=$(mktemp -d)
trap 'end_busy; rm -rf "$work_dir"' EXIT
rows=$work_dir/rows samples=$work_dir/samples errors=$work_dir/errors
: >"$samples"
: >"$errors"
table | awk -F'|' -v filter="$filter" '$1 ~ filter' >"$rows"
if [[ ! -s $rows ]]; then
    echo "fibers.sh: no row matches '$filter'; the ids are: $(table | cut -d'|' -f1 | tr '\n' ' ')" >&2
    exit 2
fi

note() {
    if [[ -t 2 ]]; then
        printf '\r\033[K%s' "$*" >&2
    fi
}

# The Go program is built here: CMake need not know Go, and without it the column stays empty.
have_go=0
if command -v go >/dev/null; then
    note "building the Go side"
    export GOCACHE=${GOCACHE:-$programs/gocache} GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0
    if (cd "$here/go" && go build -buildvcs=false -o "$programs/go_fibers" .) 2>>"$errors"; then
        have_go=1
    fi
fi

busy='' # process that keeps a core busy beside a sample
end_busy() {
    if [[ -n $busy ]]; then
        kill "$busy" && wait "$busy" 2>/dev/null || true
        busy=''
    fi
}

# sample COMMAND: runs it once and appends "command<TAB>metric<TAB>value" lines.
sample() {
    local program mode count threads
    read -r program mode count threads <<<"$1"
    local is_beside_busy=0
    if [[ $program == *+busy ]]; then
        program=${program%+busy} is_beside_busy=1
    fi
    local command=("$programs/$program" "$mode" "$count" "$threads")
    if [[ $program == go ]]; then
        if ((!have_go)); then
            return 0
        fi
        command=(env "GOMAXPROCS=$threads" "$programs/go_fibers" "$mode" "$count")
    elif [[ ! -x $programs/$program ]]; then
        return 0
    fi
    local code=0
    if ((is_beside_busy)); then
        (while :; do :; done) &
        busy=$!
    fi
    { timeout "$run_timeout" "${command[@]}" >"$work_dir/out" 2>"$work_dir/err" || code=$?; } 2>/dev/null
    end_busy
    if ((code != 0)); then
        printf '%s: exit code %d: %s\n' "$1" "$code" "$(tail -n 1 "$work_dir/err")" >>"$errors"
        return 0
    fi
    awk -v command="$1" '{ print command "\t" $0 }' "$work_dir/out" >>"$samples"
}

# A million fibers need memory; a machine without it gets the other rows.
memory_kib=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
if ((quick || memory_kib < 7000000)); then
    sed -i '/^million|/d' "$rows"
fi

# Each command once, in the order of the table, with the number of samples that its rows want.
awk -F'|' -v quick="$quick" '
    { for (i = 3; i <= 5; i++) {
          if ($i == "") continue
          split($i, figure, ">")
          if (!(figure[1] in wanted)) order[++n] = figure[1]
          if ($9 > wanted[figure[1]]) wanted[figure[1]] = $9
      } }
    END { for (i = 1; i <= n; i++) print (quick && wanted[order[i]] > 2 ? 2 : wanted[order[i]]) "\t" order[i] }
' "$rows" >"$work_dir/commands"

measure() {
    local round wanted command rounds
    rounds=$(sort -n "$work_dir/commands" | tail -n 1 | cut -f1)
    # Thrown away: it wakes the processor up and, in a virtual machine, makes the host back the memory, whose first
    # touch costs several times more than any later one and would be charged to whoever comes first.
    for command in "floor yield 0 1" "fibers yield 0 1" "go yield 0 1" \
        "$(grep -o 'floor mem [0-9]* 1' "$work_dir/commands" | sort -k 3n | tail -n 1)"; do
        if [[ -n $command ]]; then
            note "warming up: $command"
            sample "$command"
        fi
    done
    : >"$samples"
    : >"$errors"
    for ((round = 1; round <= rounds; round++)); do
        if ((round > 1 && SECONDS > seconds_max)); then
            echo "stopped after $((round - 1)) of $rounds rounds: $SECONDS s" >>"$errors"
            break
        fi
        while IFS=$'\t' read -r wanted command; do
            if ((round <= wanted)); then
                note "round $round of $rounds, $SECONDS s: $command"
                sample "$command" </dev/null
            fi
        done <"$work_dir/commands"
    done
    note ""
}
measure

machine=$(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)
machine="${machine:-$(uname -m)}, $(nproc) cores"
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo none)
if [[ $commit != none && -n $(git -C "$here" status --porcelain 2>/dev/null) ]]; then
    commit+=+changes
fi
go_version=$( ((have_go)) && go version | awk '{ print $3 }' || echo "no Go")

awk -v json="$json" -v machine="$machine" -v kernel="$(uname -r)" -v commit="$commit" -v go_version="$go_version" \
    -v load="$(cut -d' ' -f1-3 /proc/loadavg)" -v seconds="$SECONDS" -v quick="$quick" \
    -f "$here/fibers.awk" "$samples" "$rows"

if [[ -s $errors ]]; then
    echo "What did not work:" >&2
    sort "$errors" | uniq -c | sed 's/^ */  /' >&2
fi
[[ -s $samples ]]
