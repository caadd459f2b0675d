#!/usr/bin/env bash
# The programs of the guide are programs: guide.sh FOLDER HEADERS LIBRARY-FLAGS HOLDFAST SCRATCH CC CXX. Each block of README.md and docs/guide that
# begins with ```c run or ```cpp run is compiled and run; a block ```sh run is run by bash, in a folder of its own page, where `holdfast` and
# what the blocks before it have made can be found. A block that follows ```c file=NAME is written to that file of the folder;
# such files are plugins, and are compiled. Commands that are not played are at least there, with their options.
#
# Any other block ```c is a fragment, and is compiled: what begins with static, typedef or # stands in the file, the rest in a function of it, and a line
# "... words ..." is a comment. Variables and functions that a page does not show are in PAGE.h of this folder. Quotes of
# examples are left out, since the examples are built: tools/check_quotes.sh compares them.
set -euo pipefail
source=$1 headers=$2 libraries=$3 holdfast=$4 scratch=$5 cc=$6 cxx=$7
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$scratch"
mkdir -p "$scratch/bin"
ln -s "$holdfast" "$scratch/bin/holdfast"
export PATH="$scratch/bin:$PATH" CFLAGS="-I$headers"
count=0
fragments=0

# blocks FILE FOLDER: writes the blocks to run as 01.c, 02.sh, ...
blocks()
{
    awk -v folder="$2" '
        /^```/ && inside { inside = 0; close(to); next }
        inside { print > to; next }
        /^```(c|cpp|sh) (run|file=)/ {
            inside = 1
            kind = substr($1, 4)
            if ($2 ~ /^file=/) { to = folder "/" substr($2, 6) }
            else { to = sprintf("%s/%02d.%s", folder, ++number, kind) }
            printf "" > to
        }' "$1"
}

