#!/usr/bin/env bash
# Checks that a name of a type means one thing: no struct, union or enum hf_* is defined in two places of include/ and src/.
#     check_names.sh <source tree>
set -euo pipefail
cd "$1"
names=$(grep -rhoE '^(typedef )?(struct|union|enum) hf_[a-z0-9_]+ \{' include src --include='*.h' --include='*.c' |
    sed -E 's/^typedef //; s/^[a-z]+ (hf_[a-z0-9_]+) .*/\1/' | sort)
failed=0
for name in $(uniq -d <<<"$names"); do
    echo "FAILED: $name is defined more than once:"
    grep -rnE "^(typedef )?(struct|union|enum) $name \{" include src --include='*.h' --include='*.c' | sed 's/^/    /'
    failed=1
done
if (($(wc -l <<<"$names") < 500)); then
    echo "FAILED: only $(wc -l <<<"$names") types were found"
    failed=1
fi
echo "$(wc -l <<<"$names") types"
exit "$failed"
