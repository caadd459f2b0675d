#!/usr/bin/env bash
# Plugins without a main(): author.sh HOLDFAST HELLO NONE OTHER INSIDE BUGS ROUGH TESTS SCRATCH. `holdfast worker`, its refusals, its guard, and `holdfast replay`.
set -euo pipefail
holdfast=$1 hello=$2 none=$3 other=$4 inside=$5 bugs=$6 rough=$7 tests=$8 scratch=$9
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

pid=
trap '[[ -z $pid ]] || kill -9 "$pid" 2>/dev/null || true' EXIT

fail()
{
    printf 'FAILED: %s\n' "$*"
    exit 1
}

# refused CODE WORDS COMMAND...
refused()
{
    local code=0 expected=$1 words=$2
    shift 2
    "$holdfast" "$@" >out 2>&1 || code=$?
    [[ $code == "$expected" ]] || fail "$*: exit code $code, not $expected: $(cat out)"
    grep -q -- "$words" out || fail "$*: no '$words' in: $(cat out)"
}

refused 2 'needs a target and a plugin' worker orders.db
refused 2 'has no option --plug' worker orders.db --plug x
refused 2 'is not a plugin: it has no HF_PLUGIN' worker memory: --plugin "$none" --queue q
refused 2 'was compiled for Holdfast 0.0.7' worker memory: --plugin "$other" --queue q
refused 2 'has a Holdfast of its own inside' worker memory: --plugin "$inside" --queue q
refused 2 'cannot load the plugin' worker memory: --plugin nowhere.so --queue q
refused 2 'sqllite: is not the scheme of an address: use sqlite:PATH, ' worker sqllite:x.db --plugin "$hello" --queue q
refused 2 'is not a plugin: it has no HF_PLUGIN' worker new.db --plugin "$none" --queue q
refused 2 'cannot load the plugin' worker new.db --plugin "$hello" --plugin nowhere.so --queue q
[[ ! -e new.db ]] || fail "a worker without its plugin has made a file"
[[ ! -e sqllite:x.db ]] || fail "a worker has made a file with the name of a mistake"
refused 3 'no/such/folder' worker no/such/folder/x.db --plugin "$hello" --queue q
mkdir sealed
chmod a-w sealed
for folder in sealed /sys; do # root may write the first one
    [[ -d $folder ]] && touch "$folder/x.db" 2>touched || ! grep -qs 'Permission denied' touched ||
        refused 5 'its folder cannot be written to' worker "$folder/x.db" --plugin "$hello" --queue q
done

# A worker on a file, until SIGTERM.
mkfifo lines
"$holdfast" worker hello.db --plugin "$hello" --queue greetings --guard >lines 2>err &
pid=$!
exec 3<lines
read -r line <&3
[[ $line == *"worker of the task queue greetings on sqlite:hello.db" ]] || fail "the worker says: $line $(cat err)"
refused 3 "is open in process $pid: stop that process first, or ask it (holdfast db stats hello.db), or work through it" \
    worker hello.db --plugin "$hello" --queue other
grep -qF '("owner:PATH", or "sqlite:PATH?share=yes" in all programs)' out || fail "a second worker is not told how: $(cat out)"
kill -TERM "$pid"
wait "$pid" || fail "the worker ended with $?: $(cat err)"
pid=
exec 3<&-

# Verbs while a worker opens the file: they ask it, or it waits for them.
for ((i = 0; i < 10; i++)); do
    "$holdfast" worker hello.db --plugin "$hello" --queue greetings >said 2>err &
    pid=$!
    for ((k = 0; k < 4; k++)); do
        "$holdfast" start hello.db hello '"you"' --id "race-$i-$k" --queue greetings >out 2>&1 || fail "start while a worker opens the file: $(cat out)"
    done
    until grep -q 'worker of the task queue' said; do
        kill -0 "$pid" 2>/dev/null || fail "the worker ended: $(cat err)"
        sleep 0.01
    done
    kill -9 "$pid"
    wait "$pid" || true
done
pid=

# await FILE PATTERN: until the worker has written it, or has ended.
await()
{
    until grep -qsE -- "$2" "$1"; do
        kill -0 "$pid" 2>/dev/null || grep -qsE -- "$2" "$1" || fail "the worker ended without '$2': $(cat "$1")"
        sleep 0.01
    done
}

# rough TYPE: a worker of its own, and a run of this type.
rough()
{
    rm -f said err "rough-$1.db"*
    "$holdfast" worker "rough-$1.db" --plugin "$rough" --queue q >said 2>err &
    pid=$!
    await said 'worker of the task queue'
    "$holdfast" start "rough-$1.db" "$1" --id "$1-1" --queue q >out 2>&1 || true # its program may crash before it has answered
}

# ends CODE: the worker ends with it.
ends()
{
    local code=0
    wait "$pid" || code=$?
    pid=
    [[ $code == "$1" ]] || fail "the worker ended with $code, not $1: $(cat err)"
}

# Code that crashes has a name, and the program ends by its signal.
ulimit -c 0
rough crash
ends 139
grep -qF "holdfast: SIGSEGV in workflow 'crash' ('crash-1'): the program ends" err || fail "whose code has crashed: $(cat err)"
rough falls
ends 134
grep -qF "holdfast: SIGABRT in activity 'fall', attempt 1, of workflow 'falls-1': the program ends" err ||
    fail "whose code has crashed: $(cat err)"

