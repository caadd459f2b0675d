#!/usr/bin/env bash
# The shared library needs the C library, the libraries of the compiler, SQLite, yajl and zstd, and for temporal:// nghttp2, OpenSSL
# and zlib: nothing else that a user must install. The pkg-config file names the same libraries for static linking.
#     check_needed.sh <libholdfast.so> <holdfast.pc> <1 = with temporal://>
set -euo pipefail
library=$1 pc=$2 remote=$3
failed=0
wanted=(sqlite3 yajl zstd)
static="-lsqlite3 -lyajl_s -lzstd -lm -pthread"
if ((remote)); then
    wanted+=(nghttp2 ssl crypto z)
    static="-lsqlite3 -lyajl_s -lzstd -lnghttp2 -lssl -lcrypto -lz -lm -pthread"
fi
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for name in $needed; do
    short=${name#lib}
    short=${short%%.so*}
    case $name in
    libc.so.* | libm.so.* | libgcc_s.so.* | ld-linux*.so.*) ;;
    *)
        if [[ " ${wanted[*]} " != *" $short "* ]]; then
            echo "FAILED: ${library##*/} needs $name"
            failed=1
        fi
        ;;
    esac
done
for name in "${wanted[@]}"; do
    if ! grep -q "^lib$name\.so" <<<"$needed"; then
        echo "FAILED: ${library##*/} does not need $name: was it read at all?"
        failed=1
    fi
done
private=$(sed -n 's/^Libs\.private: //p' "$pc")
if [[ $private != "$static" ]]; then
    echo "FAILED: Libs.private of ${pc##*/} is '$private'"
    failed=1
fi
echo "${library##*/} needs: $(tr '\n' ' ' <<<"$needed")"
exit $failed
