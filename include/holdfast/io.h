/* I/O on fibers: descriptors, listeners, connections, files, name lookup, signals of the operating system.
 *
 * Addresses are text: "tcp:127.0.0.1:8080", "tcp:[::1]:0" (port 0 = any), "tcp:example.org:80", "unix:/run/x.sock".
 * A listener can also be "fd:3": a listening socket that the process was started with, which it then owns.
 * A socket file belongs to its owner alone (mode 0600). Names are for connecting; a listener takes a numeric address
 * or a path, else HF_ERR_INVALID. Every wait ends with the scope's cancel or deadline, or with .timeout. */
#ifndef HOLDFAST_IO_H
#define HOLDFAST_IO_H

#include <holdfast/runtime.h>
#include <holdfast/wait.h>

typedef struct hf_listener hf_listener;
typedef struct hf_conn hf_conn;
typedef struct hf_file hf_file;
typedef struct hf_os_signals hf_os_signals;

#define HF_READABLE 1
#define HF_WRITABLE 2
#define HF_ADDRESS_LEN_MAX 128

typedef struct hf_listen_options {
    size_t size;         /* set by the macro */
    hf_runtime *runtime; /* needed on a plain thread only */
    int backlog;         /* 128 */
    bool replace;        /* unix: remove a stale socket file first */
} hf_listen_options;

typedef struct hf_connect_options {
    size_t size;         /* set by the macro */
    hf_runtime *runtime; /* needed on a plain thread only */
    hf_span timeout;
} hf_connect_options;

typedef enum hf_file_mode { HF_FILE_READ, HF_FILE_WRITE_NEW, HF_FILE_WRITE, HF_FILE_APPEND } hf_file_mode;

typedef struct hf_io_options {
    size_t size;         /* set by the macro */
    hf_runtime *runtime; /* needed on a plain thread only */
} hf_io_options;

HF_BEGIN_DECLS

/* Waits until a descriptor of the caller's is readable or writable. It must be non-blocking to be useful afterwards.
 * One waiter per descriptor and direction, a second gets HF_ERR_MISUSE. Before you close a descriptor that a fiber
 * may wait for, call hf_fd_forget: the waiter gets HF_ERR_CLOSED. */
HF_API HF_MUST_USE hf_status hf_fd_wait_with(int fd, int events, const hf_wait_options *options);
HF_API HF_MUST_USE hf_status hf_fd_forget(int fd);

HF_API HF_MUST_USE hf_status hf_listener_open_with(const char *address, hf_listener **ret_listener,
                                                   const hf_listen_options *options);
/* HF_ERR_LIMIT when there are no descriptors left: no connection is lost, try again after some were closed. */
HF_API HF_MUST_USE hf_status hf_listener_accept_with(hf_listener *listener, hf_conn **ret_conn,
                                                     const hf_wait_options *options);
/* The address as bound, with the real port; lives as long as the listener. */
HF_API const char *hf_listener_address(const hf_listener *listener);
/* Stops listening: waiters in accept get HF_ERR_CLOSED. Accepts NULL. */
HF_API hf_status hf_listener_close(hf_listener *listener);

/* Connects; names are looked up on the pool. Fails: HF_ERR_REFUSED, HF_ERR_TIMEOUT, HF_ERR_NOT_FOUND (name), ... */
HF_API HF_MUST_USE hf_status hf_conn_open_with(const char *address, hf_conn **ret_conn,
                                               const hf_connect_options *options);
/* Reads what there is, at least 1 byte. `*ret_len` 0 with HF_OK is the end of the stream. Fails: HF_ERR_RESET: the
 * peer has cut the connection; HF_ERR_CLOSED: another fiber has closed it; HF_ERR_TIMEOUT, HF_ERR_CANCELED, HF_ERR_IO. */
HF_API HF_MUST_USE hf_status hf_conn_read_with(hf_conn *conn, void *buf, size_t len, size_t *ret_len,
                                               const hf_wait_options *options);
/* Writes all of it. On failure an unknown part was written. Fails: as hf_conn_read. */
HF_API HF_MUST_USE hf_status hf_conn_write_with(hf_conn *conn, const void *buf, size_t len,
                                                const hf_wait_options *options);
/* No more writes: the other side reads the end. Fails: HF_ERR_CLOSED, HF_ERR_RESET, HF_ERR_IO. */
HF_API HF_MUST_USE hf_status hf_conn_shutdown(hf_conn *conn);
HF_API const char *hf_conn_peer(const hf_conn *conn);
/* Waiters on it get HF_ERR_CLOSED. Accepts NULL. */
HF_API hf_status hf_conn_close(hf_conn *conn);

/* Looks a host name up on the pool; writes up to `count` numeric addresses ("192.0.2.7"). Fails:
 * HF_ERR_NOT_FOUND: there is no such name; HF_ERR_CANCELED, HF_ERR_IO. */
HF_API HF_MUST_USE hf_status hf_resolve(const char *host, char (*ret_addresses)[HF_ADDRESS_LEN_MAX], size_t count,
                                        size_t *ret_count);

/* Files, through the pool. Writes are durable once hf_file_sync has returned HF_OK. After a failed sync write the
 * same bytes again and sync again: the system does not write them a second time, and a second sync alone would
 * succeed without them. Fails: HF_ERR_NOT_FOUND: there is no such file or folder; HF_ERR_DENIED, HF_ERR_FULL, HF_ERR_LIMIT,
 * HF_ERR_CANCELED, HF_ERR_IO. */
HF_API HF_MUST_USE hf_status hf_file_open_with(const char *path, hf_file_mode mode, hf_file **ret_file,
                                               const hf_io_options *options);