# serves FILE: a worker that has nothing for the queue q.
serves()
{
    rm -f said err
    "$holdfast" worker "$1" --plugin "$hello" --queue other >said 2>err &
    pid=$!
    await said 'worker of the task queue'
}

# fallen TYPE CODE OPTION...: a run that has ended its program with its task in hand. The program before it did not close the file, so that no task goes
# out ahead of its commit (engine-U2), and this one is counted for certain.
fallen()
{
    local type=$1 expected=$2 code=0
    shift 2
    rm -f "fallen-$type.db"*
    serves "fallen-$type.db"
    "$holdfast" start "fallen-$type.db" "$type" --id "$type-1" --queue q >out 2>&1 || fail "start: $(cat out)"
    kill -9 "$pid"
    ends 137
    "$holdfast" worker "fallen-$type.db" --plugin "$rough" --queue q "$@" >said 2>err || code=$?
    [[ $code == "$expected" ]] || fail "the worker ended with $code, not $expected: $(cat err)"
}

# The same is said of a file at rest and of an open one.
fallen crash 139
for how in rest open; do
    [[ $how == rest ]] || serves fallen-crash.db
    "$holdfast" why fallen-crash.db crash-1 >out 2>&1 || fail "why: $(cat out)"
    grep -qE '^crash-1: its task was in hand when its program ended, 1 time: repair its code; or holdfast terminate fallen-crash.db crash-1' out ||
        fail "why of a task that ended its program ($how): $(cat out)"
done
kill -TERM "$pid"
ends 0

# What a task has said that failed comes before the ends of its program.
fallen trips 134 --guard
for how in rest open; do
    [[ $how == rest ]] || serves fallen-trips.db
    "$holdfast" list fallen-trips.db --stuck >out 2>&1 || fail "list --stuck: $(cat out)"
    grep -qE 'its workflow task fails, attempt 2.*holdfast why fallen-trips.db trips-1' out || fail "a task that fails ($how): $(cat out)"
    grep -qF 'time() in code of a workflow' out || fail "why a task fails ($how): $(cat out)"
    "$holdfast" list fallen-trips.db --stuck --json >out 2>&1 || fail "list --stuck: $(cat out)"
    grep -qE '"task-fails".*its workflow task fails, attempt 2; its program ended 1 time while it had the task in hand' out ||
        fail "a task that fails and was in hand ($how): $(cat out)"
done
kill -TERM "$pid"
ends 0

# A worker that has to wait when it is told to end says for what; a second signal ends it at once.
rough stays
until "$holdfast" show rough-stays.db stays-1 | grep -q 'at work for'; do
    sleep 0.01
done
kill -INT "$pid"
await err "stopping; 1 activity runs \('stay' of 'stays-1'\): 10 s to finish, .*; a second signal ends the program at once"
kill -INT "$pid"
ends 130
grep -q 'ended at once' err || fail "an end at once: $(cat err)"

# Histories that earlier versions recorded are replayed by other programs (tests/replay); here is one of hello, and one that differs.
refused 2 'needs histories and a plugin' replay hello.db
refused 3 'No such file' replay nowhere.json --plugin "$hello"
printf '{"events": []}' >empty.json
refused 3 'does not begin with WorkflowExecutionStarted' replay empty.json --plugin "$hello"
printf 'no json' >none.json
refused 3 'is not a history' replay none.json --plugin "$hello"
mkdir histories
cp "$tests/program/history/hello.json" histories/1.json
"$holdfast" replay histories --plugin "$hello" --verbose >out 2>&1 || fail "replay: $(cat out)"
grep -q '^1 history replayed: 1 the same, 0 differ$' out || fail "replay: $(cat out)"
sed 's/"0.010s"/"0.020s"/' histories/1.json >histories/2.json
refused 1 'the history has TimerStarted id=1 span=20ms (event 5), the workflow made StartTimer id=1 span=10ms' replay histories --plugin "$hello"
grep -q '^2 histories replayed: 1 the same, 1 differ$' out || fail "replay: $(cat out)"
refused 3 'does not have' replay histories --plugin "$bugs" --verbose

# Of a database the runs that go on: nobody goes on with one that has ended.
rm -f said err
"$holdfast" worker ended.db --plugin "$hello" --queue greetings >said 2>err &
pid=$!
await said 'worker of the task queue'
"$holdfast" run ended.db hello '"you"' --queue greetings >out 2>&1 || fail "run: $(cat out)"
kill -TERM "$pid"
ends 0
"$holdfast" replay ended.db --plugin "$hello" >out 2>&1 || fail "replay: $(cat out)"
grep -q '^0 histories replayed: 0 the same, 0 differ; 1 ended run was left out: --all' out || fail "replay of ended runs: $(cat out)"
"$holdfast" replay ended.db --plugin "$hello" --all >out 2>&1 || fail "replay --all: $(cat out)"
grep -q '^1 history replayed: 1 the same, 0 differ$' out || fail "replay --all: $(cat out)"
"$holdfast" start ended.db nobodys --id n --queue greetings >out 2>&1 || fail "start: $(cat out)"
refused 3 '0 histories replayed: 0 the same, 0 differ; 1 of workflows that the plugin does not have; 1 ended run was left out' \
    replay ended.db --plugin "$hello"
