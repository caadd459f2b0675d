#!/usr/bin/env bash
# Each verb on a file at rest, on one that a program has open, and on a server: verbs.sh HOLDFAST DESK SCRATCH. What does not need a worker
# gives the same output and exit code on all three; what does says so on a file at rest, and exits with 3.
set -euo pipefail
holdfast=$1 desk=$2 scratch=$3
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

ready() # FILE
{
    local i
    for ((i = 0; i < 1000; i++)); do
        ! grep -q ready "$1" || return 0
        sleep 0.01
    done
    fail "$1 does not get ready"
}

# Ids of runs, times, spans and the target itself are different each time.
plain()
{
    sed -E -e 's/[0-9a-f]{8}-[0-9a-f-]{27}/RUN/g' -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/TIME/g' -e 's/\+?[0-9]+\.[0-9]{3} s/SPAN/g' \
        -e "s#temporal://[0-9.]+:[0-9]+|(owner:)?[a-z]+\.db#TARGET#g" -e 's/  +/  /g' -e 's/ +$//'
}

# The verbs that need no worker, one after the other.
script()
{
    local target=$1 words
    while read -r words; do
        [[ -n $words ]] || continue
        local code=0 text
        eval "set -- $words"
        text=$("$holdfast" "$@" 2>&1 </dev/null) || code=$?
        printf '$ %s\n%s\n= %s\n' "$words" "$text" "$code"
    done <<END
start $target patient --id one --queue nobody
start $target patient '{"a": [1, 2]}' --id two --queue nobody --json
start $target patient --id one --queue nobody
start $target patient '{"a": oops}' --id three
start $target patient --id $'caf\351' --queue nobody
start $target patient --id three --queue $'caf\351'
start $target $'caf\351' --id three
signal $target one $'caf\351'
start $target patient @missing.json --id three
signal $target one go '{"x": 1}'
signal $target one go 7 --json
signal $target nobody go
list $target "WorkflowId = 'one'"
list $target "WorkflowId = 'one'" --json
list $target "WorkflowId ="
list $target --namespace nowhere
count $target
count $target "WorkflowId = 'two'" --json
stream $target one
stream $target nobody
show $target two --json
show $target nobody
cancel $target one --reason 'no need'
cancel $target nobody
terminate $target one --reason 'at once'
terminate $target one
result $target one
result $target one --json
show $target one --follow
show $target nobody --follow
show $target --follow
list $target "WorkflowId = 'one'" --current
list $target --current --stuck
start $target patient --id one --queue nobody
list $target "WorkflowId = 'one' AND ExecutionStatus = 'Terminated'"
list $target "WorkflowId = 'one' AND ExecutionStatus = 'Terminated'" --current
terminate $target one --reason 'once more'
why $target one
why $target two
why $target nobody
reset $target two
reset $target two --event x
reset $target two --first --last
batch start $target stop-all terminate "WorkflowId = 'two'" --reason enough
batch start $target stop-all terminate "WorkflowId = 'two'" --reason enough
delete $target two
delete $target nobody
count $target
namespace register $target other
namespace register $target other
namespace list $target
search-attribute add $target Color Keyword
search-attribute add $target Color Int
search-attribute list $target
search-attribute remove $target Color
search-attribute remove $target Color
END
}

"$desk" sqlite:seed.db seed >seed.out & pids+=($!)
ready seed.out
kill "${pids[0]}" && wait "${pids[0]}"
cp seed.db rest.db
cp seed.db open.db
"$desk" sqlite:open.db >open.out & pids+=($!)
ready open.out
"$holdfast" serve --store sqlite:served.db --listen 127.0.0.1:0 >served.out 2>&1 & pids+=($!)
for ((i = 0; i < 1000; i++)); do
    ! grep -qE '127\.0\.0\.1:[0-9]+' served.out || break
    sleep 0.01
done
server=temporal://$(grep -oE '127\.0\.0\.1:[0-9]+' served.out | head -1)

script rest.db | plain >rest.txt
script open.db | plain >open.txt
script "$server" | plain >server.txt
diff rest.txt open.txt || fail "a file at rest and an open one differ"
diff open.txt server.txt || fail "an open file and a server differ"
cat rest.txt

# What needs a worker.
for verb in "run rest.db echo 1" "query rest.db one state" "update rest.db one add 1" "stack rest.db one"; do
    # shellcheck disable=SC2086
    run 3 $verb
    says "no program has rest.db open"
