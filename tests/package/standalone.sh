#!/usr/bin/env bash
# The program that needs nothing but glibc: it says so itself, it serves, and its plugins find the Holdfast inside it.
#     standalone.sh <standalone program> <plugin> <handover> <source tree> <scratch folder>
set -euo pipefail
program=$1 plugin=$2 handover=$3 tree=$4 scratch=$5
rm -rf "$scratch"
mkdir -p "$scratch"
strip -o "$scratch/holdfast" "$program"
for name in $(readelf -d "$scratch/holdfast" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $name in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | ld-linux*.so.*) ;;
    *)
        echo "FAILED: it needs $name"
        exit 1
        ;;
    esac
done
# Only Holdfast's functions are there for plugins, not those of the libraries inside.
if nm -D --defined-only "$scratch/holdfast" | awk '{ print $3 }' | grep -E '^(sqlite3_|SSL_|EVP_|nghttp2_|yajl_|ZSTD_|deflate)' | head -n 5 | grep .; then
    echo "FAILED: the functions above are exported"
    exit 1
fi
size=$(stat -c %s "$scratch/holdfast")
printf 'stripped: %d.%02d MiB\n' $((size >> 20)) $((size % 1048576 * 100 / 1048576))
((size <= 16 << 20)) || { echo "FAILED: more than 16 MiB" && exit 1; }
"$tree/tests/program/serve.sh" "$scratch/holdfast" "$plugin" "$handover" "$scratch/serve"
