#!/usr/bin/env bash
# Installs the library into a scratch prefix and looks at what arrived.
#     install.sh <cmake> <build tree> <prefix>
set -euo pipefail
cmake=$1 build=$2 prefix=$3
rm -rf "$prefix"
"$cmake" --install "$build" --prefix "$prefix" >/dev/null

version=$(sed -n 's/^#define HF_VERSION_TEXT "\(.*\)"/\1/p' "$prefix/include/holdfast/base.h")
failed=0
for pattern in 'include/holdfast/holdfast.h' 'lib*/libholdfast.a' 'lib*/libholdfast.so' "lib*/libholdfast.so.${version%%.*}" \
    "lib*/libholdfast.so.$version" 'lib*/pkgconfig/holdfast.pc' 'lib*/cmake/Holdfast/HoldfastConfig.cmake' \
    'lib*/cmake/Holdfast/HoldfastConfigVersion.cmake' 'share/doc/*/LICENSE' \
    'share/doc/*/README.md' 'share/man/man1/holdfast.1' 'share/man/man5/holdfast.conf.5' 'share/man/man3/hf_open.3' \
    'share/bash-completion/completions/holdfast' 'share/zsh/site-functions/_holdfast' 'share/doc/*/docs/guide/workflows.md'; do
    # The libraries may lie in lib, lib64 or lib/<architecture>.
    if [[ -z $(find "$prefix" -path "$prefix/$pattern" -o -path "$prefix/${pattern/lib\*/lib/*}") ]]; then
        echo "FAILED: $pattern was not installed"
        failed=1
    fi
done
while read -r named; do # what a header tells its reader to look at
    if [[ -z $(find "$prefix" -path "$prefix/share/doc/*/$named") ]]; then
        echo "FAILED: a header names $named, which was not installed"
        failed=1
    fi
done < <(grep -rhoE 'docs/[a-z_/-]+\.md' "$prefix/include" | sort -u)
if grep -rIl "$build" "$prefix"; then
    echo "FAILED: the files above name the build tree"
    failed=1
fi
find "$prefix" -type f -o -type l | sed "s|^$prefix/||" | sort
exit $failed
