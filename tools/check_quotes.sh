#!/usr/bin/env bash
# Code that a page quotes from an example is still there, line by line.
#     check_quotes.sh <source tree>
#
# A quote is a block ```c whose line before is <!-- examples/29_entity.c -->.
set -euo pipefail
cd "$1"
awk '
    function check(    line, at, text, found) {
        found = ""
        while ((getline line < file) > 0) found = found line "\n"
        close(file)
        count++
        if (found == "") { print "FAILED: " place " quotes " file ", which does not exist"; failed = 1 }
        else if (index(found, quote) == 0) { print "FAILED: " place " is not what " file " says"; failed = 1 }
    }
    /^<!-- examples\/.* -->$/ { file = $2; next }
    file != "" && /^```c$/ { inside = 1; quote = ""; place = FILENAME ":" FNR; next }
    inside && /^```$/ { check(); inside = 0; file = ""; next }
    inside { quote = quote $0 "\n"; next }
    { file = "" }
    END {
        print count + 0 " quotes"
        if (count == 0) { print "FAILED: no page quotes an example"; failed = 1 }
        exit failed
    }' README.md docs/guide/*.md
