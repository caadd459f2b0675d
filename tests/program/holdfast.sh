#!/usr/bin/env bash
# The program as its users meet it: holdfast.sh HOLDFAST ORDER FIXTURE SCRATCH. Exit codes, texts, JSON, and that looking at a
# file does not change it, whoever has it.
set -euo pipefail
holdfast=$1 order=$2 fixture=$3 scratch=$4
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

pid=
trap '[[ -z $pid ]] || kill -9 "$pid" 2>/dev/null || true' EXIT # ctest waits for what is left

fail()
{
    printf 'FAILED: %s\n' "$*"
    exit 1
}

# run CODE ARGS...: the output is in $out.
run()
{
    local code=$1 got=0
    shift
    out=$("$holdfast" "$@" 2>&1) || got=$?
    [[ $got == "$code" ]] || fail "holdfast $* exits with $got, not $code: $out"
}

says()
{
    [[ $out == *"$1"* ]] || fail "'$1' is not in: $out"
}

run 0 version
says "holdfast "
run 0 help
says "holdfast db check"
run 0 help --mdoc
says $'.It Ic db check\nFILE [\\-\\-deep] [\\-\\-json]\n.br\nLook for damage in the file.'
# Help of one command: each of its options and words is explained once.
while read -r command; do
    # shellcheck disable=SC2086
    run 0 help $command
    text=$out usage=${out%%$'\n'*}
    # shellcheck disable=SC2086
    run 0 $command --help
    [[ $out == "$text" ]] || fail "holdfast $command --help is not holdfast help $command: $out"
    # shellcheck disable=SC2086
    run 0 $command word -h
    for word in $(tr -d '[]{}' <<<"${usage#"holdfast $command"}" | grep -oE '(^| )(--?[a-z-]+|[A-Z]+)\b' | sort -u); do
        # the value of an option is explained with it
        [[ $word == -* || ! $usage =~ --?[a-z-]+\ $word ]] || continue
        [[ $command == serve ]] || (($(grep -cE -- "^  $word( |[|.])" <<<"$text") == 1)) || fail "help $command does not explain $word once: $text"
    done
done < <("$holdfast" help --mdoc | sed -n 's/^\.It Ic //p')
run 0 help cancel
says "one that has ended stays as it is"
line=$("$holdfast" help --mdoc | sed -n '/^\.It Ic batch start$/{n;s/\\-/-/gp}')
run 0 help
[[ $out == *"  holdfast batch start $line"* ]] || fail "the list of commands does not have the whole line of batch start: $line"
run 0 help db
says "holdfast db check"
[[ $out != *"batch"* ]] || fail "only the commands of db were asked for: $out"
run 0 db --help
says "holdfast db check"
run 0 serve --help
says "--store"
run 2 help frob
says "there is no command 'frob'"
run 2 help db frob
says "there is no command 'db frob'"
run 2
run 2 db
run 2 db check
says $'an argument is missing:\n  holdfast db check FILE'
[[ $out != *"db backup"* ]] || fail "only the line of the command was asked for: $out"
run 2 db check a b
run 2 db check --shallow a
says "this command has no option --shallow"
run 2 db export a --deep
says "this command has no option --deep"
says "histories as JSON"
run 2 db export a --run
says "--run needs a value"
run 2 juggle
says "there is no command 'juggle': 'holdfast help' lists all of them"
[[ $out != *"holdfast show"* ]] || fail "the list hides the sentence: $out"
for typo in strat:start sigal:signal worke:worker nmespace:namespace lits:list; do
    run 2 "${typo%:*}" x
    says "there is no command '${typo%:*}': did you mean ${typo#*:}? 'holdfast help' lists all of them"
done
run 2 x # as far from db as it can be
says "there is no command 'x': 'holdfast help' lists all of them"
run 0 help
says "holdfast show TARGET [RUN | --all]"
run 2 db frob x
says "there is no command 'db frob'; the commands are:"
says "holdfast db backup"
[[ $out != *"holdfast show"* && $out != *"durable workflows"* ]] || fail "only the commands of db were asked for: $out"
run 2 db
says "db needs a subcommand:"
run 2 $'\x1b[2Jdance'
says "there is no command '?[2Jdance': 'holdfast help' lists all of them"

