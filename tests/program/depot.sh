#!/usr/bin/env bash
# holdfast depot, on a file at rest and on one that a program has open: depot.sh HOLDFAST PROGRAM SCRATCH
set -euo pipefail
holdfast=$1 program=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
pids=()
finish()
{
    for pid in "${pids[@]}"; do
        kill -9 "$pid" 2>/dev/null || true
    done
}
trap finish EXIT

fail()
{
    printf 'FAILED: %s\n' "$*"
    exit 1
}

# expect CODE PATTERN ARGS...: what holdfast prints, on stdout and stderr, has a line like this.
expect()
{
    local code=$1 pattern=$2 got=0
    shift 2
    "$holdfast" "$@" >out 2>&1 </dev/null || got=$?
    [[ $got == "$code" ]] || fail "holdfast $* exits with $got, not $code: $(cat out)"
    grep -qE -- "$pattern" out || fail "holdfast $* prints no '$pattern': $(cat out)"
}

stay()
{
    rm -f "$1.out"
    "$program" "$1" stay >"$1.out" & pids+=($!)
    local i
    for ((i = 0; i < 1000; i++)); do
        ! grep -qs ready "$1.out" || return 0
        sleep 0.01
    done
    fail "the program does not start"
}

"$program" rest.db
"$program" open.db
stay open.db
[[ $(stat -c %a open.db-sock) == 600 ]] || fail "the socket is open to others"

for file in rest.db open.db; do
    expect 0 'rows entry +[0-9]+' depot stats "$file"
    expect 0 'dead writes +1$' depot stats "$file"
    expect 0 'writes that wait +3$' depot stats "$file"
    expect 0 'acme/user/1 +value +.* e1$' depot show "$file"
    expect 0 'acme/user/none +absent' depot show "$file" acme
    expect 0 'old/user/1 +gone' depot show "$file" old user
    expect 0 '^  Ada$' depot show "$file" acme user 1
    expect 0 'bytes that are not text' depot show "$file" acme user binary
    expect 0 '"valueBase64":"AAEC/w=="' depot show "$file" acme user binary --json
    expect 0 '1 writes of it wait' depot show "$file" acme user 8
    expect 0 'there are more' depot show "$file" --limit 2
    expect 4 'no entry of this key' depot show "$file" acme user nobody
    expect 2 '--limit needs a number' depot show "$file" --limit x
    expect 0 '1 +acme/user/7 +put +dead +1 +5 +user 7 is read only' depot pending "$file"
    expect 0 'acme/user/10 +create +(waiting|sending)' depot pending "$file"
    expect 0 'no write is damaged' depot pending "$file" --damaged
    expect 4 'there is no write 77' depot retry "$file" 77
    expect 4 'there is no write 77' depot drop "$file" 77
    expect 2 'not the number of a write' depot drop "$file" seven
done
expect 0 'open in process [0-9]+' depot stats open.db
expect 0 'hits memory' depot stats open.db
expect 0 'acme/user/9 +put +sending' depot pending open.db
expect 6 'write 3 is being sent' depot drop open.db 3
expect 0 'acme/user/9 +put +waiting' depot pending rest.db

# A dead write: sent again, where it dies again if there is somebody to send it; then dropped.
expect 0 'when a program opens' depot retry rest.db 1
expect 0 '1 +acme/user/7 +put +waiting' depot pending rest.db
expect 0 'is sent again$' depot retry open.db 1
for ((i = 0; i < 1000; i++)); do
    "$holdfast" depot pending open.db >out
    ! grep -qE 'acme/user/7 +put +dead +2' out || break
    sleep 0.01
done
grep -qE 'acme/user/7 +put +dead +2' out || fail "the write was not sent again: $(cat out)"
for file in rest.db open.db; do
    expect 0 'is dropped' depot drop "$file" 1
    expect 4 'there is no write 1' depot drop "$file" 1
    expect 0 'acme/user/8' depot pending "$file"
    ! grep -q acme/user/7 out || fail "the write is still there"
done

# A write that cannot be read is set aside, listed and dropped by its number.
python=$(command -v python3 || true)
if [[ -n $python ]]; then
    cp rest.db damaged.db
    "$python" -c '
import sqlite3
file = sqlite3.connect("damaged.db")
file.execute("UPDATE pending SET v = ? WHERE id = 2", (b"this is not a record",))
file.commit()
file.close()' || fail "cannot damage the file"
    cp damaged.db damaged_open.db
    stay damaged_open.db
    for file in damaged.db damaged_open.db; do
        expect 0 '1 writes cannot be read: holdfast depot pending --damaged' depot pending "$file"
        expect 0 'write 2 cannot be read: 20 bytes' depot pending "$file" --damaged
        expect 0 'damaged writes +1$' depot stats "$file"
        expect 4 'there is no write 2' depot retry "$file" 2
        expect 0 'is dropped' depot drop "$file" 2
        expect 0 'no write is damaged' depot pending "$file" --damaged
    done
fi

# Files that are not a depot's.
expect 3 'there is no database' depot stats missing.db
[[ ! -e missing.db ]] || fail "the file was made"
expect 3 'there is no database' depot drop missing.db 1
[[ ! -e missing.db ]] || fail "the file was made"
echo 'not a database at all' >text.db
expect 3 'text.db' depot stats text.db
expect 3 "is a depot's file" db stats rest.db
expect 2 'an argument is missing' depot show
expect 2 'depot needs a subcommand' depot

# Killed: its lock and socket are left, and harm nobody.
kill -9 "${pids[0]}"
wait "${pids[0]}" 2>/dev/null || true
expect 0 'not open in any program' depot stats open.db
stay open.db
expect 0 'open in process' depot stats open.db
# Closed properly, it leaves nothing beside the file.
kill "${pids[-1]}"
wait "${pids[-1]}"
[[ ! -e open.db-sock && ! -e open.db-owner ]] || fail "something is left: $(ls)"
expect 0 'acme/user/9 +put +waiting' depot pending open.db
echo fine
