#!/usr/bin/env bash
# What a command prints with --json has the keys and kinds of docs/guide/json.md, and all that are not optional there:
# json.sh HOLDFAST DESK FLATTEN DOC SCRATCH PLUGIN HISTORY DEPOT. On a file at rest, on one that a program has open, and on a server.
set -euo pipefail
holdfast=$1 desk=$2 flatten=$3 doc=$4 scratch=$5 plugin=$6 history=$7 depot=$8
# shellcheck source=tests/program/targets.sh
. "${0%/*}/targets.sh"
mkdir -p seen told

# see CODE SECTION ARGS...: runs it with --json, and notes what it has printed under the section.
see()
{
    local code=$1 section=$2 got=0
    shift 2
    "$holdfast" "$@" --json >out 2>err </dev/null || got=$?
    [[ $got == "$code" ]] || fail "holdfast $* --json exits with $got, not $code: $(cat out err)"
    "$flatten" <out >flat || fail "holdfast $* --json prints no JSON: $(cat out)"
    seen_count=$((seen_count + 1))
    sort -u flat >"seen/${section// /_}.$seen_count"
}
seen_count=0

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
    see 0 'batch start' batch start "$target" stop-all terminate "WorkflowId = 'one'" --reason enough
    see 0 'batch start' batch start "$target" stop-one terminate --id one
    see 0 'batch show' batch show "$target" stop-all
    see 0 'batch list' batch list "$target"
    see 0 'namespace register' namespace register "$target" other
    see 0 'namespace describe' namespace describe "$target" other
    see 0 'namespace update' namespace update "$target" other --owner a@b --retention 30d --data team=kelp
    see 0 'namespace describe' namespace describe "$target" other
    see 0 'namespace deprecate' namespace deprecate "$target" other
    see 0 'namespace list' namespace list "$target"
    see 0 'namespace delete' namespace delete "$target" other
    see 0 'search-attribute add' search-attribute add "$target" Color Keyword
    see 0 'search-attribute list' search-attribute list "$target"
    see 0 'search-attribute remove' search-attribute remove "$target" Color
    see 0 delete delete "$target" one
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

for target in rest.db open.db "$server"; do
    at "$target"
done
for file in rest.db open.db; do
    see 0 'show without a run' show "$file"
    see 0 'db check' db check "$file"
    see 0 'db stats' db stats "$file"
    see 0 'db backup' db backup "$file" "copy-$file"
    see 0 'db export' db export "$file" -o "histories-$file"
    see 0 'db retention' db retention "$file"
    see 0 'db shrink' db shrink "copy-$file"
done
# A batch that takes its time.
for id in a b; do
    "$holdfast" start open.db patient --id $id --queue nobody >/dev/null
done
"$holdfast" batch start open.db slow signal "WorkflowId = 'a' OR WorkflowId = 'b'" --signal go --rate 0.01 >slow.out 2>&1 & pids+=($!)
for ((i = 0; i < 1000; i++)); do
    ! "$holdfast" batch show open.db slow >/dev/null 2>&1 || break
done
see 0 'batch stop' batch stop open.db slow

work sqlite:work.db q work
at_work work.db
work "$server" q serving
at_work "$server"

# A depot's file, at rest and open.
"$depot" depot_rest.db >/dev/null
"$depot" depot_open.db >/dev/null
"$depot" depot_open.db stay >depot.out & pids+=($!)
await depot.out ready
for file in depot_rest.db depot_open.db; do
    see 0 'depot stats' depot stats "$file"
    see 0 'depot show' depot show "$file"
    see 0 'depot show' depot show "$file" acme user 1
    see 0 'depot show' depot show "$file" acme user binary
    see 0 'depot pending' depot pending "$file"
    see 0 'depot pending --damaged' depot pending "$file" --damaged
    see 0 'depot retry' depot retry "$file" 1
    see 0 'depot drop' depot drop "$file" 2
done

# Commands without a target.
see 0 version version
see 0 limits limits
see 0 'key add' key add --keys keys --permissions default:read,other:write --days 3
id=$(grep -oE '^[^ ]+' keys)
see 0 'key list' key list --keys keys
see 0 'key revoke' key revoke --keys keys "$id"
sed 's/"0.010s"/"0.020s"/' "$history" >differs.json
see 0 replay replay "$history" --plugin "$plugin"
see 1 replay replay differs.json --plugin "$plugin"
see 0 sim sim --plugin "$plugin" hello --input '"you"' --signal unknown --seeds 1

# The sections of the page: a line `key kinds optional` for each row.
awk -F'|' '
    /^## `/ { section = $0; gsub(/^## `|`.*$/, "", section); gsub(/ /, "_", section); next }
    /^\| `/ && section != "" {
        key = $2; kinds = $3
        gsub(/[ `]/, "", key)
        gsub(/^ +| +$/, "", kinds)
        print key "|" kinds > ("told/" section)
    }' "$doc"

# fits SECTION KEYS: whether what was printed is what the page says. A key of kind "any" stands for all that is inside it. Elements of an array
# that is empty are not missed.
fits()
{
    awk -F'|' -v section="${1//_/ }" '
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
                array = match(key, /.*\[\]/) ? substr(key, 1, RLENGTH) : "(all)"
                if (!(key in found) && array in found && kinds[key] !~ /optional/) {
                    printf "%s: the page has %s, and it is not printed\n", section, key
                    bad = 1
                }
            }
            exit bad
        }' "told/$1" "$2"
}

bad=0
for seen in seen/*; do
    section=${seen#seen/}
    section=${section%.*}
    if [[ ! -f told/$section ]]; then
        printf 'the page has no section for: %s\n' "${section//_/ }"
        cat "$seen"
        bad=1
    elif ! fits "$section" "$seen"; then
        bad=1
    fi
done
# Every section is printed by some command, and so is every array of it with an element.
for told in told/*; do
    grep -o '^.*\[\][^.]*|' "$told" | tr -d '|' | while read -r array; do
        grep -h '' "$told" | grep -qF "$array|object optional" || grep -qsF "$array " seen/"${told#told/}".* ||
            printf '%s: no command has printed an element of %s\n' "${told#told/}" "$array"
    done | grep . && bad=1
    compgen -G "seen/${told#told/}.*" >/dev/null || { printf 'the page has a section that nothing prints: %s\n' "${told#told/}"; bad=1; }
done
# Every command is in the page, but for those that print no result.
while read -r command; do
    case $command in
    serve | 'server start-dev' | worker | completion) ;;
    *) grep -q -- "^## \`$command" "$doc" || { printf 'the page has no section for: %s\n' "$command"; bad=1; } ;;
    esac
done < <("$holdfast" help --mdoc | sed -n 's/^\.It Ic //p')
[[ $bad == 0 ]] || fail "the page and the program differ"
echo "fine: $seen_count outputs, $(ls told | wc -l) sections"
