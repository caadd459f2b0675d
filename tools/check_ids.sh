#!/usr/bin/env bash
# Checks that the ids of promises and invariants are defined, cited and tested.
#     check_ids.sh <test_programs.txt> <source tree>     the first has lines "<name>\t<program>"
#
# 1. Each promise of the runtime (docs/promises.md) has a test whose name begins with its id, or with several: ./dev test N7 finds it.
# 2. An invariant of a layer is named <layer>-<letter><number>. It is defined once: a line of a comment or README under src/ or
#    tests/ that begins with the id, or an entry of docs/promises.md. Every id that is cited anywhere is defined, and every
#    defined id is cited by an assert or by a test (in the name of a case with "_" for "-": store_S1_writes_apply_in_order).
# 3. Bare ids are promises or come from a specification (D4, I21 ...). docs/promises.md explains each of them once, and every bare id that
#    src/ or the tests with ids of their own cite is there.
set -euo pipefail
programs=$1 tree=$2
failed=0
fail()
{
    echo "FAILED: $*"
    failed=1
}

# ---- Promises -----------------------------------------------------------------------------------------------------------

ids=(Y{1..11} Y15 S{1..3} S{5..11} S{13..22} T{1..20} N{1..12} L{1..8} L10 L12 X{12..16} W1 W2)
cases=$(while IFS=$'\t' read -r name program; do
    case $name in
    unit/base/* | unit/env/*) ;; # below the promises
    ?*) "$program" --list ;;
    esac
done <"$programs")
for id in "${ids[@]}"; do
    grep -qE "^([A-Z][0-9]+_)*${id}_" <<<"$cases" || fail "no test begins with ${id}"
done
# Y1 to Y11 once more, on fibers of workflows.
for id in Y{1..11}; do
    grep -qE "^${id}_.*workflow" <<<"$cases" || fail "no test of ${id} is about workflows"
done
# Those of a store of this kind once more, on whole depots.
cases_of_depot=$(while IFS=$'\t' read -r name program; do
    [[ $name != unit/depot/* ]] || "$program" --list
done <"$programs")
for id in S{1..23} X{4..8} C{1..11} N8 N9; do
    grep -qE "^([A-Z][0-9]+_)*${id}_" <<<"$cases_of_depot" || fail "no test of a depot begins with ${id}"
done
echo "${#ids[@]} ids of promises, $(grep -cE '^[A-Z][0-9]+_' <<<"$cases") tests that carry one"

# ---- Invariants of layers -------------------------------------------------------------------------------------------------

layers=(base time where env fiber wire history store depot run ledger engine inspect service worker open trial server remote vfs
    sim kill cache chan crew flight keylock life scope) # those whose ids carry their name, the second line is of tests: the simulator, kill -9, the models; add yours
names=$(IFS='|' && echo "${layers[*]}")
cd "$tree"
places=(src tests include docs bench examples README.md ARCHITECTURE.md CONTRIBUTING.md)
cited=$(grep -rhoE "\b($names)-[A-Z][0-9]+\b" "${places[@]}" | sort -u)
defined=$(grep -rhoE "^[[:space:]]*(/?\*|-|//)?[[:space:]]*(\*\*)?($names)-[A-Z][0-9]+(\*\*|  )" src tests |
    grep -oE "($names)-[A-Z][0-9]+" | sort)
for id in $(uniq -d <<<"$defined"); do
    fail "$id is defined more than once:"
    grep -rnE "^[[:space:]]*(/?\*|-|//)?[[:space:]]*(\*\*)?$id(\*\*|  )" src tests | sed 's/^/    /'
done
for id in $(comm -23 <(echo "$cited") <(sort -u <<<"$defined")); do
    fail "$id is cited and defined nowhere: $(grep -rlE "\b$id\b" "${places[@]}" | tr '\n' ' ')"
done
# The comment of a long assert may be on its second or third line.
asserted=$(grep -rhE -A2 '(hf_assert|_Static_assert)\(' src |
    grep -oE "\b($names)-[A-Z][0-9]+\b" | sort -u)
tested=$(grep -rhoE "\b($names)[-_][A-Z][0-9]+(_|\b)" tests | sed -E 's/_$//; s/^([a-z]+)_/\1-/' | sort -u)
for id in $(comm -23 <(sort -u <<<"$defined") <(sort -u <<<"$asserted"$'\n'"$tested")); do
    fail "$id is cited by no assert and no test"
done
# Every other prefix that looks like a layer must be on the list, or its ids are not checked.
for layer in src/*/; do
    layer=$(basename "$layer")
    if [[ ! " ${layers[*]} " == *" $layer "* ]] && grep -rqE "\b$layer-[A-Z][0-9]+\b" "${places[@]}"; then
        fail "ids of $layer are used, but $layer is not in the list of this script"
    fi
done
echo "$(sort -u <<<"$defined" | grep -c .) invariants of ${layers[*]}"

# ---- Ids of specifications ------------------------------------------------------------------------------------------------

specified=(I{1..11} I13 I15 I16 I18 I20 I21 D3 D4 D7 D11 DP{1..10})
for id in "${specified[@]}"; do
    [[ $(grep -cE "^- \*\*$id\*\*" docs/promises.md) == 1 ]] || fail "$id is not explained once in docs/promises.md"
done
# What a comment or a message cites without a prefix: "(I13)", "I13: ...", "I13 and ...".
bare=$(grep -rhoP '(?<![-\w/.%#$\x27])(?:[A-Z]|DP)[1-9][0-9]?(?![-\w.\[])' src tests/sim tests/unit/model tests/support tests/kill \
    --include='*.c' --include='*.h' | sort -u)
for id in $bare; do
    grep -qE "^- \*\*$id\*\*" docs/promises.md ||
        fail "$id is cited and is not in docs/promises.md: $(grep -rlP "(?<![-\w])$id(?![-\w])" src tests | tr '\n' ' ')"
done
echo "$(grep -c . <<<"$bare") bare ids are cited"

# ---- Pages ------------------------------------------------------------------------------------------------------------------

# What is cited stands in the tree: pages by their names, and ids without the name of a page that readers do not have.
for page in $(grep -rhoE '\b[A-Z][A-Z-]+\.md\b' "${places[@]}" cmake tools proto dev | sort -u); do
    [[ -n $(find . -name "$page" -not -path './build/*' -print -quit) ]] ||
        fail "$page is cited and is not there: $(grep -rlwF "$page" "${places[@]}" cmake tools proto dev | tr '\n' ' ')"
done
if grep -rnE '\b(PROMISES|RELIABILITY|TARGETS|STYLE) [A-Z]?[0-9]' "${places[@]}"; then
    fail "these lines name a page that is not there"
fi
exit $failed
