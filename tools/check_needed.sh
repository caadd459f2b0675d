#!/usr/bin/env bash
# The shared library needs the C library, the libraries of the compiler, SQLite, yajl and zstd: nothing else that a user must install. The
# pkg-config file names the same libraries for static linking.
#     check_needed.sh <libholdfast.so> <holdfast.pc>
set -euo pipefail
library=$1 pc=$2
failed=0
needs_sqlite=0 needs_yajl=0 needs_zstd=0
while read -r name; do
    case $name in
    libsqlite3.so.*) needs_sqlite=1 ;;
    libyajl.so.*) needs_yajl=1 ;;
    libzstd.so.*) needs_zstd=1 ;;
    libc.so.* | libm.so.* | libgcc_s.so.* | ld-linux*.so.*) ;;
    *)
        echo "FAILED: ${library##*/} needs $name"
        failed=1
        ;;
    esac
done < <(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if ((!needs_sqlite || !needs_yajl || !needs_zstd)); then
    echo "FAILED: ${library##*/} does not need SQLite, yajl or zstd: was it read at all?"
    failed=1
fi
private=$(sed -n 's/^Libs\.private: //p' "$pc")
if [[ $private != "-lsqlite3 -lyajl_s -lzstd -lm -pthread" ]]; then
    echo "FAILED: Libs.private of ${pc##*/} is '$private'"
    failed=1
fi
echo "${library##*/} needs: $(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')"
exit $failed
