/* The protocol between the host and the helper process, over a SOCK_SEQPACKET socket: one struct per packet. Both
 * come from the same build, so the structs are the protocol. */
#ifndef HF_ENV_POSIX_HELPER_WIRE_H
#define HF_ENV_POSIX_HELPER_WIRE_H

#include <stdint.h>
#include <sys/socket.h>

#define HF_WIRE_FD_SOCKET 3 /* the helper's end; its end of file means that the host is gone or done */
#define HF_WIRE_FD_HOST \
    4 /* a pidfd of the host: tells of its death even if a forked copy holds the socket. On a
                               kernel without them, something that is never readable */

#define HF_WIRE_FDS_MAX 5 /* descriptors with one request: payload, working directory, 0, 1, 2 */

/* Room for them beside a packet, aligned as the kernel wants it. */
typedef union hf_wire_control {
    struct cmsghdr head;
    unsigned char bytes[CMSG_SPACE(HF_WIRE_FDS_MAX * sizeof(int))];
} hf_wire_control;

typedef enum hf_wire_kind { HF_WIRE_START = 1, HF_WIRE_SIGNAL = 2 } hf_wire_kind;

/* How a child's standard descriptor is made. */
typedef enum hf_wire_stdio {
    HF_WIRE_NULL,    /* /dev/null */
    HF_WIRE_GIVEN,   /* sent along, made blocking */
    HF_WIRE_INHERIT, /* sent along, left as it is: the host uses it too */
} hf_wire_stdio;

/* Host to helper. The descriptors of a start come along in the order: payload, working directory, then one for each
 * of `stdio` that is not HF_WIRE_NULL.
 *
 * The payload is a memory file: argument_count + 1 + variable_count + 1 numbers of 64 bits, then the strings. A number
 * is the offset of a string, or 0 for the NULL at the end of each array; mapped and relocated in place they are argv
 * and envp. */
typedef struct hf_wire_request {
    uint32_t kind;           /* hf_wire_kind */
    int32_t number;          /* signal: which */
    uint64_t request;        /* start: the host's name for it */
    int64_t pid;             /* signal: whose group */
    uint64_t payload_len;    /* start: bytes of the payload */
    uint64_t cwd_offset;     /* start: of the string to chdir to, from the host's directory; 0 = stay there */
    uint32_t argument_count; /* start */
    uint32_t variable_count; /* start */
    uint32_t stdio[3];       /* start: hf_wire_stdio */
    uint32_t reserved;       /* 0 */
} hf_wire_request;

/* Helper to host. */
typedef struct hf_wire_reply {
    uint64_t request; /* as in the request */
    int64_t pid;      /* started */
    uint32_t started; /* 1: it runs, or `error` says why not; 0: it ended */
    int32_t error;    /* started: errno, or 0 */
    int32_t code;     /* ended: exit code, or -1 */
    int32_t signal;   /* ended: the signal, or 0 */
} hf_wire_reply;

_Static_assert(sizeof(hf_wire_request) == 64, "no holes: the bytes travel");
_Static_assert(sizeof(hf_wire_reply) == 32, "no holes: the bytes travel");

#endif
