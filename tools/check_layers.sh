#!/usr/bin/env bash
# Proves that the build enforces the layers: for each pair of layers, includes one of the other's headers the way the layer's
# own files would, and expects it to compile exactly when the layer may use the other.
#     check_layers.sh <cc> <source tree> <build tree>
set -euo pipefail
cc=$1 source=$2 build=$3
failed=0
checked=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

complain()
{
    echo "FAILED: $*"
    failed=1
}

while IFS=$'\t' read -r layer seen; do
    for other in $(cut -f1 "$build/layers.txt"); do
        header="$source/src/$other/$other.h" # the header for other layers, if there is one
        [[ -f $header ]] || header=$(find "$source/src/$other" -name '*.h' | sort | head -n 1)
        if [[ -z $header ]]; then
            continue
        fi
        header=${header#"$source/src/"}
        printf '#include "%s"\nint main(void) { return 0; }\n' "$header" >"$scratch/probe.c"
        # The compilation database has the include paths of the layer's real files.
        includes=$(grep -o -- "-I[^ ]*/layers/$layer " "$build/compile_commands.json" | sort -u || true)
        if [[ -z $includes ]]; then
            includes="-I$build/layers/$layer" # the layer is still empty
        fi
        if [[ $(wc -w <<<"$includes") -ne 1 ]]; then
            complain "$layer is compiled with more than one layer folder: $includes"
        fi
        may=no
        [[ " $seen " == *" $other "* ]] && may=yes
        did=no
        # shellcheck disable=SC2086
        if "$cc" -std=c17 -D_GNU_SOURCE -DHF_SWITCH_FPU=0 -fsyntax-only $includes -I"$source/include" \
            "$scratch/probe.c" 2>"$scratch/log"; then
            did=yes
        fi
        checked=$((checked + 1))
        if [[ $may != "$did" ]]; then
            complain "$layer includes \"$header\": allowed $may, compiles $did"
            cat "$scratch/log"
        elif [[ $may == no ]] && ! grep -q 'No such file\|file not found' "$scratch/log"; then
            complain "$layer includes \"$header\": fails for another reason than the include path"
            cat "$scratch/log"
        fi
    done
    # The generated header is visible only to layers that declare it.
    printf '#include "proto/pb.h"\nint main(void) { return 0; }\n' >"$scratch/probe.c"
    may=no
    [[ " $seen " == *" proto "* ]] && may=yes
    did=no
    if "$cc" -std=c17 -D_GNU_SOURCE -fsyntax-only -I"$build/layers/$layer" -I"$source/include" "$scratch/probe.c" \
        2>"$scratch/log"; then
        did=yes
    fi
    if [[ $may != "$did" ]]; then
        complain "$layer includes \"proto/pb.h\": allowed $may, compiles $did"
        cat "$scratch/log"
    fi
    # A path with "..", or one without a layer, would bypass the include path.
    if bad=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' --include='*.[chS]' "$source/src/$layer" |
        grep -vE "\"(${seen// /|})/[^.\"][^\"]*\""); then
        complain "$layer has includes that do not name an allowed layer by full path:"
        echo "$bad"
    fi
done <"$build/layers.txt"

echo "$checked pairs of layers checked"
exit $failed
