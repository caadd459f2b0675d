#!/usr/bin/env bash
# Each verb on a file at rest, on one that a program has open, and on a server: verbs.sh HOLDFAST DESK SCRATCH. What does not need a worker
# gives the same output and exit code on all three; what does says so on a file at rest, and exits with 3.
set -euo pipefail
holdfast=$1 desk=$2 scratch=$3
# shellcheck source=tests/program/targets.sh
. "${0%/*}/targets.sh"

# run CODE ARGS...: the output is in $out.
run()
{
    local code=$1 got=0
    shift
    out=$("$holdfast" "$@" 2>&1 </dev/null) || got=$?
    [[ $got == "$code" ]] || fail "holdfast $* exits with $got, not $code: $out"
}

says()
{
    [[ $out == *"$1"* ]] || fail "'$1' is not in: $out"
}

# await_show TARGET ID PATTERN: until show says so.
await_show()
{
    local i
    for ((i = 0; i < 1000; i++)); do
        run 0 show "$1" "$2"
        ! grep -qE -- "$3" <<<"$out" || return 0
    done
    fail "no '$3' in: $out"
}

# Ids of runs, times, spans and the target itself are different each time.
plain()
{
    sed -E -e 's/[0-9a-f]{8}-[0-9a-f-]{27}/RUN/g' -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/TIME/g' -e 's/\+?[0-9]+\.[0-9]{3} s/SPAN/g' \
        -e 's/, but there are workers of: nothing;/;/' \
        -e "s#temporal://[0-9.]+:[0-9]+|(owner:)?[a-z]+\.db#TARGET#g" -e 's/  +/  /g' -e 's/ +$//'
}

