#!/usr/bin/env bash
# `holdfast serve` as its operators meet it: serve.sh HOLDFAST PLUGIN HANDOVER SCRATCH. Metrics, plugins, sockets that are handed over, refusals.
set -euo pipefail
holdfast=$1 plugin=$2 handover=$3 scratch=$4
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

# refused WORDS ARGS...: exits with 2, and says why.
refused()
{
    local words=$1 got=0
    shift
    out=$("$holdfast" serve "$@" 2>&1) || got=$?
    [[ $got == 2 && $out == *"$words"* ]] || fail "serve $* exits with $got: $out"
}

refused "serve needs a database" --listen 127.0.0.1:0
refused "serve needs a database of its own" --store temporal://127.0.0.1:7233
refused "can be reached from the network without TLS" --store memory: --listen 0.0.0.0:0
refused "could be read from the network" --store memory: --metrics 0.0.0.0:0
refused "namespace-rate is N or NAME=N" --store memory: --namespace-rate fast
refused "namespace-rate is N or NAME=N" --store memory: --namespace-rate =5
refused "connections is a number" --store memory: --connections many
refused "TLS needs both" --store memory: --tls-cert x
refused "log-level is" --store memory: --log-level loud
refused "cannot load the plugin" --store memory: --listen 127.0.0.1:0 --plugin nowhere.so

# ready: waits for the lines of the start, and sets $metrics and $port to the addresses.
ready()
{
    local line
    while read -r line <&3; do
        case $line in
        *"metrics on tcp:"*) metrics=${line##*tcp:} ;;
        *"ready on tcp:"*) port=${line##*:} ;;
        *"ready on unix:"*) return ;;
        esac
    done
    fail "the server ended: $(cat err)"
}

# get PATH [HOST]: the answer is in $answer.
get()
{
    exec 4<>"/dev/tcp/${metrics%:*}/${metrics##*:}"
    printf 'GET %s HTTP/1.1\r\nHost: %s\r\n\r\n' "$1" "${2-localhost}" >&4
    answer=$(cat <&4)
    exec 4>&-
}

mkfifo lines
"$holdfast" serve --store sqlite:s.db --listen 127.0.0.1:0 --listen unix:socket --metrics 127.0.0.1:0 --plugin "$plugin" \
    --log-format json >lines 2>err &
pid=$!
exec 3<lines
ready
get /livez
[[ $answer == "HTTP/1.1 200 OK"* && $answer == *$'\nok' ]] || fail "livez: $answer"
get /readyz
[[ $answer == "HTTP/1.1 200 OK"* ]] || fail "readyz: $answer"
get '/metrics?x=1'
[[ $answer == *"holdfast_engine_commits_total "* && $answer == *"# TYPE holdfast_calls_total counter"* ]] || fail "metrics: $answer"
get /secret
[[ $answer == "HTTP/1.1 404 "* ]] || fail "secret: $answer"
get /metrics rebound.example
[[ $answer == "HTTP/1.1 403 "* ]] || fail "rebound: $answer"
# The plugin's workflow, started through the door, and run by the server itself.
out=$("$holdfast" run "temporal://127.0.0.1:$port" hello '"you"' --id greeting) || fail "the plugin's workflow: $out"
[[ $out == *'"greeting": "hello", "to": "you"'* ]] || fail "the plugin's workflow returned $out"
kill -TERM "$pid"
wait "$pid" || fail "it exits with $?: $(cat err)"
pid=
exec 3<&-
while read -r line; do
    [[ $line == '{"time":"'*'","level":"'*'","event":"'*'","fields":"'*'"}' ]] || fail "not a line of JSON: $line"
done <err
grep -q '"event":"stopping"' err || fail "the log has no stopping: $(cat err)"
! grep -qE '"level":"(warn|error)"' err || fail "the log complains: $(cat err)"
# Under a service manager: it serves on the socket that was handed over and on no other, tells when it is ready, that it lives, and that it stops.
mkfifo notes
"$handover" "$holdfast" serve --store memory: --plugin "$plugin" --log-level warn >notes 2>handed.err &
pid=$!
exec 3<notes
told=
while read -r line <&3; do
    case $line in
    "port "*) port=${line##* } ;;
    *"ready on tcp:127.0.0.1:$port") told+=" ready" ;;
    READY=1) told+=" READY" ;;
    WATCHDOG=1) told+=" WATCHDOG" && break ;; # which comes only from an engine that answers
    *) fail "handed over: $line" ;;
    esac
done
[[ $told == " ready READY WATCHDOG" ]] || fail "handed over: $told $(cat handed.err)"
out=$("$holdfast" run "temporal://127.0.0.1:$port" hello '"me"') || fail "on the socket that was handed over: $out"
kill -TERM "$pid"
while read -r line <&3 && [[ $line != STOPPING=1 ]]; do
    [[ $line == WATCHDOG=1 ]] || fail "at the end: $line"
done
[[ ${line-} == STOPPING=1 ]] || fail "it did not say that it stops"
wait "$pid" || fail "handed over, it exits with $?: $(cat handed.err)"
pid=
exec 3<&-
echo "[       OK ] holdfast serve"
