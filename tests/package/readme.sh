#!/usr/bin/env bash
# Plays the README as a newcomer does: the blocks of "In ten minutes" are typed line by line, in a folder that has the build, and each comment that
# shows an output is compared with it. Then what the text below the blocks promises, and the blocks of docs/guide/installing.md for a folder of one's own.
#     readme.sh <source tree> <build tree> <scratch folder> <cc>
#
# Two lines are not typed as they stand. `./dev up` makes the build in which this test runs. `pkill -f` would also end programs that are not of
# this test, so its pattern is compared with the command line of the worker, which is then killed by its number.
set -euo pipefail
source=$1 build=$2 scratch=$3 compiler=$4
rm -rf "$scratch"
mkdir -p "$scratch/clone/build" "$scratch/home"
ln -s "$build" "$scratch/clone/build/dev"
ln -s "$build" "$scratch/clone/build/release"
cd "$scratch/clone"
export HOME=$scratch/home
unset XDG_CONFIG_HOME PKG_CONFIG_PATH LD_LIBRARY_PATH "${!HOLDFAST_@}"

worker='' # its process
fails()
{
    printf 'FAILED: %s\n' "$*"
    cat err 2>/dev/null || true
    exit 1
}
trap '[[ -z $worker ]] || kill -9 "$worker" 2>/dev/null || true' EXIT

# `./dev up` builds what is installed, although the build of this test has it in any case.
grep -q '^    compile dev installed examples$' "$source/dev" || fails "./dev up does not build the target 'installed'"
needed=$(ninja -C "$build" -t inputs installed)
while read -r file; do
    grep -qx "$file" <<<"$needed" || fails "$file is installed, and the target 'installed' does not build it"
done < <(sed -n "s|.*\"$build/\([^\"]*\(\.a\|bin/holdfast\)\)\".*|\1|p" "$build/cmake_install.cmake" | sort -u)

cc() # the newcomer's compiler, and no warning
{
    command "$compiler" -Wall -Wextra -Werror "$@"
}

