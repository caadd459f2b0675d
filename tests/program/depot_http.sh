#!/usr/bin/env bash
# examples/41_depot_http.c against a real HTTP server: depot_http.sh EXAMPLE SCRATCH. Exits with 77 where there is no python3.
set -euo pipefail
example=$1 scratch=$2 here=$(realpath "${0%/*}")
command -v python3 >/dev/null || exit 77
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
coproc origin { exec python3 "$here/origin.py" 2>origin.err; }
trap 'exec {origin[1]}>&- || true' EXIT
read -r -t 30 port <&"${origin[0]}" || { echo "the server did not start: $(cat origin.err)"; exit 1; }
"$example" "http://127.0.0.1:$port" >out
# What the server saw, in this order: a value, the question whether it is still right, the change, the new value, nothing.
for want in 'GET /users/1 200' 'GET /users/1 304' 'PUT /users/1 200' 'GET /users/1 200' 'GET /users/none 404'; do
    read -r -t 30 got <&"${origin[0]}"
    [[ $got == "$want" ]] || { echo "FAILED: the server saw '$got', not '$want'"; cat out; exit 1; }
done
diff - out <<'WANT'
user 1 is Ada, from the server, etag "1"
user 1 is Ada, from memory, etag "1"
user 1 is Ada, from the server, etag "1"
2 fetches, 1 of them found it unchanged
user 1 is Grace, from the server, etag "2"
user none: HF_ERR_NOT_FOUND
WANT
# A server that is not there is a sentence and an exit code, not a hang.
if "$example" http://127.0.0.1:1 >down 2>&1; then
    echo "FAILED: it works without a server"
    exit 1
fi
grep -q . down
echo fine
