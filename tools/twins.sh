#!/usr/bin/env bash
# A function with options is declared once, as hf_x_with(..., const hf_x_options *options). The rest follows from that
# line: hf_x is a macro in C, which takes the options as designated initialisers, and an inline function in C++, which
# takes them as a struct. This script writes both, between two marks at the end of each header. Options of calls that may
# make a command of a workflow also get the caller's file and line, for reports of replays that differ.
#     twins.sh <headers>            rewrites them
#     twins.sh --check <headers>    fails if one would change
set -euo pipefail
is_check=0
if [[ ${1:-} == --check ]]; then
    is_check=1
    shift
fi
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT
failed=0

# Prints the header with correct twins.
with_twins()
{
    awk '
        function trim(text) {
            gsub(/^[ \t]+|[ \t]+$/, "", text)
            return text
        }
        BEGIN {
            split("hf_wait_options hf_scope_options hf_fork_options hf_activity_options hf_child_options " \
                  "hf_continue_options hf_external_options hf_query_options hf_local_options", names, " ")
            for (i in names) {
                has_place[names[i]] = 1
            }
        }
        # One declaration, without "HF_API HF_MUST_USE" and the type of its `result`, from its name to the closing parenthesis.
        function twin(text,    name, args, count, parts, i, params, plain, quoted, options, upper, arg) {
            name = substr(text, 1, index(text, "(") - 1)
            sub(/_with$/, "", name)
            args = substr(text, index(text, "(") + 1)
            sub(/\)$/, "", args)
            count = split(args, parts, /,/)
            options = trim(parts[count])
            sub(/^const /, "", options)
            sub(/ \*options$/, "", options)
            params = plain = quoted = ""
            for (i = 1; i < count; i++) {
                parts[i] = trim(parts[i])
                arg = parts[i]
                sub(/.*[ *]/, "", arg)
                params = params parts[i] ", "
                plain = plain arg ", "
                quoted = quoted "(" arg "), "
            }
            upper = toupper(name) "_"
            if (count == 1) { # options alone, which may be left out
                c = c "#define " name "(...) \\\n    " name "_with(&(" options "){.size = sizeof(" options ")" \
                    ((options in has_place) ? ", .file = __FILE__, .line = __LINE__" : "") ", __VA_ARGS__})\n"
            } else {
                c = c "#define " name "(...) " upper "(__VA_ARGS__, .size = sizeof(" options ")" \
                    ((options in has_place) ? ", .file = __FILE__, .line = __LINE__" : "") ")\n"
                c = c "#define " upper "(" plain "...) \\\n    " name "_with(" quoted "&(" options "){__VA_ARGS__})\n"
            }
            cpp = cpp "static inline HF_MUST_USE " result "\n" name "(" params "\n"
            cpp = cpp "    " options " options = " options "()" \
                ((options in has_place) ? ", const char *file = __builtin_FILE(), int line = __builtin_LINE()" : "") ")\n"
            gsub(/, \n/, ",\n", cpp)
            cpp = cpp "{\n    options.size = sizeof options;\n" \
                ((options in has_place) ? "    options.file = file;\n    options.line = line;\n" : "") "    return " name "_with(" plain "&options);\n}\n"
        }
        /^HF_API .*(hf_status|hf_memo) hf_[a-z0-9_]+_with\(/ {
            open_text = ""
            is_open = 1
        }
        is_open {
            open_text = open_text " " trim($0)
            if ($0 ~ /;/) {
                is_open = 0
                gsub(/ +/, " ", open_text)
                result = open_text ~ /^[^(]*hf_memo / ? "hf_memo" : "hf_status"
                sub("^[^(]*" result " ", "", open_text)
                sub(/;.*$/, "", open_text)
                twin(open_text)
            }
        }
        /^\/\* Twins, made from the declarations above/ {
            is_inside = 1
            print
            print "/* clang-format off */"
            printf "#ifndef __cplusplus\n%s#else\n%s#endif\n", c, cpp
            print "/* clang-format on */"
            has_twins = 1
        }
        !is_inside { print }
        /^\/\* clang-format on \*\/$/ { is_inside = 0 }
        END {
            if (c != "" && !has_twins) {
                print "FAILED: " FILENAME " has functions with options and no place for their twins" > "/dev/stderr"
                exit 1
            }
        }' "$1"
}

for header in "$@"; do
    with_twins "$header" >"$scratch"
    if ((is_check)); then
        diff -u "$header" "$scratch" || failed=1
    elif ! cmp -s "$header" "$scratch"; then
        cat "$scratch" >"$header"
    fi
done
if ((failed)); then
    echo "FAILED: twins that differ from their declarations: tools/twins.sh include/holdfast/*.h"
fi
exit $failed
