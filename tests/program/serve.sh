#!/usr/bin/env bash
# `holdfast serve` as its operators meet it: serve.sh HOLDFAST PLUGIN SCRATCH. Metrics, plugins, sockets that are handed over, refusals.
set -euo pipefail
holdfast=$1 plugin=$2 scratch=$3
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

# ready: waits for the lines of the start, and sets $metrics to the address.
ready()
{
    local line
    while read -r line <&3; do
        case $line in
        *"metrics on tcp:"*) metrics=${line##*tcp:} ;;
        *"ready on "*) return ;;
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
kill -TERM "$pid"
wait "$pid" || fail "it exits with $?: $(cat err)"
pid=
exec 3<&-
while read -r line; do
    [[ $line == '{"time":"'*'","level":"'*'","event":"'*'","fields":"'*'"}' ]] || fail "not a line of JSON: $line"
done <err
grep -q '"event":"stopping"' err || fail "the log has no stopping: $(cat err)"
! grep -qE '"level":"(warn|error)"' err || fail "the log complains: $(cat err)"
echo "[       OK ] holdfast serve"