# The verbs that need no worker, one after the other: the exit code, and the words.
script() # TARGET
{
    local target=$1 expected words
    while read -r expected words; do
        [[ -n $words ]] || continue
        local code=0 text
        eval "set -- $words"
        text=$("$holdfast" "$@" 2>&1 </dev/null) || code=$?
        [[ $code == "$expected" ]] || fail "holdfast $words exits with $code, not $expected: $text" >&2
        printf '$ %s\n%s\n= %s\n' "$words" "$text" "$code"
    done <<END
0 start $target patient --id one --queue nobody
0 start $target patient '{"a": [1, 2]}' --id two --queue nobody --json
6 start $target patient --id one --queue nobody
2 start $target patient '{"a": oops}' --id three
2 start $target patient --id $'caf\351' --queue nobody
2 start $target patient --id three --queue $'caf\351'
2 start $target $'caf\351' --id three
4 start $target patient --id three --namespace nowhere
2 signal $target one $'caf\351'
2 start $target patient @missing.json --id three
0 signal $target one go '{"x": 1}'
0 signal $target one go 7 --json
4 signal $target nobody go
2 signal $target one go '{'
0 signal $target one go -1
0 signal $target one go -0.5e3 --json
0 signal $target one go -- -1
2 signal $target one go -- -x
2 signal $target one go -x
4 signal $target -- -nobody go
0 list $target "WorkflowId = 'one'"
0 list $target "WorkflowId = 'one'" --json
2 list $target "WorkflowId ="
2 list $target --limit none
4 list $target --namespace nowhere
0 count $target
0 count $target "WorkflowId = 'two'" --json
2 count $target "Nonsense = 1"
4 count $target --namespace nowhere
0 stream $target one
4 stream $target nobody
2 stream $target one --from x
0 show $target two --json
4 show $target nobody
2 show $target two --json --full
0 cancel $target one --reason 'no need'
4 cancel $target nobody
0 terminate $target one --reason 'at once'
4 terminate $target one
4 terminate $target nobody
4 signal $target one go
0 cancel $target one
1 result $target one
1 result $target one --json
4 result $target nobody
2 result $target one --timeout long
0 show $target one --follow
4 show $target nobody --follow
2 show $target --follow
0 list $target "WorkflowId = 'one'" --current
2 list $target --current --stuck
0 start $target patient --id one --queue nobody
0 list $target "WorkflowId = 'one' AND ExecutionStatus = 'Terminated'"
0 list $target "WorkflowId = 'one' AND ExecutionStatus = 'Terminated'" --current
0 terminate $target one --reason 'once more'
0 start $target patient --id twice --queue nobody
0 terminate $target twice
0 start $target patient --id twice --queue nobody
0 delete $target twice
0 list $target "WorkflowId = 'twice'"
0 list $target "WorkflowId = 'twice'" --current
0 why $target one
4 why $target nobody
0 reset $target two
2 reset $target two --event x
2 reset $target two --first --last
2 reset $target two --event 999
4 reset $target nobody
0 batch start $target stop-all terminate "WorkflowId = 'two'" --reason enough
6 batch start $target stop-all terminate "WorkflowId = 'two'" --reason enough
2 batch start $target other dance "WorkflowId = 'two'"
2 batch start $target other terminate "WorkflowId ="
2 batch start $target other signal "WorkflowId = 'two'"
4 batch start $target other terminate "WorkflowId = 'two'" --namespace nowhere
0 batch start $target none cancel "WorkflowId = 'nobody'" --json
0 start $target patient --id three --queue nobody
0 start $target patient --id four --queue nobody
0 start $target patient --id five --queue nobody
0 batch start $target list signal --id three --id four --signal go
0 batch start $target lines terminate --ids @lines.txt --reason enough
0 list $target "WorkflowId = 'three'"
0 count $target "WorkflowId IN ('four', 'five')"
0 batch show $target lines
0 batch start $target longer activity-options "WorkflowId = 'two'" --start-to-close 90m --attempts 0 --activity-type buy --json
0 batch start $target back activity-options --id two --original
2 batch start $target other activity-options --id two
2 batch start $target other activity-options --id two --heartbeat soon
2 batch start $target other activity-options --id two --attempts some
2 batch start $target other activity-options --id two --original --attempts 3
0 batch start $target calm unpause-activities --id two --activity-type buy
2 batch start $target other terminate
2 batch start $target other terminate "WorkflowId = 'two'" --id two
2 batch start $target other terminate ''
2 batch start $target other terminate "WorkflowId = 'two'" --rate inf
2 batch start $target other terminate --ids two
2 batch start $target other terminate --ids @nowhere.txt
2 batch start $target other terminate --ids @empty.txt
2 batch start $target other terminate --ids @many.txt
2 batch start $target other terminate --ids -
2 batch start $target other terminate --id
0 delete $target three
0 delete $target four
0 delete $target five
0 batch show $target stop-all
0 batch show $target stop-all --json
4 batch show $target nobody
0 batch list $target
0 batch list $target --json
4 batch list $target --namespace nowhere
4 batch stop $target stop-all
4 batch stop $target nobody
0 delete $target two --json
4 delete $target nobody
2 delete $target two --run x --all
0 count $target
0 namespace register $target other --json
6 namespace register $target other
2 namespace register $target ''
0 namespace describe $target default
0 namespace describe $target other --json
4 namespace describe $target nowhere
0 namespace update $target other --description 'many orders' --owner a@b --data team=kelp --data site=sea --retention 30d
0 namespace describe $target other
0 namespace update $target other --retention 0 --data site=
0 namespace describe $target other --json
0 namespace update $target other --state Deprecated
0 namespace update $target other --state Registered --json
0 namespace describe $target other
2 namespace update $target other
2 namespace update $target other --retention soon
2 namespace update $target other --state Deleted
2 namespace update $target other --data team
2 namespace register $target third --retention soon
4 namespace update $target nowhere --owner a@b
0 namespace register $target third --description three --retention 12h --owner c@d --data a=b=c
0 namespace describe $target third
0 namespace delete $target third
0 namespace list $target
0 namespace deprecate $target other
4 namespace deprecate $target nowhere
0 namespace list $target --json
0 namespace delete $target other
4 namespace delete $target nowhere
0 search-attribute add $target Color Keyword
6 search-attribute add $target Color Int
2 search-attribute add $target Color Purple
0 search-attribute list $target
4 search-attribute list $target --namespace nowhere
0 search-attribute remove $target Color
4 search-attribute remove $target Color
END
}

printf 'four\nfive\r\n\nnobody\n' >lines.txt
: >empty.txt
seq 1001 >many.txt
script rest.db | plain >rest.txt
script open.db | plain >open.txt
script "$server" | plain >server.txt
diff rest.txt open.txt || fail "a file at rest and an open one differ"
diff open.txt server.txt || fail "an open file and a server differ"
cat rest.txt
[[ $(grep -c '^holdfast: no worker polls the task queue nobody now; the workflow waits for one$' rest.txt) == 6 ]] ||
    fail "a start into a queue that nobody polls is silent"