run 3 db check missing.db
says "there is no database missing.db"
run 3 show "$scratch" x
says "is a folder"
echo "not a database, but long enough to be looked at as one; really: a hundred bytes and a few more of plain text" >text.db
run 3 db stats text.db
says "is not a database"

# A file at rest.
cp "$fixture" rest.db
before=$(sha256sum rest.db)
run 0 db check --deep rest.db
says "sound. 53 runs (42 open)"
run 0 db check --json rest.db
says '"sound":true'
run 0 db stats rest.db
says "not open in any program"
run 0 db stats --json rest.db
says '"rows":{"meta":1,'
run 0 show rest.db retry-1 --namespace ns
says "attempt 3"
says "the last one failed: Busy"
run 0 show rest.db backlog-1 --namespace ns # whom and what a run waits for has a name
says "a worker that polls the task queue later and has the workflow type"
run 0 show rest.db attempts --namespace ns
says "a workflow task that succeeds: it is retried; event 4 tells why the last one failed"
run 0 show rest.db signal-1 --namespace ns
says $'waits for\n  a signal; its code knows which, and no program has it in memory'
run 0 show rest.db busy --namespace ns
says "ago; no program has this file open"
[[ $out != *"at work"* ]] || fail "nobody is at work in a file at rest: $out"
run 0 show rest.db timer-1 --namespace ns --json
says '"eventType":"EVENT_TYPE_TIMER_STARTED"'
run 0 show rest.db
says "ID                        TYPE"
says "LAST EVENT"
says "... and 3 more: --all lists them"
[[ $(wc -l <<<"$out") == 52 ]] || fail "a title, 50 runs and a line of more were promised: $out"
run 0 show rest.db --all
[[ $(wc -l <<<"$out") == 54 && $out != *more* ]] || fail "a title and 53 runs were promised: $out"
started=$(sed 1d <<<"$out" | grep -oE '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z')
[[ $started == "$(sort -r <<<"$started")" ]] || fail "the newest comes first: $out"
run 0 show rest.db --all --namespace ns
says "retry-1"
run 0 show rest.db --namespace nobody
says "no runs in the namespace nobody"
run 0 show rest.db --json
says '"more":3}'
says '"workflowId":"'
says '"lastEventTime":"'
run 2 show rest.db timer-1 --full --json
says "--json cuts nothing"
run 2 show rest.db --full
says "--full needs a RUN"
run 2 show rest.db timer-1 --all
says "give either a RUN or --all"
run 2 show
run 3 show missing.db
run 4 show rest.db timer-1
says 'there is no workflow and no run "timer-1" in the namespace "default"'
run 0 db stats rest.db
says "runs that have ended"
run 0 db retention rest.db
says "default  for ever"
run 4 db retention rest.db nobody
says "there is no namespace 'nobody'"
run 0 list rest.db --namespace ns
[[ $(wc -l <<<"$out") == 52 ]] || fail "a title, 50 runs and a line of more were promised: $out"
says "ID                        TYPE"
says "... and more: --limit N lists N of them"
run 0 list rest.db --namespace ns --limit 50
[[ $(wc -l <<<"$out") == 51 ]] || fail "a title and the 50 runs that were asked for were promised: $out"
run 0 list rest.db "WorkflowId = 'retry-1'" --namespace ns
says "retry-1"
[[ $(wc -l <<<"$out") == 2 ]] || fail "a title and one run were promised: $out"
run 0 list rest.db "ExecutionStatus != 'Running' ORDER BY CloseTime" --limit 3 --json --namespace ns
says '[{"workflowId":"'
[[ $(grep -o workflowId <<<"$out" | wc -l) == 3 ]] || fail "three runs were promised: $out"
run 0 list rest.db "WorkflowId = 'nobody'" --namespace ns
says "no runs fit"
run 2 list rest.db "WorkflowId =" --namespace ns
says "the filter is wrong at column 13: a value for WorkflowId is missing"
run 4 list rest.db --namespace nobody
says "there is no namespace 'nobody'"
run 2 list rest.db --limit none
says "--limit none is not a number of runs"
run 0 stream rest.db retry-1 --namespace ns
[[ -z $out ]] || fail "a workflow that has published nothing has a stream: $out"
run 4 stream rest.db nobody --namespace ns
run 2 stream rest.db retry-1 --from x --namespace ns
says "--from x is not the number of a record"
run 0 count rest.db --namespace ns
says "Running          42"
run 0 count rest.db "ExecutionStatus = 'Running'" --namespace ns --json
says '{"total":42,"Running":42}'
run 0 namespace list rest.db
says "default                   Registered"
says "ns                        Registered" # the file is older than the registry: a run has this name
[[ $(wc -l <<<"$out") == 2 ]] || fail "two namespaces were promised: $out"
run 0 namespace describe rest.db ns
says "retention    for ever"
run 0 db retention rest.db ns
says "ns  for ever"
run 0 search-attribute list rest.db --namespace ns
says "the namespace ns has no custom search attributes"
run 0 batch list rest.db --namespace ns
says "no batches"
run 4 batch list rest.db --namespace nobody
run 0 search-attribute list rest.db
says "the namespace default has no custom search attributes"
run 3 list missing.db
run 3 namespace register missing.db shop
[[ ! -e missing.db ]] || fail "a file was made that was not there"
run 0 db export rest.db -o histories
says "53 histories"
[[ $(ls histories | wc -l) == 53 ]] || fail "53 histories were promised"
run 6 db export rest.db -o histories
says "exist"
run 0 db backup rest.db copy.db
run 0 db check --deep copy.db
says "53 runs"
run 6 db backup rest.db copy.db
says "exists already"
[[ $(sha256sum rest.db) == "$before" && $(ls rest.db* | wc -l) == 1 ]] || fail "looking has changed something"

