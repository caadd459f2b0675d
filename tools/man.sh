#!/usr/bin/env bash
# holdfast(1), with the commands that the program has: man.sh <holdfast program> <page with the lines @COMMANDS@ and @WORDS@> <page to write>
set -euo pipefail
commands=$("$1" help --mdoc)
words=$("$1" help --mdoc-words)
mkdir -p "$(dirname "$3")"
while IFS= read -r line; do
    if [[ $line == @COMMANDS@ ]]; then
        printf '%s\n' "$commands"
    elif [[ $line == @WORDS@ ]]; then
        printf '%s\n' "$words"
    else
        printf '%s\n' "$line"
    fi
done <"$2" >"$3"