grep -A1 '^\$ cancel .* one$' rest.txt | grep -q 'one had ended already (Terminated), so nothing was canceled' ||
    fail "a cancel of a run that has ended is silent"
[[ $(grep -c '^holdfast: one has ended already$' rest.txt) == 2 ]] || fail "a terminate or signal does not name the run that has ended"
grep -A1 "'twice'\" --current$" rest.txt | grep -q 'no runs fit' || fail "an older run is the current one of an id whose newest was deleted"
words=$(grep -E '^holdfast: (.* )?(hf_|\.[a-z_]+ )' rest.txt) && fail "names of C on the command line: $words"
[[ $(grep -c 'had ended already' rest.txt) == 1 ]] || fail "a cancel of a run that goes on says that it has ended"

# A list of ids from stdin, with a run that is not the current one.
old=$("$holdfast" start rest.db patient --id again --queue nobody --json | sed 's/.*"runId":"\([^"]*\)".*/\1/')
run 0 terminate rest.db again
run 0 start rest.db patient --id again --queue nobody
out=$(printf 'again\t%s\n' "$old" | "$holdfast" batch start rest.db runs delete --ids -)
says "1 of 1 runs, 0 refused"
run 0 list rest.db "WorkflowId = 'again'" --json
says '"state":"Running"'
[[ $out != *"$old"* ]] || fail "the older run was named, and is there: $out"
run 0 delete rest.db again

# Every verb with a target, with words that it accepts; $t is the target. Reading verbs are marked with r, those that need a worker with q.
verbs='
w start $t patient --queue nobody
q run $t patient --queue nobody --timeout 1s
r result $t one
w signal $t one go
q query $t one state
q update $t one add 1
w cancel $t one
w terminate $t one
w reset $t one
r show $t one
r why $t one
q stack $t one
r list $t
r count $t
r stream $t one
q top $t --once
r namespace list $t
w namespace register $t more
r namespace describe $t default
w namespace update $t more --owner a@b
w namespace deprecate $t more
w namespace delete $t more
w delete $t one
w batch start $t job terminate "WorkflowId = 1"
w batch stop $t job
r batch show $t job
r batch list $t
r search-attribute list $t
w search-attribute add $t Size Int
w search-attribute remove $t Size
'
# all CODE TARGET KINDS [OPTION ...]: all verbs of these kinds exit with the code. They do nothing, and so they may run at once.
all()
{
    local code=$1 t=$2 kinds=$3 kind words job jobs=()
    shift 3
    while read -r kind words; do
        [[ -n $words && $kinds == *"$kind"* ]] || continue
        (eval "run $code $words ${*@Q}") & jobs+=($!)
    done <<<"$verbs"
    for job in "${jobs[@]}"; do
        wait "$job" || fail "not all verbs exit with $code on $t $*"
    done
}

while read -r command; do
    grep -q -- " $command \$t" <<<"$verbs" || fail "the test has no words for: $command"
done < <("$holdfast" help | awk '/^  holdfast .*TARGET/ && $2 != "worker" { print $2 ($3 != "TARGET" ? " " $3 : "") }')
for target in rest.db open.db "$server"; do
    all 2 $target rwq --nonsense
    all 2 $target rwq word word word word word
done
all 3 nowhere.db rwq              # there is no such file ...
[[ ! -e nowhere.db ]] || fail "a verb has made a file"
all 3 owner:rest.db rwq           # ... no program that has it open ...
all 3 temporal://127.0.0.1:1 rwq  # ... and no server
echo text >text.db
all 3 text.db rwq
# What must not be done: a key that only reads, no key, and another user's file.
key=$("$holdfast" key add --keys keys --permissions default:read 2>/dev/null)
open_server=$server
serve guarded --keys keys
HOLDFAST_API_KEY=$key all 5 "$server" w
HOLDFAST_API_KEY=$key run 0 count "$server"
all 5 "$server" rwq
server=$open_server
if [[ $(id -u) == 0 ]] && type -P setpriv >/dev/null; then
    cp rest.db secret.db
    chmod 600 secret.db
    chmod 711 .
    program=$holdfast
    holdfast=as_nobody
    as_nobody()
    {
        setpriv --reuid 65534 --clear-groups "$program" "$@"
    }
    all 5 "$PWD/secret.db" rwq
    all 5 "$PWD/open.db" rwq
    holdfast=$program
