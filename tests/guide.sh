#!/usr/bin/env bash
# The programs of the guide are programs: guide.sh FOLDER HEADERS LIBRARY-FLAGS HOLDFAST SCRATCH CC CXX. Each block of README.md and docs/guide that
# begins with ```c run or ```cpp run is compiled and run; a block ```sh run is run by bash, in a folder of its own page, where `holdfast` and
# what the blocks before it have made can be found. A block that follows ```c file=NAME is written to that file of the folder;
# such files are plugins, and are compiled.
set -euo pipefail
source=$1 headers=$2 libraries=$3 holdfast=$4 scratch=$5 cc=$6 cxx=$7
rm -rf "$scratch"
mkdir -p "$scratch/bin"
ln -s "$holdfast" "$scratch/bin/holdfast"
export PATH="$scratch/bin:$PATH" CFLAGS="-I$headers"
count=0

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

for page in "$source"/README.md "$source"/docs/guide/*.md; do
    name=$(basename "$page" .md)
    folder=$scratch/$name
    mkdir -p "$folder"
    blocks "$page" "$folder"
    cd "$folder"
    for file in *.c *.cpp; do # plugins
        case $file in
        '*'* | [0-9][0-9].*) continue ;;
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
diff <(holdfast limits --markdown) "$source/docs/guide/limits.md" || { echo "FAILED: docs/guide/limits.md: holdfast limits --markdown > docs/guide/limits.md"; exit 1; }
printf '%d programs of the guide run\n' "$count"
