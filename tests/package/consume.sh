#!/usr/bin/env bash
# Builds the consumer programs against an installed Holdfast, the way somebody else would, and runs them.
#     consume.sh gcc|clang|find_package|throw|units|exceptions|static <cmake> <prefix> <scratch folder>
set -euo pipefail
how=$1 cmake=$2 prefix=$3 scratch=$4
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$scratch"
mkdir -p "$scratch"
pc=$(find "$prefix" -name holdfast.pc | head -n 1)
libdir=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
export LD_LIBRARY_PATH=$libdir
warnings=(-Wall -Wextra -Wpedantic -Werror)
read -ra cflags <<<"$(pkg-config --cflags holdfast)"
read -ra shared <<<"$(pkg-config --libs holdfast)"
read -ra static <<<"$(pkg-config --static --libs holdfast | sed 's/-lholdfast/-l:libholdfast.a/')"

run()
{
    local name=$1
    shift
    mkdir -p "$scratch/files"
    if ! timeout 120 "$@" "$scratch/files"; then
        echo "FAILED: $name did not run to success"
        exit 1
    fi
    echo "$name: ok"
}

# Each header alone, as the oldest standards: none leans on what another included before it.
check_headers()
{
    local header language
    for header in "$prefix"/include/holdfast/*.h; do
        for language in c/c11 c++/c++11; do
            if ! printf '#include <holdfast/%s>\n' "$(basename "$header")" |
                "$1" -x "${language%/*}" -std="${language#*/}" "${warnings[@]}" "${cflags[@]}" -fsyntax-only -; then
                echo "FAILED: $(basename "$header") is not complete by itself as ${language#*/}"
                exit 1
            fi
        done
    done
    echo "$1: every header is complete by itself"
}

compile_all()
{
    local cc=$1 cxx=$2 std extra
    check_headers "$cc"
    for std in c11 c17; do
        "$cc" -std=$std "${warnings[@]}" "${cflags[@]}" "$here/consumer.c" -o "$scratch/$std" "${shared[@]}"
        run "$cc $std, shared" "$scratch/$std"
    done
    "$cc" -std=c17 "${warnings[@]}" "${cflags[@]}" "$here/consumer.c" -o "$scratch/static" "${static[@]}"
    run "$cc c17, static" env -u LD_LIBRARY_PATH "$scratch/static"
    # Everything in the program; getaddrinfo and the like warn that they still load what the system has.
    "$cc" -static -std=c17 -Wall -Wextra -Wpedantic "${cflags[@]}" "$here/consumer.c" -o "$scratch/alone" \
        "${static[@]}" 2>"$scratch/alone.log" || { cat "$scratch/alone.log" && exit 1; }
    run "$cc c17, -static" env -u LD_LIBRARY_PATH "$scratch/alone"
    for std in c++11 c++17 c++20; do
        extra=()
        # g++ calls fields that a designated initialiser leaves out missing; C and clang++ do not.
        if [[ $cxx == g++ && $std == c++20 ]]; then
            extra=(-Wno-missing-field-initializers)
        fi
        "$cxx" -std=$std "${warnings[@]}" "${extra[@]}" "${cflags[@]}" "$here/consumer.cpp" -o "$scratch/$std" \
            "${shared[@]}"
        run "$cxx $std, shared" "$scratch/$std"
    done
}

# An exception that leaves a body must not wander through our stacks: the process stops and says why.
check_throw()
{
    local cxx code
    for cxx in g++ clang++; do
        "$cxx" -std=c++17 "${warnings[@]}" "${cflags[@]}" "$here/throw.cpp" -o "$scratch/throw_$cxx" "${shared[@]}"
        for where in fiber pool once caught; do
            code=0
            (ulimit -c 0 && timeout 60 "$scratch/throw_$cxx" $where) >"$scratch/log" 2>&1 || code=$?
            if [[ $where == caught ]]; then
                if ((code != 0)); then
                    cat "$scratch/log"
                    echo "FAILED: $cxx: an exception caught inside the body ended with code $code"
                    exit 1
                fi
            elif ((code != 134)) || ! grep -q 'exception left' "$scratch/log"; then
                cat "$scratch/log"
                echo "FAILED: $cxx, $where: code $code instead of an abort with 'exception left' on stderr"
                exit 1
            fi
            echo "$cxx, $where: $(head -n 1 "$scratch/log")"
        done
    done
}

