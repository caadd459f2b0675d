# Sourced by json.sh and verbs.sh, after $holdfast, $desk and $scratch are set: a file at rest (rest.db), one that a program has open (open.db), and
# a server ($server), each with the same runs; and what the tests of all three share.
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
export HOME=$scratch
unset XDG_CONFIG_HOME

pids=()
finish()
{
    for pid in "${pids[@]}"; do
        kill -9 "$pid" 2>/dev/null || true
    done
}
trap finish EXIT # ctest waits for what is left

fail()
{
    printf 'FAILED: %s\n' "$*"
    exit 1
}

# await FILE PATTERN: until a program has written it.
await()
{
    local i
    for ((i = 0; i < 1000; i++)); do
        ! grep -qsE -- "$2" "$1" || return 0
        sleep 0.01
    done
    fail "no '$2' in $1: $(cat "$1")"
}

# work ADDRESS QUEUE NAME: a worker of the queue; without a queue the program only has the file open.
work()
{
    # shellcheck disable=SC2086
    "$desk" "$1" $2 >"$3.out" & pids+=($!)
    await "$3.out" ready
}

# serve NAME OPTIONS...: a server, whose address is then in $server.
serve()
{
    local name=$1
    shift
    "$holdfast" serve --store "sqlite:$name.db" --listen 127.0.0.1:0 "$@" >"$name.out" 2>&1 & pids+=($!)
    await "$name.out" '127\.0\.0\.1:[0-9]+'
    server=temporal://$(grep -oE '127\.0\.0\.1:[0-9]+' "$name.out" | head -1)
}

work sqlite:seed.db seed seed
kill "${pids[0]}" && wait "${pids[0]}"
cp seed.db rest.db
cp seed.db open.db
work sqlite:open.db '' open
serve served
