#!/usr/bin/env bash
# Debian packages of an installed tree: package.sh <cmake> <build tree> <folder for the packages>
#
#     libholdfast0      the shared library
#     libholdfast-dev   headers, archive, pkg-config, CMake, manual pages of section 3, the guide, commands for gdb
#     holdfast-tools    the program, its manual, completions, the determinism guard
#
# What they depend on is found in the binaries by dpkg-shlibdeps.
set -euo pipefail
cmake=$1 build=$2 out=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
out=$(cd "$out" && pwd)

DESTDIR=$work/all "$cmake" --install "$build" --prefix /usr --strip >/dev/null
find "$work/all" -name '*.a' -exec strip --strip-debug {} +
version=$(sed -n 's/^#define HF_VERSION_TEXT "\(.*\)"/\1/p' "$work/all/usr/include/holdfast/base.h")
major=${version%%.*}
architecture=$(dpkg --print-architecture)

# take <package> <pattern>...: moves the files below $work/all/usr that match.
take()
{
    local package=$1 pattern path
    shift
    for pattern in "$@"; do
        while IFS= read -r path; do
            mkdir -p "$work/$package/$(dirname "$path")"
            mv "$work/all/$path" "$work/$package/$path"
        done < <(cd "$work/all" && find usr \( -type f -o -type l \) -path "usr/$pattern")
    done
}

take "libholdfast$major" 'lib*/libholdfast.so.*'
take libholdfast-dev 'include/*' 'lib*/libholdfast.so' 'lib*.a' 'lib*/pkgconfig/*' 'lib*/cmake/*' 'share/man/man3/*' 'share/doc/*/docs/*' \
    'share/doc/*/README.md' 'share/gdb/*' 'share/holdfast/gdb/*'
take holdfast-tools 'bin/*' 'lib*/libholdfast_guard.so' 'share/man/man1/*' 'share/man/man5/*' 'share/bash-completion/*' 'share/zsh/*' \
    'share/doc/*/contrib/*'
rm -f "$work"/all/usr/share/doc/*/LICENSE # it is the copyright file of each
if [[ -n $(find "$work/all" -type f -o -type l) ]]; then
    find "$work/all" -type f -o -type l
    echo "package.sh: the files above belong to no package" >&2
    exit 1
fi

# libraries_of <package>: what its binaries need from other packages, as a list for Depends.
libraries_of()
{
    local binaries=()
    mkdir -p "$work/$1/DEBIAN"
    mapfile -t binaries < <(find "$work/$1/usr" -type f \( -name '*.so*' -o -path '*/bin/*' \))
    mkdir -p "$work/shlibs/debian"
    printf 'Source: holdfast\n\nPackage: %s\nArchitecture: any\n' "$1" >"$work/shlibs/debian/control"
    (cd "$work/shlibs" && dpkg-shlibdeps -O "${binaries[@]/#/-e}") | sed -n 's/^shlibs:Depends=//p'
}

# pack <package> <section> <depends> <recommends> <description>
pack()
{
    local package=$1 section=$2 depends=$3 recommends=$4 description=$5 folder=$work/$1
    mkdir -p "$folder/DEBIAN" "$folder/usr/share/doc/$package"
    {
        printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Holdfast\n\nFiles: *\n'
        printf 'Copyright: the authors of Holdfast\nLicense: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n'
    } >"$folder/usr/share/doc/$package/copyright"
    find "$folder" -path "$folder/DEBIAN" -prune -o -path '*/man/*' -type f -name '*.[0-9]' -exec gzip -9n {} +
    {
        printf 'Package: %s\nSource: holdfast\nVersion: %s\nArchitecture: %s\nSection: %s\nPriority: optional\n' "$package" "$version" \
            "$architecture" "$section"
        printf 'Maintainer: the authors of Holdfast <holdfast@localhost>\n'
        printf 'Installed-Size: %s\n' "$(du -sk --exclude=DEBIAN "$folder" | cut -f 1)"
        [[ -z $depends ]] || printf 'Depends: %s\n' "$depends"
        [[ -z $recommends ]] || printf 'Recommends: %s\n' "$recommends"
        printf 'Description: %s\n' "$description"
    } >"$folder/DEBIAN/control"
    (cd "$folder" && find usr -type f -exec md5sum {} + | sort -k 2) >"$folder/DEBIAN/md5sums"
    find "$folder" -type d -exec chmod 755 {} +
    find "$folder" -type f ! -path '*/bin/*' -exec chmod 644 {} +
    dpkg-deb --root-owner-group --build "$folder" "$out/${package}_${version}_$architecture.deb" >/dev/null
}

mkdir -p "$work/libholdfast$major/DEBIAN"
echo "libholdfast $major libholdfast$major (>= $version)" >"$work/libholdfast$major/DEBIAN/shlibs"
echo 'activate-noawait ldconfig' >"$work/libholdfast$major/DEBIAN/triggers"
pack "libholdfast$major" libs "$(libraries_of "libholdfast$major")" '' 'durable execution as a C library
 A workflow is an ordinary C function that survives crashes and waits for months
 without using memory. Its steps are in a file of SQLite.'
pack libholdfast-dev libdevel "libholdfast$major (= $version), libc6-dev" \
    'libsqlite3-dev, libyajl-dev, libzstd-dev, libnghttp2-dev, libssl-dev, zlib1g-dev, holdfast-tools' \
    'durable execution as a C library: headers and archive
 The recommended packages are needed to link it statically.'
pack holdfast-tools utils "$(libraries_of holdfast-tools)" '' 'durable execution: the program holdfast
 It runs workers, starts, signals and shows workflows, serves a file to the SDKs
 of Temporal, and tries workflows for determinism.'
(cd "$out" && ls -- *"_${version}_$architecture.deb")