# A span without a unit, such as .start_to_close = 30, is warned of without any option, also where the compiler is quiet about
# the headers themselves: CMake's find_package and /usr/local/include make them system headers.
check_units()
{
    local cc as span flags code
    cat >"$scratch/units.c" <<'END'
#include <holdfast/holdfast.h>
hf_status workflow(hf_payload in, hf_payload *ret_out);
hf_status workflow(hf_payload in, hf_payload *ret_out)
{
    int64_t count = 30;
    (void)count;
    return hf_activity_run("charge", in, ret_out, .start_to_close = SPAN, .attempts_max = 5);
}
END
    cat >"$scratch/units.cpp" <<'END'
#include <holdfast/holdfast.h>
hf_wait_options options();
hf_wait_options options()
{
    hf_wait_options wait = {sizeof(hf_wait_options), SPAN};
    return wait;
}
END
    for cc in gcc clang g++ clang++; do
        for as in -I -isystem; do
            for span in 30 count '{30}' 'hf_seconds(30)' '{.ns = 30}' '{0}'; do
                flags=(-fsyntax-only "-DSPAN=$span" "$as" "$prefix/include")
                case $cc/$span in
                *++/count | *++/{.ns*) continue ;; # C++ has no designated initialisers before C++20
                *++/*) flags+=(-Wall "$scratch/units.cpp") ;;
                */30) flags+=("$scratch/units.c") ;;
                *) flags+=(-Wall "$scratch/units.c") ;;
                esac
                code=0
                "$cc" -Werror "${flags[@]}" 2>"$scratch/log" || code=$?
                case $span in
                30 | count | '{30}')
                    if ((code == 0)) || ! grep -q unit "$scratch/log"; then
                        cat "$scratch/log"
                        echo "FAILED: $cc with $as says nothing about a unit: SPAN is $span"
                        exit 1
                    fi
                    ;;
                *)
                    if ((code != 0)); then
                        cat "$scratch/log"
                        echo "FAILED: $cc with $as: $span is a good span"
                        exit 1
                    fi
                    ;;
                esac
            done
            echo "$cc $as: a number without a unit is warned of"
        done
    done
}

# Fibers that wait in catch blocks, with both compilers; and with a C++ runtime inside the program.
check_exceptions()
{
    local cxx how extra
    for cxx in g++ clang++; do
        for how in shared inside; do
            extra=()
            if [[ $how == inside ]]; then
                extra=(-static-libstdc++ -static-libgcc)
            fi
            "$cxx" -std=c++17 "${warnings[@]}" "${cflags[@]}" "$here/../cpp/exceptions_test.cpp" \
                -o "$scratch/exceptions_${cxx}_$how" "${extra[@]}" "${shared[@]}"
            if ! timeout 120 "$scratch/exceptions_${cxx}_$how"; then
                echo "FAILED: $cxx, C++ runtime $how: fibers that wait in catch blocks"
                exit 1
            fi
            echo "$cxx, C++ runtime $how: ok"
        done
    done
}

# `cc -static` by pkg-config: an example that needs no library at all, and survives its process as any other.
check_static()
{
    local example=$here/../../examples/20_order.c
    read -ra static <<<"$(pkg-config --static --cflags --libs holdfast)"
    gcc -static -std=c17 "${warnings[@]}" "$example" -o "$scratch/order" "${static[@]}" 2>"$scratch/log" ||
        { cat "$scratch/log" && exit 1; }
    if readelf -ld "$scratch/order" | grep -E 'NEEDED|INTERP'; then
        echo "FAILED: it is not static"
        exit 1
    fi
    (cd "$scratch" && env -u LD_LIBRARY_PATH timeout 60 ./order) >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
    echo "20_order, static: $(stat -c %s "$scratch/order") bytes: ok"
}

case $how in
static) check_static ;;
units) check_units ;;
gcc) compile_all gcc g++ ;;
clang) compile_all clang clang++ ;;
throw) check_throw ;;
exceptions) check_exceptions ;;
find_package)
    "$cmake" -S "$here/cmake" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/log" ||
        { cat "$scratch/log" && exit 1; }
    "$cmake" --build "$scratch/build" >"$scratch/log" || { cat "$scratch/log" && exit 1; }
    for program in c_shared c_static cpp_shared cpp_static c_alone; do
        run "find_package, $program" env -u LD_LIBRARY_PATH "$scratch/build/$program"
    done
    ;;
*)
    echo "unknown: $how"
    exit 2
    ;;
esac