fi

run 0 start rest.db patient --id open-three --queue nobody
run 0 why rest.db open-three
says "open-three has not failed"
for place in sqllite:x.db C:x temporal:x; do
    all 2 $place rwq
    run 2 list $place
    says "is not the scheme of an address: use sqlite:PATH, owner:PATH, memory:, temporal://HOST:PORT, or ./$place for a file"
done
run 3 list ./sqllite:x.db
cp rest.db ./sqllite:x.db
run 0 count ./sqllite:x.db
run 0 count sqlite:sqllite:x.db

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
    work "$address" q "$kind"
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
    says "has no handler for query 'nothing'; it has 'state'"
    run 0 update $target p add 5
    [[ $out == 5 ]] || fail "an update: $out"
    run 0 update $target p add 2 --id more
    run 1 update $target p add -1 --id less # a negative number is an input, and not an option
    says "holdfast: the update was refused, or failed: -1 is not positive"
    run 0 update $target p add 0 --id nothing --
    run 2 update $target p add -x
    says "this command has no option -x"
    run 0 show $target p
    says "more add  2"
    [[ $out =~ UpdateCompleted\ +of\ [0-9]+\ add,\ id\ more\ \ 7 ]] || fail "an update is shown with its result: $out"
    [[ $out =~ UpdateCompleted\ +of\ [0-9]+\ add,\ id\ less\ \ TooLittle:\ -1\ is\ not\ positive ]] ||
        fail "a failed update is shown with its failure: $out"
    run 0 query $target p state --json
    [[ $out == '{"workflowId":"p","result":{"total": 7}}' ]] || fail "a query as JSON: $out"
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
    run 1 result $target b
    [[ $out == "holdfast: b failed: "* ]] || fail "the result of a run that has failed does not say so: $out"
    run 1 result $target b --json
    says '"type":"CardDeclined"'
    run 0 why $target b
    says "CardDeclined: insufficient funds"
    says "child the-payment"
    says "activity decline"
    run 0 start $target patient --id tired --queue q
    run 0 cancel $target tired --reason 'no need any more'
    run 1 result $target tired
    [[ $out == "holdfast: tired: the workflow was canceled: no need any more" ]] || fail "a canceled run: $out"
    run 0 run $target sloppy --queue q --id s
    [[ $out == done ]] || fail "text that is not JSON, as it is: $out"
    run 0 result $target s --json
    [[ $out == '{"workflowId":"s","result":"done"}' ]] || fail "text that is not JSON, within JSON: $out"
    run 0 start $target patient --id unpolled --queue nobody
    run 0 why $target unpolled
    [[ $out == "unpolled: no worker polls the task queue nobody: start a worker of that queue" ]] || fail "why it waits: $out"
    run 0 why $target unpolled --json
    says '"message":"no worker polls the task queue nobody: start a worker of that queue"'
    run 0 start $target patient --id polled --queue q
    run 0 why $target polled
    says "polled has not failed"
    run 0 show $target unpolled
    says "a worker that polls the task queue nobody and has the workflow patient: none polls this queue"
    run 0 terminate $target unpolled
    run 0 start $target echo --id forgotten
    says "no worker polls the task queue default now, but there are workers of: q; the workflow waits for one"
    run 0 terminate $target forgotten
    run 0 start $target afar --id afar --queue q
    [[ $out != *"polls"* ]] || fail "a queue with a worker: $out"
    await_show $target afar 'activity 1 decline, attempt 1, waits for a worker for .*; no worker polls the task queue mails for activities$'
    run 0 why $target afar
    says "afar: activity decline: no worker polls the task queue mails for activities: start a worker of that queue"
    run 0 list $target --stuck
    says "activity decline: no worker polls the task queue mails for activities"
    run 0 terminate $target afar
    run 0 terminate $target polled
    run 0 why $target tired
    says "WorkflowCanceled: no need any more"
    run 0 start $target borrow --id l --queue q
    run 0 update $target l back
    run 0 show $target l
    [[ $out =~ activity\ 1\ lend,\ attempt\ 1,\ at\ work\ for\ .*\;\ it\ was\ asked\ to\ end ]] ||
        fail "an activity that was asked to end is at work: $out"
    run 0 why $target l
    says "activity lend, attempt 1: it was asked to end, and has not ended yet"
    run 0 terminate $target l