done
run 0 start rest.db patient --id open-one --queue q
run 3 result rest.db open-one
says "has not ended, and no program has rest.db open"
for kind in owned server; do
    target=$server address=$server
    [[ $kind == server ]] || target=work.db address=sqlite:work.db
    "$desk" "$address" q >"$kind.out" & pids+=($!)
    ready "$kind.out"
    run 0 run $target echo '{"n": 7}' --queue q --id e1
    [[ $out == '{"n": 7}' ]] || fail "the input comes back: $out"
    echo '[1, 2]' >in.json
    run 0 run $target echo @in.json --queue q --id e2 --json
    [[ $out == '{"workflowId":"e2","result":[1, 2]}' ]] || fail "the result as JSON: $out"
    out=$(echo '"in"' | "$holdfast" run $target echo - --queue q --id e3)
    [[ $out == '"in"' ]] || fail "the input comes from stdin: $out"
    run 0 start $target patient --id p --queue q
    run 0 query $target p state
    [[ $out == '{"total": 0}' ]] || fail "a query: $out"
    run 1 query $target p nothing
    says "has no handler for query 'nothing'"
    run 0 update $target p add 5
    [[ $out == 5 ]] || fail "an update: $out"
    run 0 query $target p state --json
    [[ $out == '{"workflowId":"p","result":{"total": 5}}' ]] || fail "a query as JSON: $out"
    run 0 stack $target p
    says "hf_signal_wait on 'go'"
    run 0 stream $target p
    says 'note  {"percent": 10}'
    run 3 result $target p --timeout 1s
    run 0 signal $target p go '"done"'
    run 0 result $target p
    [[ $out == '"done"' ]] || fail "the result: $out"
    run 0 stream $target p --follow
    says 'note  {"percent": 10}'
    run 1 run $target buy --queue q --id b
    says "insufficient funds"
    run 1 result $target b --json
    says '"type":"CardDeclined"'
    run 0 why $target b
    says "CardDeclined: insufficient funds"
    says "child the-payment"
    says "activity decline"

done

# What is stuck, and why.
run 0 start rest.db patient --id alone --queue nobody
run 0 start work.db patient --id alone --queue nobody
run 0 list work.db --stuck
says "no worker polls the task queue nobody"
says "start a worker of that queue"
run 0 top work.db
says "1 run is stuck: holdfast list work.db --stuck"
run 3 top rest.db
run 3 show rest.db alone --follow
says "WorkflowExecutionStarted"
says "no program has rest.db open, and so nothing happens"

# show --follow goes on until the run has ended.
run 0 start work.db patient --id followed --queue q
"$holdfast" show work.db followed --follow >followed.txt & pids+=($!)
follower=$!
for ((i = 0; i < 1000; i++)); do
    ! grep -qs WorkflowTaskCompleted followed.txt || break
    sleep 0.01
done
run 0 signal work.db followed go '"on"'
wait "$follower"
grep -q 'WorkflowExecutionCompleted *"on"' followed.txt || fail "show --follow: $(cat followed.txt)"

# Colours and columns are a terminal's.
if type -P script >/dev/null; then
    on_terminal()
    {
        command script -qec "stty cols 40; $1" /dev/null </dev/null | tr -d '\r'
    }
    export TERM=xterm
    out=$(on_terminal "'$holdfast' list work.db")
    says $'\033['
    out=$(on_terminal "NO_COLOR=1 '$holdfast' list work.db")
    [[ $out != *$'\033['* ]] || fail "NO_COLOR is not respected: $out"
    while IFS= read -r line; do
        ((${#line} <= 40)) || fail "a line of ${#line} columns on a terminal of 40: $line"
    done <<<"$out"
fi
run 0 list work.db
[[ $out != *$'\033['* ]] || fail "colours in a pipe: $out"

# Settings of a server: the environment, and a file.
run 2 worker @ --plugin none.so --queue q
says "neither names one"
[[ ! -e @ ]] || fail "worker @ has made a file"
run 2 count @
says "neither names one"
HOLDFAST_ADDRESS=${server#temporal://} run 0 count @
mkdir -p .config/holdfast
printf 'address = %s\n# a remark\nnamespace = nowhere\n' "$server" >.config/holdfast/config
run 4 count @
says "nowhere"
HOLDFAST_NAMESPACE=default run 0 count @
echo 'colour = red' >.config/holdfast/config
run 2 count @
says "there is no setting 'colour'"
rm .config/holdfast/config
run 3 count temporal://127.0.0.1:1

# Made from the table.
run 0 completion
bash -n <(printf '%s\n' "$out") || fail "the completion is not a script"
for verb in start run result signal query update cancel terminate reset show why stack list count stream delete batch; do
    says "$verb"
done
run 0 help --mdoc
says "holdfast"
echo "fine"