# What changes a file at rest.
cp rest.db own.db
run 0 namespace register own.db shop
run 6 namespace register own.db shop
says "there is a namespace 'shop' already"
run 0 namespace deprecate own.db shop
run 0 namespace list own.db
says "shop                      Deprecated"
says "ns                        Registered"
run 2 search-attribute add own.db Amount Number
says "Number is not a type"
run 0 search-attribute add own.db Amount Int --namespace ns
run 0 search-attribute list own.db --namespace ns
says "Amount                    Int"
run 0 list own.db "Amount > 5" --namespace ns
says "no runs fit"
run 0 search-attribute remove own.db Amount --namespace ns
run 2 list own.db "Amount > 5" --namespace ns
says "Amount is not a search attribute"
run 2 db retention own.db ns soon
says "soon is not a span"
run 4 db retention own.db nobody 30d
run 0 db retention own.db ns 30d
says "ns  30 d"
run 0 db retention own.db
says "default  for ever"
run 0 db stats own.db --json
says '"expiredRuns":'
run 0 db shrink own.db
says "MiB, was"
run 3 db shrink missing.db
run 0 db check --deep own.db

# A damaged one: the last page is full of something else.
cp rest.db hurt.db
pages=$(($(stat -c %s hurt.db) / 4096))
for ((page = 8; page < pages; page += 3)); do
    printf 'XXXXXXXX' | dd of=hurt.db bs=1 seek=$((page * 4096 + 2000)) conv=notrunc status=none
done
run 1 db check hurt.db
says "DAMAGED"
run 1 db check --json hurt.db
says '"sound":false'

# One run of it is: it is named, and the others are there.
LC_ALL=C sed 's/retry-1/rXtry-1/g' rest.db >one.db
run 1 show one.db --all
says "DAMAGED "
says "its checksum does not fit"
[[ $(wc -l <<<"$out") == 54 ]] || fail "a title and 53 runs were promised: $out"
run 1 show one.db --all --json
says '"damage":"'
run 1 db export one.db -o rest
says "52 histories"
says "1 run is damaged and left out"
[[ $(ls rest | wc -l) == 52 ]] || fail "52 histories were promised"
run 1 db check one.db
[[ $out != *"has no row"* ]] || fail "it has one: $out"

