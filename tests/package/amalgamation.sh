#!/usr/bin/env bash
# The library as one file, in the hands of somebody else.
#     amalgamation.sh <source tree> <folder with holdfast.c, .h, .hpp and .o> <processors> <libholdfast.so> <scratch folder>
#         <holdfast>
set -euo pipefail
tree=$1 from=$2 processors=$3 library=$4 scratch=$5 holdfast=$6
rm -rf "$scratch"
mkdir -p "$scratch/include/holdfast" "$scratch/run"
ln -s "$from/holdfast.h" "$scratch/include/holdfast/holdfast.h" # the examples include <holdfast/holdfast.h>
ln -s "$from/holdfast.hpp" "$scratch/include/holdfast/holdfast.hpp"

fail()
{
    echo "FAILED: $*"
    exit 1
}

# Both compilers, with all that it may have inside. A second name of one thing is a warning, too.
everything=(-DHF_WITH_REMOTE -DHF_WITH_ZSTD)
warnings=(-Wall -Wextra -Wredundant-decls -Werror)
gcc -std=c17 "${warnings[@]}" "${everything[@]}" -c "$from/holdfast.c" -o "$scratch/everything.o" || fail "gcc, with temporal:// and zstd"
clang -std=c17 "${warnings[@]}" "${everything[@]}" -fsyntax-only "$from/holdfast.c" || fail "clang, with temporal:// and zstd"
clang "${warnings[@]}" -fsyntax-only "$from/holdfast.c" || fail "clang, as GNU C"
echo "gcc and clang: no warning"

# The other processor; the headers of these libraries are the same there.
if [[ ";$processors;" == *";aarch64;"* ]] && command -v aarch64-linux-gnu-gcc >/dev/null; then
    mkdir -p "$scratch/aarch64"
    ln -s /usr/include/sqlite3.h /usr/include/yajl "$scratch/aarch64/"
    aarch64-linux-gnu-gcc -std=c17 "${warnings[@]}" -I "$scratch/aarch64" -c "$from/holdfast.c" -o "$scratch/aarch64/holdfast.o" ||
        fail "it does not compile for aarch64"
    symbols=$(aarch64-linux-gnu-nm "$scratch/aarch64/holdfast.o")
    for symbol in hf_switch_raw hf_posix_clone hf_posix_helper_image hf_open_with; do
        grep -q " [TR] $symbol\$" <<<"$symbols" || fail "aarch64: no $symbol"
    done
    echo "aarch64: compiled"
fi

# The header, in both languages; and mixed with itself.
for language in c/c11 c/c17 c++/c++11 c++/c++17 c++/c++20; do
    printf '#include "holdfast.h"\n#include "holdfast.h"\nint main(void) { return hf_version() == 0; }\n' |
        gcc -x "${language%/*}" -std="${language#*/}" -Wall -Wextra -Wpedantic -Werror -I "$from" -fsyntax-only - ||
        fail "holdfast.h as ${language#*/}"
done
printf '#include "holdfast.hpp"\nint main() { return 0; }\n' | g++ -x c++ -std=c++17 -Wall -Wextra -Werror -I "$from" -fsyntax-only - ||
    fail "holdfast.hpp"

# It has the functions that the library exports, but for what it was not compiled with, and hides all others.
nm -D --defined-only "$library" | awk '$2 == "T" { print $3 }' | grep -v '^hf_codec_zstd$' | sort >"$scratch/exported"
readelf -Ws "$from/holdfast.o" | awk '$4 == "FUNC" && $5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" { print $8 }' | sort >"$scratch/visible"
diff "$scratch/exported" "$scratch/visible" || fail "the functions above are only in one of library (<) and file (>)"
echo "$(wc -l <"$scratch/visible") public functions"
if readelf -Ws "$from/holdfast.o" | awk '$7 == "UND" && $6 == "HIDDEN"' | grep .; then
    fail "the functions above are of others, and hidden: a system header was included too late"
fi

# The examples. 06 and 08 need somebody who talks to them.
libraries=(-lsqlite3 -lyajl -lpthread -lm)
for source in "$tree"/examples/2*.c "$tree"/examples/3*.c "$tree"/examples/0[1-5]*.c "$tree"/examples/09*.c; do
    name=$(basename "$source" .c)
    gcc -std=c17 -O1 -I "$scratch/include" "$source" "$from/holdfast.o" "${libraries[@]}" -o "$scratch/$name" || fail "$name does not compile"
    (cd "$scratch/run" && timeout 60 "$scratch/$name") >"$scratch/$name.log" 2>&1 || { cat "$scratch/$name.log" && fail "$name"; }
    echo "$name: ok"
done
g++ -std=c++17 -O1 -I "$scratch/include" "$tree/examples/34_cpp.cpp" "$from/holdfast.o" "${libraries[@]}" -o "$scratch/34_cpp"
(cd "$scratch/run" && timeout 60 "$scratch/34_cpp") >"$scratch/34_cpp.log" 2>&1 || { cat "$scratch/34_cpp.log" && fail 34_cpp; }
echo "34_cpp: ok"

# Without temporal:// it says so.
gcc -std=c17 -I "$scratch/include" "$tree/tests/alone/alone.c" "$from/holdfast.o" "${libraries[@]}" -o "$scratch/alone"
"$scratch/alone" || fail "temporal:// is there, or its absence is not told"

# With it, a worker and a client work on a server.
server=
trap '[[ -z $server ]] || kill -9 "$server" 2>/dev/null || true' EXIT
gcc -std=c17 "${warnings[@]}" -I "$from" "$tree/tests/package/remote.c" "$scratch/everything.o" "${libraries[@]}" -lnghttp2 -lssl -lcrypto -lz -lzstd \
    -o "$scratch/remote" || fail "with temporal:// it does not link"
"$holdfast" serve --store memory: --listen 127.0.0.1:0 >"$scratch/served" 2>&1 &
server=$!
until grep -qE '127\.0\.0\.1:[0-9]+' "$scratch/served"; do
    kill -0 "$server" 2>/dev/null || fail "the server: $(cat "$scratch/served")"
    sleep 0.01
done
address=temporal://$(grep -oE -m1 '127\.0\.0\.1:[0-9]+' "$scratch/served" | head -1)
out=$(timeout 60 "$scratch/remote" "$address") || fail "a worker on $address"
[[ $out == 42 ]] || fail "a worker on $address: $out"
echo "temporal://: ok"
