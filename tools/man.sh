#!/usr/bin/env bash
# holdfast(1), with the commands that the program has: man.sh <holdfast program> <page with a line @COMMANDS@> <page to write>
set -euo pipefail
commands=$("$1" help --mdoc)
mkdir -p "$(dirname "$3")"
while IFS= read -r line; do
    if [[ $line == @COMMANDS@ ]]; then
        printf '%s\n' "$commands"
    else
        printf '%s\n' "$line"
    fi
done <"$2" >"$3"
