#!/usr/bin/env bash
# Whatever a command prints with --json has the keys and kinds of docs/guide/json.md, and every key there is printed by some command:
# json.sh HOLDFAST DESK FLATTEN DOC SCRATCH. On a file at rest, on one that a program has open, and on a server.
set -euo pipefail
holdfast=$1 desk=$2 flatten=$3 doc=$4 scratch=$5
rm -rf "$scratch"
mkdir -p "$scratch/seen" "$scratch/told"
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

ready() # FILE
{
    local i
    for ((i = 0; i < 1000; i++)); do
        ! grep -qs ready "$1" || return 0
        sleep 0.01
    done
    fail "$1 does not get ready"
}

# see CODE SECTION ARGS...: runs it with --json, and notes what it has printed under the section.
see()
{
    local code=$1 section=$2 got=0
    shift 2
    "$holdfast" "$@" --json >out 2>err </dev/null || got=$?
    [[ $got == "$code" ]] || fail "holdfast $* --json exits with $got, not $code: $(cat out err)"
    "$flatten" <out >flat || fail "holdfast $* --json prints no JSON: $(cat out)"
    cat flat >>"seen/${section// /_}"
}

# Verbs that need no worker.
at() # TARGET
{
    local target=$1
    see 0 start start "$target" patient '{"a": [1, 2]}' --id one --queue nobody
    see 0 signal signal "$target" one go 7
    see 0 list list "$target"
    see 0 list list "$target" --current
    see 0 'list --stuck' list "$target" --stuck
    see 0 count count "$target"
    see 0 show show "$target" one
    see 0 why why "$target" one
    see 0 cancel cancel "$target" one --reason 'no need'
    see 0 reset reset "$target" one
    see 0 terminate terminate "$target" one --reason 'at once'
    see 1 result result "$target" one
    see 0 why why "$target" one
    see 0 count count "$target"
    "$holdfast" batch start "$target" stop-all terminate "WorkflowId = 'one'" --reason enough >/dev/null
    see 0 'batch show' batch show "$target" stop-all
    see 0 'batch list' batch list "$target"
    "$holdfast" namespace register "$target" other
    see 0 'namespace list' namespace list "$target"
    "$holdfast" search-attribute add "$target" Color Keyword
    see 0 'search-attribute list' search-attribute list "$target"
}

# Verbs that need one, of the queue q.
at_work() # TARGET
{
    local target=$1
    see 0 run run "$target" echo '{"n": 7}' --queue q --id e1
    see 0 start start "$target" patient --id p --queue q
    see 0 query query "$target" p state
    see 0 update update "$target" p add 5
    see 0 stack stack "$target" p
    see 0 top top "$target"
    see 0 stream stream "$target" p
    see 0 signal signal "$target" p go '"done"'
    see 0 result result "$target" p
    see 0 'show --follow' show "$target" p --follow
    see 1 run run "$target" buy --queue q --id b
    see 0 why why "$target" b
    "$holdfast" start "$target" patient --id alone --queue nobody >/dev/null
    see 0 'list --stuck' list "$target" --stuck
    see 0 top top "$target"
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
for target in rest.db open.db "$server"; do
    at "$target"
done
for file in rest.db open.db; do
    see 0 'show without a run' show "$file"
    see 0 'db check' db check "$file"
    see 0 'db stats' db stats "$file"
done
"$desk" sqlite:work.db q >work.out & pids+=($!)
ready work.out
at_work work.db
"$desk" "$server" q >serving.out & pids+=($!)
ready serving.out
at_work "$server"

# The sections of the page: a line `key kinds optional` for each row.
awk -F'|' '
    /^## `/ { section = $0; gsub(/^## `|`.*$/, "", section); gsub(/ /, "_", section); next }
    /^\| `/ && section != "" {
        key = $2; kinds = $3
        gsub(/[ `]/, "", key)
        gsub(/^ +| +$/, "", kinds)
        print key "|" kinds > ("told/" section)
    }' "$doc"

bad=0
for seen in seen/*; do
    section=${seen#seen/}
    if [[ ! -f told/$section ]]; then
        printf 'the page has no section for: %s\n' "${section//_/ }"
        sort -u "$seen"
        bad=1
        continue
    fi
    # A key of kind "any" stands for all that is inside it.
    sort -u "$seen" | awk -F'|' -v section="${section//_/ }" '
        NR == FNR { kinds[$1] = $2; next }
        {
            at = match($0, / [a-z]+$/)
            key = substr($0, 1, at - 1); kind = substr($0, at + 1); found[key] = 1
            for (any in kinds) {
                open = any ~ /\*$/ ? substr(any, 1, length(any) - 1) : ""
                if (!(key in kinds) && any ~ /\*$/ && index(key, open) == 1) {
                    found[any] = 1
                    next
                }
                if (kinds[any] ~ /^any/ && (key == any || index(key, any ".") == 1 || index(key, any "[") == 1)) {
                    found[any] = 1
                    next
                }
            }
            if (!(key in kinds) || index(" " kinds[key] " ", " " kind " ") == 0) {
                printf "%s prints %s as %s; the page says: %s\n", section, key, kind, kinds[key]
                bad = 1
            }
        }
        END {
            for (key in kinds) {
                if (!(key in found) && kinds[key] !~ /optional/) {
                    printf "%s: the page has %s, and nobody printed it\n", section, key
                    bad = 1
                }
            }
            exit bad
        }' "told/$section" - || bad=1
done
for told in told/*; do
    [[ -f seen/${told#told/} ]] || { printf 'the page has a section that nothing prints: %s\n' "${told#told/}"; bad=1; }
done
# Every command that takes --json is in the page.
while read -r command; do
    grep -q -- "^## \`$command" "$doc" || { printf 'the page has no section for: %s\n' "$command"; bad=1; }
done < <("$holdfast" help | awk '/^  holdfast .*--json/ {
    name = $2
    if ($3 ~ /^[a-z]/) name = name " " $3
    print name }')
[[ $bad == 0 ]] || fail "the page and the program differ"
echo "fine: $(ls seen | wc -l) sections"
