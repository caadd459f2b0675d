#!/usr/bin/env bash
# The walk of one workflow in ARCHITECTURE.md: at most 25 hops, and each function is defined in the file that is named beside it.
# So is every other function that stands behind a file. Every file and every name that "To find something" and "To add something" send a reader to exists, too.
#     check_walk.sh <source tree>
set -euo pipefail
cd "$1"
count=0
failed=0
while read -r file function; do
    count=$((count + 1))
    # A definition: the name and its parameters, on a line that is indented by nothing and does not end in a semicolon.
    if ! grep -qE "^[a-z].*\b${function}\(" "src/$file" || grep -E "^[a-z].*\b${function}\(" "src/$file" | grep -qE ';$'; then
        echo "FAILED: hop $count: src/$file does not define $function"
        failed=1
    fi
done < <(sed -n 's/^[0-9]*\. `\([a-z0-9_\/]*\.[ch]\)` `\([a-z0-9_]*\)`.*/\1 \2/p' ARCHITECTURE.md)
if ((count < 10 || count > 25)); then
    echo "FAILED: the walk has $count hops"
    failed=1
fi
names=$(sed -n '/^## To find something/,/^## The picture/p' ARCHITECTURE.md | grep -oE '`[A-Za-z0-9_/.]+`' | tr -d '`' | sort -u)
for name in $names; do
    case $name in
    .*) continue ;; # an option
    */* | *.*) is_there=$([[ ! -e $name ]] && find src tests -path "*/$name" -print -quit || echo yes) ;;
    *) is_there=$(grep -rlwF -m 1 --include='*.[ch]' "$name" src tests include || true) ;;
    esac
    if [[ -z $is_there ]]; then
        echo "FAILED: ARCHITECTURE.md sends its reader to $name, which is not there"
        failed=1
    fi
done
if (($(wc -w <<<"$names") < 30)); then
    echo "FAILED: the sections about finding and adding something were not found in ARCHITECTURE.md"
    failed=1
fi
# Anywhere on the page: a file and, right behind it, a function is that function's file.
pairs=0
while read -r file function; do
    pairs=$((pairs + 1))
    places=$(find src -path "*/$file" -name "${file##*/}")
    if [[ -z $places ]] || ! grep -qE "^[a-z].*\b${function}\(" $places; then
        echo "FAILED: ARCHITECTURE.md says that $function is in $file"
        failed=1
    fi
done < <(tr '\n' ' ' <ARCHITECTURE.md | tr -s ' ' | grep -oE '`[a-z0-9_/]+\.[ch]` `[a-z0-9_]+`' | tr -d '`')
if ((pairs < count)); then
    echo "FAILED: only $pairs places of functions were found in ARCHITECTURE.md"
    failed=1
fi
echo "$count hops, $pairs functions with their files, $(wc -w <<<"$names") other places"
exit "$failed"
