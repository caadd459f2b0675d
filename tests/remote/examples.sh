#!/usr/bin/env bash
# Each example with a workflow runs with the engine inside and on a server, unchanged (through.c). Its output and its result must be the
# same, and so must the events of its workflows, unless they run several things at once: then the order in which these end may differ.
#     examples.sh <holdfast program> <folder of the programs> <scratch folder> [address of another server]
set -euo pipefail
holdfast=$(realpath "$1") programs=$(realpath "$2") scratch=$3 given=${4:-}
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
failed=0
server=
trap '[[ -n $server ]] && kill "$server" 2>/dev/null || true' EXIT

# Examples in which several things happen at once, or a client sends something meanwhile: their lines and events come in any order, so they
# are compared as sets, without the events of workflow tasks (5 to 9).
parallel=" 20_order 23_timers 24_approval 25_updates 27_durable_quorum 28_children 29_entity 30_new_version "

# Examples in which signals go to whichever run of a chain is current. A run that ends takes those that it had no time for along to the next
# one, where they are no events (26) any more: which run has how many depends on the moment.
chained=" 29_entity "

# Starts a server on a store of its own; sets `address` and `server`.
start_server()
{
    if [[ -n $given ]]; then
        address=temporal://$given
        return
    fi
    rm -f server.fifo
    mkfifo server.fifo
    "$holdfast" serve --store "sqlite:$1.db" --listen 127.0.0.1:0 --log-level warn >server.fifo 2>>server.log &
    server=$!
    local line=
    read -r line <server.fifo
    address=temporal://127.0.0.1:${line##*:}
}

stop_server()
{
    if [[ -n $server ]]; then
        kill "$server"
        wait "$server" || true
        server=
    fi
}

# The events of all runs, with the order of runs taken out, and for parallel ones the order of events and what depends on the moment, too.
normal()
{
    local left_out='[5-9]'
    [[ $chained == *" $2 "* ]] && left_out='[5-9]\|26'
    if [[ $parallel == *" $2 "* ]]; then
        while read -r type rest; do
            echo "$type $(tr ' ' '\n' <<<"$rest" | grep -vx "$left_out" | sort -nu | tr '\n' ' ')"
        done <"$1" | sort
    else
        sort "$1"
    fi
}

# What is printed, but for what a server of Temporal does in another way: its timers take up to a second, so that fewer reminders come, and its
# timeouts do not tell their length.
printed()
{
    if [[ -n $given ]]; then
        sed -e '/^reminder /d' -e 's/ timeout after [0-9.]* s/ timeout/' "$1" | sort
    else
        sort "$1"
    fi
}

for program in "$programs"/through_*; do
    name=${program##*/through_}
    mkdir -p "$name"
    if ! (cd "$name" && HF_HISTORIES=inside.events timeout 120 "$program" >inside.out 2>inside.err); then
        echo "FAILED: $name with the engine inside"
        cat "$name/inside.err"
        failed=1
        continue
    fi
    start_server "$name"
    if ! (cd "$name" && HF_THROUGH=$address HF_HISTORIES=server.events timeout 120 "$program" >server.out 2>server.err); then
        if [[ -n $given ]] && grep -q "is for Holdfast servers" "$name/server.err"; then
            echo "$name: needs a Holdfast server, and says so"
        else
            echo "FAILED: $name on a server"
            cat "$name/server.err"
            failed=1
        fi
    elif ! diff <(printed "$name/inside.out") <(printed "$name/server.out"); then
        echo "FAILED: $name prints something else on a server"
        failed=1
    elif [[ -z $given ]] && ! diff <(normal "$name/inside.events" "$name") <(normal "$name/server.events" "$name"); then
        echo "FAILED: $name has other events on a server"
        failed=1
    else
        echo "$name: the same, $(wc -l <"$name/server.events") runs"
    fi
    stop_server
done
exit $failed