# pieces FILE FOLDER PROLOGUE: writes the fragments as fragment_LINE.c; the compiler names the lines of the page.
pieces()
{
    awk -v folder="$2" -v prologue="$3" '
        function place() { return sprintf("#line %d \"%s\"\n", FNR, FILENAME) }
        function finish(    to) {
            to = sprintf("%s/fragment_%03d.c", folder, first)
            printf "#include <holdfast/holdfast.h>\n#include <errno.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n" \
                   "#include <string.h>\n#include <unistd.h>\n%s", prologue > to
            printf "%s\nhf_status fragment(hf_payload in, hf_payload *ret_out);\n" \
                   "hf_status fragment(hf_payload in, hf_payload *ret_out)\n{\n    (void)in, (void)ret_out;\n", outside > to
            printf "%s\n    return HF_OK;\n}\n", body > to
            close(to)
        }
        /^```/ && inside { if (inside == 1) finish(); inside = 0; is_quote = 0; next }
        inside == 1 {
            line = $0
            if (line ~ /^ *\.\.\.( |$)/) { sub(/\.\.\./, "", line); sub(/^ *[^ \/].*$/, "/* & */", line) }
            if (!is_outside && line ~ /^(static|typedef|#)/) { is_outside = 1; outside = outside place() }
            if (is_outside) {
                outside = outside line "\n"
                if (line ~ /^}/ || line ~ /^(static|typedef).*;( |$)/ || line ~ /^#/) { is_outside = 0; body = body place() }
            } else { body = body line "\n" }
            next
        }
        inside { next }
        /^```c$/ && !is_quote { inside = 1; first = FNR; outside = ""; body = sprintf("#line %d \"%s\"\n", FNR + 1, FILENAME); is_outside = 0; next }
        /^```/ { inside = 2; next }
        { is_quote = /^<!-- examples\/.* -->$/ }' "$1"
}

for page in "$source"/README.md "$source"/docs/guide/*.md; do
    name=$(basename "$page" .md)
    folder=$scratch/$name
    mkdir -p "$folder"
    blocks "$page" "$folder"
    cd "$folder"
    prologue=''
    [[ ! -e $here/$name.h ]] || prologue="#include \"$here/$name.h\""$'\n'
    pieces "$page" "$folder" "$prologue"
    for file in fragment_*.c; do
        [[ -e $file ]] || continue
        fragments=$((fragments + 1))
        "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused -Wno-unused-parameter -fsyntax-only -I"$headers" "$file" ||
            { printf 'FAILED: %s of %s\n' "$file" "$page" && exit 1; }
        printf '%s %s\n' "$name" "$file"
    done
    for file in *.c *.cpp; do # plugins
        case $file in
        '*'* | [0-9][0-9].* | fragment_*) continue ;;
        *.c) "$cc" -std=c11 -Wall -Wextra -Werror -shared -fPIC -I"$headers" "$file" -o "$file.so" ;;
        *.cpp) "$cxx" -std=c++17 -Wall -Wextra -Werror -shared -fPIC -I"$headers" "$file" -o "$file.so" ;;
        esac || { printf 'FAILED: %s of %s\n' "$file" "$page" && exit 1; }
        printf '%s %s\n' "$name" "$file"
    done
    for block in [0-9][0-9].*; do
        [[ -e $block ]] || continue
        count=$((count + 1))
        case $block in
        *.c) # shellcheck disable=SC2086
            "$cc" -std=c11 -Wall -Wextra -Werror -I"$headers" "$block" -o "${block%.c}" $libraries && timeout 60 "./${block%.c}" >"$block.out" 2>&1 ;;
        *.cpp) # shellcheck disable=SC2086
            "$cxx" -std=c++17 -Wall -Wextra -Werror -I"$headers" "$block" -o "${block%.cpp}" $libraries && timeout 60 "./${block%.cpp}" >"$block.out" 2>&1 ;;
        *.sh) timeout 60 bash -euo pipefail "$block" >"$block.out" 2>&1 ;;
        esac || {
            printf 'FAILED: block %s of %s:\n' "$block" "$page"
            cat "$block" "$block.out" 2>/dev/null || true
            exit 1
        }
        printf '%s %s\n' "$name" "$block"
    done
done
# Commands that are not played, in the text and in other blocks: `holdfast VERB` has a help, which shows each option; `./dev VERB` is one of its commands.
commands=0
while IFS= read -r line; do
    read -r _ verb second _ <<<"$line"
    [[ $verb =~ ^[a-z-]+$ && $verb != help ]] || continue # `holdfast warning: ...` is a line of the log
    usage=$(holdfast help "$verb" "$second" 2>/dev/null || holdfast help "$verb" 2>&1) || { echo "FAILED: $line: $usage" && exit 1; }
    for option in $(grep -oE -- '(^| |\[)--[a-z-]+' <<<"${line%% #*}" | tr -d ' ['); do
        [[ $option == --help ]] || grep -qE -- "(^|[^a-z-])$option([^a-z-]|$)" <<<"$usage" || { echo "FAILED: $line: holdfast help $verb does not show $option" && exit 1; }
    done
    commands=$((commands + 1))
done < <(cat "$source"/README.md "$source"/docs/guide/*.md | grep -oE '`holdfast [a-z][^`]*`|^(    |\$ )?holdfast [a-z].*' | sed -E 's/^`|`$|^ +|^\$ //g' | sed -E 's/ (&&|\|) .*//')
while read -r verb; do
    [[ $verb != help ]] || continue
    grep -q "^  $verb " <("$source/dev" help) || { echo "FAILED: ./dev help does not show $verb" && exit 1; }
done < <(cat "$source"/README.md "$source"/docs/guide/*.md | grep -oE '\./dev [a-z0-9]+' | awk '{ print $2 }' | sort -u)
# What the page shows for CMake is what the consumers of the tests do.
while read -r words; do
    grep -qF -- "$words" "$source/tests/package/cmake/CMakeLists.txt" || { echo "FAILED: tests/package/cmake does not use $words" && exit 1; }
done < <(awk '/^```cmake$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$source/docs/guide/installing.md" | grep -oE 'find_package\(.*\)|Holdfast::[a-z_]+')
((commands >= 100)) || { echo "FAILED: $commands commands were found: fewer than there were"; exit 1; }
diff <(holdfast limits --markdown) "$source/docs/guide/limits.md" || { echo "FAILED: docs/guide/limits.md: holdfast limits --markdown > docs/guide/limits.md"; exit 1; }
((count >= 11 && fragments >= 31)) || { echo "FAILED: $count programs and $fragments fragments were found: fewer than there were"; exit 1; }
printf '%d programs of the guide run, %d fragments compile, %d commands exist\n' "$count" "$fragments" "$commands"
