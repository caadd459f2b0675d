/* Child processes: argv, never a shell. Each child has a process group of its own, under one small helper process
 * per runtime. When a child ends, the helper kills the rest of its group. When the program dies, even by kill -9,
 * the helper kills all children and their descendants. */
#ifndef HOLDFAST_PROCESS_H
#define HOLDFAST_PROCESS_H

#include <holdfast/io.h>

typedef struct hf_process hf_process;

typedef enum hf_stdio { HF_STDIO_NULL, HF_STDIO_PIPE, HF_STDIO_INHERIT } hf_stdio;

typedef struct hf_process_options {
    size_t size;            /* set by the macro */
    hf_runtime *runtime;    /* needed on a plain thread only */
    const char *const *env; /* "NAME=value", NULL-terminated; NULL = the host's environment */
    const char *cwd;        /* NULL = the host's */
    hf_stdio in, out, err;  /* default: /dev/null */
    hf_span kill_after;     /* hf_process_close: time between SIGTERM and SIGKILL; 0 = SIGKILL at once */
} hf_process_options;

typedef struct hf_exit {
    int code;   /* exit code, -1 when a signal ended it */
    int signal; /* the signal, or 0 */
} hf_exit;

HF_BEGIN_DECLS

/* Starts argv[0] (looked up in PATH when it has no slash). Fails: HF_ERR_NOT_FOUND, HF_ERR_DENIED, HF_ERR_LIMIT. */
HF_API HF_MUST_USE hf_status hf_process_start_with(const char *const *argv, hf_process **ret_process,
                                                   const hf_process_options *options);
HF_API int64_t hf_process_pid(const hf_process *process);
/* Its pipes, owned by the process; NULL unless asked for. A child that writes more than the pipe holds waits until
 * it is read. */
HF_API hf_conn *hf_process_in(hf_process *process);
HF_API hf_conn *hf_process_out(hf_process *process);
HF_API hf_conn *hf_process_err(hf_process *process);
/* Closes the child's standard input. */
HF_API hf_status hf_process_close_in(hf_process *process);
/* Waits for its end. Fails: HF_ERR_CANCELED, HF_ERR_TIMEOUT: it still runs then. */
HF_API HF_MUST_USE hf_status hf_process_wait_with(hf_process *process, hf_exit *ret_exit,
                                                  const hf_wait_options *options);
/* Sends a signal to its whole group. */
HF_API HF_MUST_USE hf_status hf_process_kill(hf_process *process, int signal);
/* Kills the group if it still runs, waits for its end and frees. Accepts NULL. */
HF_API hf_status hf_process_close(hf_process *process);

HF_END_DECLS

HF_AUTO_DEFINE(hf_process_close, hf_process)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_process_start(...) HF_PROCESS_START_(__VA_ARGS__, .size = sizeof(hf_process_options))
#define HF_PROCESS_START_(argv, ret_process, ...) \
    hf_process_start_with((argv), (ret_process), &(hf_process_options){__VA_ARGS__})
#define hf_process_wait(...) HF_PROCESS_WAIT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_PROCESS_WAIT_(process, ret_exit, ...) \
    hf_process_wait_with((process), (ret_exit), &(hf_wait_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_process_start(const char *const *argv, hf_process **ret_process,
    hf_process_options options = hf_process_options())
{
    options.size = sizeof options;
    return hf_process_start_with(argv, ret_process, &options);
}
static inline HF_MUST_USE hf_status
hf_process_wait(hf_process *process, hf_exit *ret_exit,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_process_wait_with(process, ret_exit, &options);
}
#endif
/* clang-format on */

#endif
