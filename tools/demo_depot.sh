#!/usr/bin/env bash
# The story of examples/40_depot.c in two processes that are killed with kill -9 between the steps: demo_depot.sh EXAMPLE HOLDFAST FOLDER.
# For people; it exits with 1 if the story ends otherwise than it should (./dev test demo).
set -euo pipefail
example=$1 holdfast=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
api_pid= client_pid=
finish()
{
    for pid in $api_pid $client_pid; do
        kill -9 "$pid" 2>/dev/null || true
    done
}
trap finish EXIT

say()
{
    printf '\n== %s\n' "$*"
}

# await FILE PATTERN: until a process has written it.
await()
{
    local i
    for ((i = 0; i < 2000; i++)); do
        ! grep -qsE -- "$2" "$1" || return 0
        sleep 0.01
    done
    printf 'FAILED: no "%s" in %s: %s\n' "$2" "$1" "$(cat "$1")"
    exit 1
}

start_api() # ADDRESS
{
    "$example" api "$1" >>api.out 2>&1 & api_pid=$!
    await api.out '^tcp:'
    address=$(grep -m1 '^tcp:' api.out)
}

# client PATTERN STEPS...: a client that stays when it has done its steps. PATTERN: what it prints last.
client()
{
    local pattern=$1
    shift
    : >client.out
    "$example" client "$address" "$@" stay >>client.out 2>&1 & client_pid=$!
    await client.out "$pattern"
    cat client.out
}

kill_it() # PID
{
    kill -9 "$1"
    wait "$1" 2>/dev/null || true
}

say "An API, and a client with a depot in front of it. The client asks for the user."
start_api tcp:127.0.0.1:0
client 'from the API' get

say "kill -9 of the client, and of the API. A new client starts without network, and still answers."
kill_it $client_pid
kill_it $api_pid
client 'from the file' get

say "kill -9. The next one changes the user, twice. The changes are on the disk, and wait."
kill_it $client_pid
client 'a change of ours' get put=Grace put=Hopper get
say "What waits, asked of the running client (holdfast depot pending users.db):"
"$holdfast" depot pending users.db | tee pending.out
grep -qE 'acme/user/1 +put' pending.out

say "kill -9 of the client. Nothing is lost: the same from the file at rest."
kill_it $client_pid
"$holdfast" depot pending users.db 2>/dev/null | tee pending.out
grep -qE 'acme/user/1 +put' pending.out

say "The API is back, with the user that it began with. A new client sends what waits."
start_api "$address"
client 'from the API' settled now
await api.out 'the user is Hopper now'
grep 'API:' api.out
kill_it $client_pid
"$holdfast" depot pending users.db 2>/dev/null | grep -q 'no write waits'

say "All settled: the API has every change, in order."
