#!/usr/bin/env bash
# The determinism guard, function by function: guard.sh LINKED PRELOADED GUARD HEADER SCRATCH. guard.c plays every function that the guard defines, with the
# guard linked into the program and preloaded; what it plays is all that the guard defines, and all that the header names.
set -euo pipefail
linked=$1 preloaded=$2 guard=$3 header=$4 scratch=$5
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

fail()
{
    printf 'FAILED: %s\n' "$*"
    exit 1
}

"$linked" list | sort >played
nm -D --defined-only "$guard" | awk '$2 == "T" { print $3 }' | sort >defined
diff defined played || fail "guard.c does not play what the guard defines (<)"

# The header's table: "clocks    time, gettimeofday,   use ..."
sed -n '/^ \*     clocks /,/^ \*     settings /p' "$header" | sed -E 's/^ \*     ([a-z]+)? +//; s/   *(use|pass) .*//' | tr -d ' ' | tr ',' '\n' | grep . | sort >named
comm -13 played named | grep . && fail "the header names the functions above, and the guard does not have them"
grep -vE '^(v?f?printf|__.*_chk|puts)$|64$' played | comm -23 - named | grep . && fail "the header does not name the functions above"

"$linked" >out || fail "with the guard in the program"
LD_PRELOAD=$guard "$preloaded" >out || fail "with the guard preloaded"
# And it is the guard that refuses.
if "$preloaded" >out 2>&1; then
    fail "without the guard nothing is refused, and nobody noticed"
fi
grep -q '^time: the workflow task did not fail' out || fail "without the guard: $(cat out)"
printf '%d functions\n' "$(wc -l <played)"