HF_API HF_MUST_USE hf_status hf_file_read(hf_file *file, void *buf, size_t len, size_t *ret_len); /* 0 = end */
HF_API HF_MUST_USE hf_status hf_file_write(hf_file *file, const void *buf, size_t len);
HF_API HF_MUST_USE hf_status hf_file_sync(hf_file *file);
HF_API hf_status hf_file_close(hf_file *file);

/* Signals of the operating system, on request: from open to close the listed ones are caught and queue up here.
 * A signal can be open only once per process: HF_ERR_EXISTS, also when a worker stops on it. */
HF_API HF_MUST_USE hf_status hf_os_signals_open_with(const int *numbers, size_t count, hf_os_signals **ret_signals,
                                                     const hf_io_options *options);
HF_API HF_MUST_USE hf_status hf_os_signals_next_with(hf_os_signals *signals, int *ret_number,
                                                     const hf_wait_options *options);
HF_API hf_status hf_os_signals_close(hf_os_signals *signals);

HF_END_DECLS

HF_AUTO_DEFINE(hf_listener_close, hf_listener)
HF_AUTO_DEFINE(hf_conn_close, hf_conn)
HF_AUTO_DEFINE(hf_file_close, hf_file)
HF_AUTO_DEFINE(hf_os_signals_close, hf_os_signals)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_fd_wait(...) HF_FD_WAIT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_FD_WAIT_(fd, events, ...) \
    hf_fd_wait_with((fd), (events), &(hf_wait_options){__VA_ARGS__})
#define hf_listener_open(...) HF_LISTENER_OPEN_(__VA_ARGS__, .size = sizeof(hf_listen_options))
#define HF_LISTENER_OPEN_(address, ret_listener, ...) \
    hf_listener_open_with((address), (ret_listener), &(hf_listen_options){__VA_ARGS__})
#define hf_listener_accept(...) HF_LISTENER_ACCEPT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_LISTENER_ACCEPT_(listener, ret_conn, ...) \
    hf_listener_accept_with((listener), (ret_conn), &(hf_wait_options){__VA_ARGS__})
#define hf_conn_open(...) HF_CONN_OPEN_(__VA_ARGS__, .size = sizeof(hf_connect_options))
#define HF_CONN_OPEN_(address, ret_conn, ...) \
    hf_conn_open_with((address), (ret_conn), &(hf_connect_options){__VA_ARGS__})
#define hf_conn_read(...) HF_CONN_READ_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_CONN_READ_(conn, buf, len, ret_len, ...) \
    hf_conn_read_with((conn), (buf), (len), (ret_len), &(hf_wait_options){__VA_ARGS__})
#define hf_conn_write(...) HF_CONN_WRITE_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_CONN_WRITE_(conn, buf, len, ...) \
    hf_conn_write_with((conn), (buf), (len), &(hf_wait_options){__VA_ARGS__})
#define hf_file_open(...) HF_FILE_OPEN_(__VA_ARGS__, .size = sizeof(hf_io_options))
#define HF_FILE_OPEN_(path, mode, ret_file, ...) \
    hf_file_open_with((path), (mode), (ret_file), &(hf_io_options){__VA_ARGS__})
#define hf_os_signals_open(...) HF_OS_SIGNALS_OPEN_(__VA_ARGS__, .size = sizeof(hf_io_options))
#define HF_OS_SIGNALS_OPEN_(numbers, count, ret_signals, ...) \
    hf_os_signals_open_with((numbers), (count), (ret_signals), &(hf_io_options){__VA_ARGS__})
#define hf_os_signals_next(...) HF_OS_SIGNALS_NEXT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_OS_SIGNALS_NEXT_(signals, ret_number, ...) \
    hf_os_signals_next_with((signals), (ret_number), &(hf_wait_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_fd_wait(int fd, int events,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_fd_wait_with(fd, events, &options);
}
static inline HF_MUST_USE hf_status
hf_listener_open(const char *address, hf_listener **ret_listener,
    hf_listen_options options = hf_listen_options())
{
    options.size = sizeof options;
    return hf_listener_open_with(address, ret_listener, &options);
}
static inline HF_MUST_USE hf_status
hf_listener_accept(hf_listener *listener, hf_conn **ret_conn,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_listener_accept_with(listener, ret_conn, &options);
}
static inline HF_MUST_USE hf_status
hf_conn_open(const char *address, hf_conn **ret_conn,
    hf_connect_options options = hf_connect_options())
{
    options.size = sizeof options;
    return hf_conn_open_with(address, ret_conn, &options);
}
static inline HF_MUST_USE hf_status
hf_conn_read(hf_conn *conn, void *buf, size_t len, size_t *ret_len,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_conn_read_with(conn, buf, len, ret_len, &options);
}
static inline HF_MUST_USE hf_status
hf_conn_write(hf_conn *conn, const void *buf, size_t len,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_conn_write_with(conn, buf, len, &options);
}
static inline HF_MUST_USE hf_status
hf_file_open(const char *path, hf_file_mode mode, hf_file **ret_file,
    hf_io_options options = hf_io_options())
{
    options.size = sizeof options;
    return hf_file_open_with(path, mode, ret_file, &options);
}
static inline HF_MUST_USE hf_status
hf_os_signals_open(const int *numbers, size_t count, hf_os_signals **ret_signals,
    hf_io_options options = hf_io_options())
{
    options.size = sizeof options;
    return hf_os_signals_open_with(numbers, count, ret_signals, &options);
}
static inline HF_MUST_USE hf_status
hf_os_signals_next(hf_os_signals *signals, int *ret_number,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_os_signals_next_with(signals, ret_number, &options);
}
#endif
/* clang-format on */

#endif