# blocks PAGE FROM TO: the lines of the blocks ```sh between two headings; files that the page says are written.
blocks()
{
    awk -v from="$2" -v to="$3" '
        $0 == from { is_on = 1 }
        $0 == to { is_on = 0 }
        /^```/ && inside { inside = 0; next }
        inside == 1 { print }
        inside == 2 { print > name }
        is_on && /^```sh$/ { inside = 1 }
        is_on && /^```c file=/ { inside = 2; name = substr($2, 6); printf "" > name }' "$source/$1"
}

# The first terminal: the line that it says first, and what it logs in the file err.
work()
{
    local line
    rm -f said
    mkfifo said
    # shellcheck disable=SC2086
    eval "exec $1" >said 2>>err & worker=$!
    exec 3<said
    read -r line <&3 || fails "the worker says nothing"
    [[ $line == *'worker of the task queue orders on sqlite:orders.db' ]] || fails "the worker says: $line"
}

# reaches ID EVENT...: waits until the run has these events, in this order.
reaches()
{
    local id=$1 line words follower
    shift
    rm -f followed
    mkfifo followed
    holdfast show orders.db "$id" --follow >followed & follower=$!
    exec 4<followed
    for words; do
        until [[ ${line-} == *"$words"* ]]; do
            read -r line <&4 || fails "$id ended before '$words'"
        done
    done
    exec 4<&-
    kill "$follower" 2>/dev/null || true
    wait "$follower" || true
}

# charged COUNT: how often the activity has run.
charged()
{
    [[ $(grep -c ': charging ' err) == "$1" ]] || fails "the card was charged $(grep -c ': charging ' err) times, not $1"
}

# play COMMAND COMMENT: the output is in $out.
play()
{
    local command=$1 comment=$2 pattern
    out=''
    printf '$ %s\n' "$command"
    case $command in
    './dev up') ;;
    'cmake --install build/'* | 'export '*)
        eval "$command" >log || fails "$command: $(cat log)"
        ;;
    'cc '*) eval "$command" || fails "$command" ;;
    'holdfast worker '*)
        first_terminal=$command
        work "$command"
        ;;
    "pkill -9 -f '"*"'")
        pattern=${command#*\'}
        [[ $(tr '\0' ' ' <"/proc/$worker/cmdline") =~ ${pattern%\'} ]] || fails "$command does not find the worker"
        kill -9 "$worker"
        wait "$worker" || true
        work "$first_terminal"
        ;;
    'holdfast query '*)
        reaches order-1 ActivityTaskCompleted WorkflowTaskCompleted # a newcomer does not type as fast as this
        ;;&
    'holdfast '*)
        out=$(eval "$command" 2>&1) || fails "$command: exit code $?: $out"
        printf '%s\n' "$out"
        ;;
    *) fails "this test does not know how to play '$command'" ;;
    esac
    case $comment in
    '"'* | '{'*)
        [[ $out == "$comment" ]] || fails "$command prints '$out', and the page promises '$comment'"
        promises=$((promises + 1))
        ;;
    *'the card is not charged twice') charged 1 ;;
    'every step, and what it waits for')
        for words in WorkflowExecutionStarted ActivityTaskCompleted WorkflowExecutionSignaled WorkflowExecutionCompleted; do
            [[ $out == *"$words"* ]] || fails "$command: no $words in: $out"
        done
        ;;
    esac
}

play_all() # PAGE FROM TO
{
    local line
    blocks "$@" >commands
    while IFS= read -r line <&5; do
        comment=''
        [[ ! $line =~ ' '+'# '(.*)$ ]] || comment=${BASH_REMATCH[1]}
        [[ ! $line =~ ^(.*[^ ])' '+'# ' ]] || line=${BASH_REMATCH[1]}
        play "$line" "$comment"
    done 5<commands
}

promises=0
play_all README.md '## In ten minutes: your own workflow, from two terminals' '## What else there is'
((promises == 2)) || fails "$promises outputs were compared, not 2"
[[ $(command -v holdfast) == "$HOME/holdfast/bin/holdfast" ]] || fails "holdfast is $(command -v holdfast)"

# "holdfast cancel asks a run to end ... holdfast terminate ends it at once, holdfast list finds runs, holdfast help lists everything."
ends() # VERB STATUS
{
    local code=0
    play "holdfast start orders.db order '{\"item\": \"kelp\"}' --id $1 --queue orders" ''
    reaches "$1" ActivityTaskCompleted WorkflowTaskCompleted
    play "holdfast $1 orders.db $1" ''
    out=$(holdfast result orders.db "$1" 2>&1) || code=$?
    [[ $code == 1 && $out == *"$2"* ]] || fails "result of the run '$1': exit code $code: $out"
    out=$(holdfast list orders.db "WorkflowId = '$1'")
    [[ $out == *"$2"* ]] || fails "list: $out"
}
ends cancel anceled
ends terminate erminated
charged 3
for verb in start signal query update cancel terminate result list show; do
    [[ $(holdfast help) == *"$verb"* ]] || fails "holdfast help does not list $verb"
done

# "Ctrl-C or SIGTERM ends it." "All commands also work while nothing has the file open, but for those that need the code."
for signal in INT TERM; do
    kill -"$signal" "$worker"
    wait "$worker" || fails "the worker ended with $? after SIG$signal"
    worker=''
    [[ $signal == TERM ]] || work "$first_terminal"
done
play "holdfast start orders.db order '{\"item\": \"kelp\"}' --id rest --queue orders" ''
play "holdfast signal orders.db rest delivered" ''
play "holdfast show orders.db rest" ''
[[ $out == *'waits for'*'a worker that polls the task queue orders'* ]] || fails "show does not say what the run waits for: $out"
play "holdfast cancel orders.db rest" ''
code=0
holdfast query orders.db rest state >log 2>&1 || code=$?
[[ $code == 3 ]] || fails "a query without a worker: exit code $code: $(cat log)"

# "Try to break it"
sim=$(grep -o '`holdfast sim [^`]*`' "$source/README.md" | tr -d '`')
play "$sim" ''
[[ $out == *', 0 failed' ]] || fails "$sim: $out"

# "The same as a program of your own, with a main(): the head comment of worker.h", built as docs/guide/installing.md says.
mkdir -p own/build
ln -s "$build" own/build/release
cd own
awk '/^ \*     / { print substr($0, 8); next } /^ \*$/ { print ""; next } /^ \* On every path/ { exit }' "$source/include/holdfast/worker.h" >order.c
blocks docs/guide/installing.md '# Install and link' 'to the end' | sed -n '5,$p' >commands # the first block installs for the whole machine
grep -q '^cmake --install .*HOME/holdfast' commands || fails "docs/guide/installing.md: the second block does not install into a folder"
runs=0
while IFS= read -r line <&5; do
    case $line in
    'cc -O2 -c holdfast.c' | *holdfast.o*) continue ;; # package/amalgamation
    esac
    play "$line" ''
    if [[ $line == cc* ]]; then
        rm -f orders.db*
        out=$(./order 2>&1) || fails "$line: the program exits with $?: $out"
        [[ $out == *'charging for {"item": 7}'*'{"receipt": 4711}' ]] || fails "$line: the program says: $out"
        runs=$((runs + 1))
    fi
done 5<commands
((runs == 2)) || fails "$runs programs of docs/guide/installing.md ran, not 2"
echo "played"
