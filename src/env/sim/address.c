/* Addresses as text, "tcp:127.0.0.1:80", "tcp:[::1]:80", "unix:/path", and the simulation's name service. */
#include "env/sim/sim_private.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum {
    UNIX_PATH_LEN_MAX = 107, /* the length of sun_path, less the NUL */
    NAME_LEN_MAX = 253,
    PORT_MAX = 65535
};

static hf_status parse_port(hf_op *op, const char *address, const char *text, int *ret_port)
{
    int port = 0;
    size_t len = 0;
    for (; text[len] >= '0' && text[len] <= '9'; len++) {
        port = port > PORT_MAX ? port : port * 10 + (text[len] - '0');
    }
    if (len == 0 || text[len] != '\0') {
        return hf_fail(op, HF_ERR_INVALID, "no port in \"%s\"", address);
    }
    if (port > PORT_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "the port in \"%s\" is over %d", address, PORT_MAX);
    }
    *ret_port = port;
    return HF_OK;
}

/* Checks that host is numeric and writes it in its shortest form. */
static bool host_canonical(const char *host, bool is_v6, char *ret_host, bool *ret_is_any)
{
    struct in6_addr bytes = {0};
    static const struct in6_addr ANY = {0};
    int family = is_v6 ? AF_INET6 : AF_INET;
    if (inet_pton(family, host, &bytes) != 1) {
        return false;
    }
    *ret_is_any = memcmp(&bytes, &ANY, is_v6 ? 16 : 4) == 0;
    return inet_ntop(family, &bytes, ret_host, HF_ADDRESS_LEN_MAX) != NULL;
}

static hf_status parse_tcp(hf_op *op, const char *text, hf_sim_address *ret_address)
{
    const char *host = text + 4;
    const char *colon = strrchr(host, ':');
    hf_sim_address address = {.family = HF_SIM_TCP};
    if (colon == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "no port in \"%s\"", text);
    }
    HF_TRY(parse_port(op, text, colon + 1, &address.port));
    size_t len = (size_t)(colon - host);
    if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
        address.is_v6 = true;
        host++;
        len -= 2;
    }
    char copy[HF_ADDRESS_LEN_MAX];
    if (len >= sizeof copy) {
        return hf_fail(op, HF_ERR_INVALID, "the host in \"%s\" is too long", text);
    }
    memcpy(copy, host, len);
    copy[len] = '\0';
    if (!host_canonical(copy, address.is_v6, address.host, &address.is_any)) {
        return hf_fail(op, HF_ERR_INVALID, "the host in \"%s\" is not numeric", text);
    }
    *ret_address = address;
    return HF_OK;
}

hf_status hf_sim_address_parse(hf_op *op, const char *text, hf_sim_address *ret_address)
{
    if (strncmp(text, "tcp:", 4) == 0) {
        return parse_tcp(op, text, ret_address);
    }
    if (strncmp(text, "unix:", 5) != 0) {
        return hf_fail(op, HF_ERR_INVALID, "\"%s\" is not an address: tcp:HOST:PORT or unix:PATH", text);
    }
    size_t len = strlen(text + 5);
    if (len == 0 || len > UNIX_PATH_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "the path in \"%s\" is %s", text, len == 0 ? "empty" : "too long");
    }
    *ret_address = (hf_sim_address){.family = HF_SIM_UNIX};
    memcpy(ret_address->host, text + 5, len + 1);
    return HF_OK;
}

void hf_sim_address_format(const hf_sim_address *address, char *ret_text)
{
    if (address->family == HF_SIM_UNIX) {
        (void)snprintf(ret_text, HF_ADDRESS_LEN_MAX, "unix:%.107s", address->host);
    } else {
        (void)snprintf(ret_text, HF_ADDRESS_LEN_MAX, address->is_v6 ? "tcp:[%.45s]:%d" : "tcp:%.45s:%d", address->host,
                       address->port);
    }
}

/* "localhost", numbers, and any name that ends in ".sim", which always gets the same address of the host itself. */
static bool look_up(const char *host, char *ret_address)
{
    size_t len = strlen(host);
    bool is_any = false;
    if (strcmp(host, "localhost") == 0) {
        (void)snprintf(ret_address, HF_ADDRESS_LEN_MAX, "127.0.0.1");
        return true;
    }
    if (len > 4 && len <= NAME_LEN_MAX && strcmp(host + len - 4, ".sim") == 0) {
        unsigned last = 2 + (unsigned)(hf_hash_bytes(0, host, len) % 250);
        (void)snprintf(ret_address, HF_ADDRESS_LEN_MAX, "127.0.0.%u", last);
        return true;
    }
    return host_canonical(host, false, ret_address, &is_any) || host_canonical(host, true, ret_address, &is_any);
}

hf_status hf_sim_resolve(hf_env *env, hf_op *op, const char *host, char (*ret_addresses)[HF_ADDRESS_LEN_MAX],
                         size_t count, size_t *ret_count)
{
    hf_sim *sim = hf_sim_of(env);
    char address[HF_ADDRESS_LEN_MAX];
    hf_sim_sleep(sim, hf_sim_latency(sim));
    if (!look_up(host, address)) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "no address for \"%s\"", host);
    }
    if (count > 0) {
        memcpy(ret_addresses[0], address, sizeof address);
    }
    *ret_count = count > 0 ? 1 : 0;
    return HF_OK;
}
