#include "env/posix/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the whole text is a decimal number of at most `max`. */
static bool parse_number(const char *text, unsigned long max, unsigned long *ret_number)
{
    size_t len = strlen(text);
    if (len == 0 || len > 10 || strspn(text, "0123456789") != len) {
        return false;
    }
    *ret_number = strtoul(text, NULL, 10);
    return *ret_number <= max;
}

/* Whether the port is a number, but larger than a port can be. */
static bool is_port_too_big(const char *address)
{
    const char *colon = strrchr(address, ':');
    const char *digits = colon != NULL ? colon + 1 + strspn(colon + 1, "0") : "";
    size_t len = strlen(digits);
    return len > 0 && strspn(digits, "0123456789") == len && (len > 5 || strtoul(digits, NULL, 10) > UINT16_MAX);
}

static bool parse_v6(char *host, hf_address *address)
{
    unsigned long scope = 0;
    char *percent = strchr(host, '%');
    if (percent != NULL) {
        *percent = '\0';
        if (!parse_number(percent + 1, UINT32_MAX, &scope)) {
            scope = if_nametoindex(percent + 1);
            if (scope == 0) {
                return false;
            }
        }
    }
    address->as.v6.sin6_family = AF_INET6;
    address->as.v6.sin6_scope_id = (uint32_t)scope;
    address->len = sizeof address->as.v6;
    return inet_pton(AF_INET6, host, &address->as.v6.sin6_addr) == 1;
}

static bool parse_v4(const char *host, hf_address *address)
{
    address->as.v4.sin_family = AF_INET;
    address->len = sizeof address->as.v4;
    return inet_pton(AF_INET, host, &address->as.v4.sin_addr) == 1;
}

/* `text` is the part after "tcp:". */
static bool parse_tcp(const char *text, hf_address *address)
{
    char host[HF_ADDRESS_LEN_MAX];
    const char *colon = strrchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof host) {
        return false;
    }
    size_t len = (size_t)(colon - text);
    memcpy(host, text, len);
    host[len] = '\0';
    unsigned long port = 0;
    if (!parse_number(colon + 1, UINT16_MAX, &port)) {
        return false;
    }
    if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        if (!parse_v6(host + 1, address)) {
            return false;
        }
        address->as.v6.sin6_port = htons((uint16_t)port);
        return true;
    }
    if (!parse_v4(host, address)) {
        return false;
    }
    address->as.v4.sin_port = htons((uint16_t)port);
    return true;
}

hf_status hf_address_parse(hf_op *op, const char *text, hf_address *ret_address)
{
    hf_address address;
    memset(&address, 0, sizeof address);
    if (strncmp(text, "unix:", 5) == 0) {
        const char *path = text + 5;
        size_t len = strlen(path);
        if (len == 0 || len >= sizeof address.as.local.sun_path) {
            return hf_fail(op, HF_ERR_INVALID, "the path of a unix socket has 1 to %zu bytes: \"%.160s\"",
                           sizeof address.as.local.sun_path - 1, text);
        }
        address.as.local.sun_family = AF_UNIX;
        memcpy(address.as.local.sun_path, path, len + 1);
        address.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    } else if (strncmp(text, "tcp:", 4) == 0 && is_port_too_big(text)) {
        return hf_fail(op, HF_ERR_INVALID, "the port in \"%.160s\" is over %d", text, UINT16_MAX);
    } else if (strncmp(text, "tcp:", 4) != 0 || !parse_tcp(text + 4, &address)) {
        return hf_fail(op, HF_ERR_INVALID,
                       "\"%.160s\" is not like tcp:127.0.0.1:8080, tcp:[::1]:8080 or unix:/run/x.sock", text);
    }
    *ret_address = address;
    return HF_OK;
}

void hf_address_format_host(const hf_address *address, char *ret_text)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (address->as.any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &address->as.v4.sin_addr, host, sizeof host);
    } else if (address->as.any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &address->as.v6.sin6_addr, host, sizeof host);
    }
    unsigned scope = address->as.any.sa_family == AF_INET6 ? address->as.v6.sin6_scope_id : 0;
    if (scope != 0) {
        (void)snprintf(ret_text, HF_ADDRESS_LEN_MAX, "%s%%%u", host, scope);
    } else {
        (void)snprintf(ret_text, HF_ADDRESS_LEN_MAX, "%s", host);
    }
}

void hf_address_format(const hf_address *address, char *ret_text)
{
    char host[HF_ADDRESS_LEN_MAX];
    hf_address_format_host(address, host);
    switch (address->as.any.sa_family) {
    case AF_INET:
        (void)snprintf(ret_text, HF_ADDRESS_LEN_MAX, "tcp:%.64s:%u", host, ntohs(address->as.v4.sin_port));
        break;
    case AF_INET6:
        (void)snprintf(ret_text, HF_ADDRESS_LEN_MAX, "tcp:[%.64s]:%u", host, ntohs(address->as.v6.sin6_port));
        break;
    default: {
        /* The kernel need not terminate the path, and a peer without a name has none at all. */
        size_t head_len = offsetof(struct sockaddr_un, sun_path);
        size_t len = address->len > head_len ? address->len - head_len : 0;
        size_t path_len = len > 0 ? strnlen(address->as.local.sun_path, len) : 0;
        (void)snprintf(ret_text, HF_ADDRESS_LEN_MAX, "unix:%.*s", (int)path_len, address->as.local.sun_path);
        break;
    }
    }
}
