#!/usr/bin/env bash
# temporal:// with TLS, client certificates and API keys, on a real server: what must work, and what must be refused with which words.
# A key is in no line that a program prints (remote-R5).
#     secure.sh <holdfast program> <through_21_hello_workflow> <scratch folder>
set -euo pipefail
holdfast=$(realpath "$1") hello=$(realpath "$2") scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
failed=0
server=
trap '[[ -n $server ]] && kill "$server" 2>/dev/null || true' EXIT

for ca in ca other; do
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$ca" -keyout "$ca.key" -out "$ca.pem" 2>/dev/null
done
for name in server client; do
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -addext 'subjectAltName=DNS:server.test,IP:127.0.0.1' \
        -keyout "$name.key" -out "$name.csr" 2>/dev/null
    openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy \
        -out "$name.pem" 2>/dev/null
done
"$holdfast" key add --keys keys --permissions '*:admin' >admin.key 2>/dev/null
"$holdfast" key add --keys keys --permissions default:read >reader.key 2>/dev/null
echo "hf_00000000_this_is_not_a_key_of_the_server" >wrong.key

mkfifo server.fifo
"$holdfast" serve --store memory: --listen 127.0.0.1:0 --keys keys --tls-cert server.pem --tls-key server.key \
    --tls-client-ca ca.pem --log-level warn >server.fifo 2>server.err &
server=$!
read -r line <server.fifo
at=temporal://127.0.0.1:${line##*:}

# try NAME QUERY EXPECTED: the example prints EXPECTED, on either stream.
try()
{
    local name=$1 query=$2 expected=$3
    HF_THROUGH="$at?$query" timeout 60 "$hello" >"$name.out" 2>&1 || true
    if ! grep -qF "$expected" "$name.out"; then
        echo "FAILED: $name: not '$expected' but:"
        cat "$name.out"
        failed=1
    fi
}

mine="cert=client.pem&key=client.key"
try right "ca=ca.pem&$mine&api_key_file=admin.key" "Hello, world!"
try by_name "ca=ca.pem&server_name=server.test&$mine&api_key_file=admin.key" "Hello, world!"
try other_ca "ca=other.pem&$mine&api_key_file=admin.key" "the certificate of the server is refused"
try other_name "ca=ca.pem&server_name=other.test&$mine&api_key_file=admin.key" "the certificate of the server is refused"
try no_certificate "ca=ca.pem&api_key_file=admin.key" "cannot reach"
try no_key "ca=ca.pem&$mine" "an API key is needed"
try wrong_key "ca=ca.pem&$mine&api_key_file=wrong.key" "the API key is not valid"
try reader "ca=ca.pem&$mine&api_key_file=reader.key" "Request unauthorized"
try half "ca=ca.pem&cert=client.pem&api_key_file=admin.key" "belong together"
# A SIGHUP finds a certificate that is nonsense: the old one goes on, and keys are read all the same.
echo nonsense >server.pem
"$holdfast" key revoke --keys keys "$(cut -c 4-11 reader.key)" >/dev/null
kill -HUP "$server"
until grep -q 'renewal_failed.*certificate' server.err; do
    kill -0 "$server"
    sleep 0.05
done
try renewed "ca=ca.pem&$mine&api_key_file=admin.key" "Hello, world!"
try revoked "ca=ca.pem&$mine&api_key_file=reader.key" "the API key is not valid"
# ... and keys that are: those that there were go on.
echo nonsense >keys
kill -HUP "$server"
until grep -q 'renewal_failed.*keys' server.err; do
    kill -0 "$server"
    sleep 0.05
done
try kept "ca=ca.pem&$mine&api_key_file=admin.key" "Hello, world!"
try plain "tls=no&api_key_file=admin.key" "cannot reach"
at=temporal://192.0.2.1:7233 # a network for documents: nobody is there
try network "tls=no&api_key_file=admin.key" "an API key is only sent with tls=yes"

if grep -F -e "$(cut -c 12- admin.key)" -e "$(cut -c 12- reader.key)" -e "this_is_not_a_key" ./*.out server.err; then
    echo "FAILED: a key is in what a program printed"
    failed=1
fi
((failed)) || echo "TLS, certificates and keys: as they should be"
exit $failed
