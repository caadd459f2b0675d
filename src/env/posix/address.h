/* Addresses as text and as the kernel wants them. */
#ifndef HF_ENV_POSIX_ADDRESS_H
#define HF_ENV_POSIX_ADDRESS_H

#include "base/env.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct hf_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } as;
    socklen_t len; /* bytes of `as` in use */
} hf_address;

/* "tcp:127.0.0.1:80", "tcp:[::1]:80", "tcp:[fe80::1%eth0]:80", "unix:/path". Fails: HF_ERR_INVALID. */
hf_status hf_address_parse(hf_op *op, const char *text, hf_address *ret_address);
/* The same back; "unix:" for a local peer without a name. */
void hf_address_format(const hf_address *address, char *ret_text);
/* Only the numeric host: "192.0.2.7", "fe80::1%2". */
void hf_address_format_host(const hf_address *address, char *ret_text);

#endif