# One that a program has open.
# order_sleeps SECONDS: starts the order; it sleeps for so long before its last step, and is process $pid.
order_sleeps()
{
    "$order" "$1" >order.out &
    pid=$!
    local gone=0
    until [[ $("$holdfast" show orders.db order-1 2>/dev/null) == *TimerStarted* ]]; do
        ((gone == 0)) || fail "the order has ended: $(cat order.out)"
        kill -0 "$pid" 2>/dev/null || gone=1
        sleep 0.05
    done
}

order_sleeps 3600 # nothing here depends on how long the rest takes
run 0 show orders.db order-1
says "timer 1, fires in"
says "charge  attempt 2, after BankBusy: the bank does not answer"
run 0 show orders.db order-1 --full
says '{"item": "kelp"}'
run 0 show orders.db order-1 --json
says '"data":"eyJpdGVtIjogImtlbHAifQ==","json":{"item": "kelp"}}'
run 0 db export orders.db --run order-1
[[ $out != *'"json":'* ]] || fail "other programs read exports: $out"
says "\"identity\":\"$pid@"
run 0 show orders.db
says "order-1                   order             Running "
run 0 show orders.db --json
says '"workflowId":"order-1"'
says '"more":0}'
[[ -z $(compgen -G 'orders.db-copy*') ]] || fail "a list has left its copy"
run_id=$("$holdfast" show orders.db order-1 | sed -n 's/^run \([^,]*\),.*/\1/p')
run 0 show orders.db "$run_id"
says "order-1"
run 0 db stats orders.db
says "open in process $pid"
run 0 db retention orders.db
says "default  for ever"
run 3 db retention orders.db default 30d
says "is open in process $pid, which has to be ended before this changes it"
run 3 db shrink orders.db
says "is open in process $pid"
run 0 db check --deep orders.db
says "sound. 1 run"
run 0 db export orders.db --run order-1
says '"eventType":"EVENT_TYPE_TIMER_STARTED"'
run 0 db export orders.db --all
says '"eventType":"EVENT_TYPE_TIMER_STARTED"'
("$holdfast" db export orders.db --all || true) | true # nobody reads it
[[ -z $(compgen -G 'orders.db-copy*') ]] || fail "an export into nowhere has left its copy"
run 0 db backup orders.db live.db
run 0 db check live.db
says "sound. 1 run"
mkdir links
ln -s ../orders.db links/orders.db
run 0 db backup links/orders.db linked.db
run 0 db check linked.db
says "sound. 1 run"
kill -9 "$pid"
wait "$pid" 2>/dev/null || true

# One that was not closed.
before=$(cat orders.db orders.db-wal | sha256sum)
run 0 db check --deep orders.db
says "did not close it"
says "sound. 1 run"
run 0 show orders.db order-1
says "TimerStarted"
[[ $(cat orders.db orders.db-wal | sha256sum) == "$before" ]] || fail "looking has changed something"
[[ ! -e orders.db-shm && ! -e orders.db-owner ]] || fail "looking has left something"
run 0 db check links/orders.db # whose log lies beside the file
says "did not close it"
says "sound. 1 run"
[[ ! -e orders.db-shm && $(ls links) == orders.db ]] || fail "looking through a link has left something"

# It goes on where it was, whatever it is told now. (On a machine that took a second for the kill it has ended.)
rm orders.db*
order_sleeps 1
kill -9 "$pid" 2>/dev/null || true
wait "$pid" 2>/dev/null || true
[[ $(timeout -k 5 60 "$order" 2) == *"five stars"* ]] || fail "the order did not end"
out=$("$order")
[[ $out == *"five stars"* && $out != *charging* ]] || fail "an order that has ended is not begun again: $out"
run 0 show orders.db
says "order-1                   order             Completed "
run 0 show orders.db order-1
says "WorkflowExecutionCompleted"
echo "the program does what it says"