done

# retention= of an address: the file remembers it, and what a call has said since.
work 'sqlite:keep.db?retention=30d' '' keep
run 0 namespace describe keep.db default
says "retention    30 d"
run 0 namespace update keep.db default --retention 12h
kill "${pids[-1]}" && wait "${pids[-1]}"
run 0 namespace describe keep.db default
says "retention    12 h"
work 'sqlite:keep.db' '' keep
run 0 db retention keep.db default
says "default  12 h"

# A list that nobody limits says that there is more.
cp "${0%/*}/../fixtures/0003.db" many.db
run 0 list many.db --namespace ns
says "... and more: --limit N lists N of them"
work sqlite:many.db '' many
run 0 list many.db --namespace ns
[[ $(wc -l <<<"$out") == 52 ]] || fail "a title, 50 runs and a line of more were promised: $out"
says "... and more: --limit N lists N of them"
run 0 list many.db --namespace ns --json
[[ $(grep -o workflowId <<<"$out" | wc -l) == 50 ]] || fail "50 runs were promised: $out"
run 0 list many.db "WorkflowId = 'done-1'" --namespace ns
[[ $out != *more* ]] || fail "there is one such run: $out"

# What is stuck, and why.
run 0 start rest.db patient --id alone --queue nobody
run 0 start work.db patient --id alone --queue nobody
run 0 list work.db --stuck
says "no worker polls the task queue nobody"
says "start a worker of that queue"
run 0 list rest.db --stuck
[[ $out =~ holdfast:\ [0-9]+\ runs\ could\ go\ on,\ but\ no\ program\ has\ rest.db\ open:\ start\ its\ worker ]] ||
    fail "a file at rest with runs that wait: $out"
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
await followed.txt WorkflowTaskCompleted
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

    # What takes longer than a second tells how long, here because the program that has the file open stands still.
    work sqlite:still.db '' still
    for words in 'delete still.db nobody --all' 'count still.db' 'list still.db' 'db stats still.db'; do
        kill -STOP "${pids[-1]}"
        command script -qefc "'$holdfast' $words" /dev/null </dev/null >still.txt & waiter=$!
        await still.txt '[a-z]: [1-9][0-9]* s'
        kill -CONT "${pids[-1]}"
        wait "$waiter" || [[ $words == delete* && $? == 4 ]] || fail "holdfast $words: $(cat still.txt)"
    done
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

# Exit codes of commands without a target.
run 2 signal rest.db one go maybe
says "lexical error: invalid char in json text at byte 0; a text has quotes in JSON: '\"maybe\"'"
run 3 start nowhere.db patient --queue q
says 'a worker makes the file: holdfast worker nowhere.db --plugin x.so --queue q'
run 2 nonsense
run 2 version more
run 2 db
run 2 key add --keys keys
run 2 key list
run 4 key revoke --keys keys nobody
run 2 limits --json --markdown
run 0 db check rest.db
run 3 db check nowhere.db
run 3 db stats nowhere.db
run 3 db export nowhere.db
run 3 db shrink nowhere.db
run 3 db shrink open.db
says "which has to be ended"
run 3 db retention nowhere.db
run 4 db retention rest.db nowhere
run 4 db retention rest.db nowhere 3d
run 2 db retention rest.db default long
run 3 db retention open.db default 3d
for file in rest.db open.db; do
    run 0 db backup $file "copy-$file"
    run 6 db backup $file "copy-$file"
    run 0 db export $file -o "histories-$file"
    run 6 db export $file -o "histories-$file"
    run 4 db export $file --run nobody
done
run 3 db backup nowhere.db copy.db

# Made from the table.
run 0 completion
bash -n <(printf '%s\n' "$out") || fail "the completion is not a script"
for verb in start run result signal query update cancel terminate reset show why stack list count stream delete batch; do
    says "$verb"
done
run 0 help --mdoc
says "holdfast"
echo "fine"
