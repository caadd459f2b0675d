#!/usr/bin/env bash
# Every event that the library and its program log has a row in docs/guide/operating.md.
#     check_events.sh <source tree>
set -euo pipefail
cd "$1"
# The name of an event is the text behind its level, on the same line or on the next.
events=$(find src -name '*.c' -exec cat {} + | tr '\n' ' ' | grep -oE '\bHF_LOG_[A-Z]+, *"[a-z_]+"' | grep -oE '"[a-z_]+"' | tr -d '"' | sort -u)
count=0
failed=0
for event in $events; do
    count=$((count + 1))
    if ! grep -q "^|.*\`$event\`" docs/guide/operating.md; then
        echo "FAILED: docs/guide/operating.md has no row for the event $event"
        failed=1
    fi
done
((count >= 50)) || { echo "FAILED: only $count events were found in src" && failed=1; }
echo "$count events"
exit "$failed"
