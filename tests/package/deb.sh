#!/usr/bin/env bash
# The Debian packages: what is in them, what they depend on; a program is compiled against them, in a root of its own.
#     deb.sh <cmake> <build tree> <source tree> <scratch folder>
set -euo pipefail
cmake=$1 build=$2 tree=$3 scratch=$4
if ! command -v dpkg-shlibdeps >/dev/null; then
    echo "skipped: there is no dpkg-shlibdeps (Debian: dpkg-dev)"
    exit 77
fi
rm -rf "$scratch"
mkdir -p "$scratch"
export DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1 # quick
"$tree/tools/package.sh" "$cmake" "$build" "$scratch/packages"
cd "$scratch"

fail()
{
    echo "FAILED: $*"
    exit 1
}

version=$(sed -n 's/^#define HF_VERSION_TEXT "\(.*\)"/\1/p' "$tree/include/holdfast/base.h")
major=${version%%.*}
architecture=$(dpkg --print-architecture)

# has <package> <path pattern>..., depends <package> <name>...
has()
{
    local package=$1 listing pattern
    shift
    listing=$(dpkg-deb -c "packages/${package}_${version}_$architecture.deb" | awk '{ print $6 }')
    for pattern in "$@"; do
        grep -qE "^\./usr/$pattern\$" <<<"$listing" || fail "$package has no $pattern"
    done
}
depends()
{
    local package=$1 found name
    shift
    found=" $(dpkg-deb -f "packages/${package}_${version}_$architecture.deb" Depends),"
    for name in "$@"; do
        [[ $found =~ \ $name( \(|,) ]] || fail "$package does not depend on $name: $found"
    done
}
has "libholdfast$major" "lib.*/libholdfast\.so\.$major" "lib.*/libholdfast\.so\.$version" "share/doc/libholdfast$major/copyright"
has libholdfast-dev 'include/holdfast/holdfast\.h' 'include/holdfast/holdfast\.hpp' 'lib.*/libholdfast\.so' 'lib.*/libholdfast\.a' \
    'lib.*/pkgconfig/holdfast\.pc' 'lib.*/cmake/Holdfast/HoldfastConfig\.cmake' 'share/man/man3/hf_open\.3\.gz' 'share/doc/.*/docs/guide/workflows\.md'
has holdfast-tools 'bin/holdfast' 'lib.*/libholdfast_guard\.so' 'share/man/man1/holdfast\.1\.gz' 'share/man/man5/holdfast\.conf\.5\.gz' \
    'share/bash-completion/completions/holdfast' 'share/zsh/site-functions/_holdfast'
depends "libholdfast$major" libc6 libsqlite3-0 libyajl2 libzstd1
depends libholdfast-dev "libholdfast$major" libc6-dev
depends holdfast-tools libc6 libsqlite3-0 libnghttp2-14
files=$(dpkg-deb -c "packages/libholdfast${major}_${version}_$architecture.deb")
! grep -E 'include|\.a$' <<<"$files" || fail "these belong into libholdfast-dev"

# Into a root of its own: by dpkg for root, unpacked for others.
mkdir -p root/var/lib/dpkg/{info,updates} log
touch root/var/lib/dpkg/{status,available}
if ((EUID == 0)); then
    dpkg --root="$scratch/root" --force-depends --force-script-chrootless --log=/dev/null -i packages/*.deb >log/dpkg 2>&1 || { cat log/dpkg && fail "dpkg -i"; }
    [[ $(dpkg --root="$scratch/root" -l | grep -c '^ii .*holdfast') == 3 ]] || fail "not all three are installed"
else
    for package in packages/*.deb; do
        dpkg-deb -x "$package" root
    done
fi
pc=$(find root -name holdfast.pc)
PKG_CONFIG_PATH=$scratch/$(dirname "$pc")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs holdfast)"
gcc -std=c17 "$tree/examples/21_hello_workflow.c" "${flags[@]}" -o hello
LD_LIBRARY_PATH=$scratch/$(dirname "$(dirname "$pc")") ./hello >log/hello || fail "an example does not run"
[[ $(root/usr/bin/holdfast --version) == *"$version"* ]] || fail "the program does not say its version"
if ((EUID == 0)); then
    dpkg --root="$scratch/root" --force-depends --log=/dev/null -r libholdfast-dev holdfast-tools "libholdfast$major" >log/dpkg 2>&1 || { cat log/dpkg && fail "dpkg -r"; }
    [[ ! -e root/usr || -z $(find root/usr -type f) ]] || fail "files are left"
fi
