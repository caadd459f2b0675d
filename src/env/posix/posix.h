/* The operations of the POSIX environment, as posix.c puts them into the table. Their contracts are in base/env.h. */
#ifndef HF_ENV_POSIX_POSIX_H
#define HF_ENV_POSIX_POSIX_H

#include "base/env.h"

#include <signal.h>
#include <sys/types.h>

/* clock.c */
hf_instant hf_posix_now(hf_env *env);
hf_time hf_posix_wall_now(hf_env *env);
hf_time hf_posix_wall_coarse(hf_env *env);
hf_status hf_posix_random(hf_env *env, hf_op *op, void *bytes, size_t len);
void hf_posix_whoami(hf_env *env, char *ret_text, size_t capacity);
void hf_posix_print(hf_env *env, const char *text);

/* memory.c */
void *hf_posix_allocate(hf_env *env, size_t len, size_t align);
void hf_posix_release(hf_env *env, void *ptr, size_t len);
void hf_posix_heap_trim(hf_env *env);
void *hf_posix_pages_reserve(hf_env *env, size_t len);
void hf_posix_pages_release(hf_env *env, void *pages, size_t len);
void hf_posix_pages_discard(hf_env *env, void *pages, size_t len);
bool hf_posix_pages_touched(hf_env *env, void *pages, size_t len, unsigned char *ret_touched);
hf_guard_kind hf_posix_pages_guard(hf_env *env, void *pages, size_t len, hf_guard_kind kind);
int64_t hf_posix_mappings_max(hf_env *env);
hf_word *hf_posix_fork_marker_open(hf_env *env);
void hf_posix_fork_marker_close(hf_env *env, hf_word *marker);

/* thread.c */
int hf_posix_core_count(hf_env *env);
int hf_posix_thread_core(hf_env *env);
hf_status hf_posix_thread_start(hf_env *env, hf_op *op, const char *name, size_t stack_len, void (*main)(void *),
                                void *arg, hf_thread **ret_thread);
void hf_posix_thread_join(hf_env *env, hf_thread *thread);
void hf_posix_thread_forget(hf_env *env, hf_thread *thread);
hf_status hf_posix_thread_signal(hf_env *env, hf_op *op, hf_thread *thread, int number);
uint64_t hf_posix_thread_id(hf_env *env);
hf_status hf_posix_thread_pin(hf_env *env, hf_op *op, int index);
void hf_posix_thread_unpin(hf_env *env, hf_thread *thread);
/* For threads and processes that the caller starts: the cores that it could use before thread_pin, as sched_setaffinity takes them. NULL: it is not
 * bound. */
const void *hf_posix_thread_cores(size_t *ret_len);

/* word.c */
bool hf_posix_word_wait(hf_env *env, hf_word *word, uint32_t expected, hf_instant deadline);
void hf_posix_word_wake(hf_env *env, hf_word *word, int count);
void hf_posix_barrier_all(hf_env *env);
/* The way of last resort: visits every core. Here for its test. */
void hf_posix_barrier_by_visit(void);

/* poller.c */
hf_status hf_posix_poller_open(hf_env *env, hf_op *op, hf_poller **ret_poller);
void hf_posix_poller_close(hf_env *env, hf_poller *poller);
hf_status hf_posix_poller_set(hf_env *env, hf_op *op, hf_poller *poller, int fd, int events, bool is_new, void *cookie);
int hf_posix_poller_wait(hf_env *env, hf_poller *poller, hf_event *ret_events, int count, hf_instant deadline);
void hf_posix_poller_ring(hf_env *env, hf_poller *poller);
int hf_posix_poller_fd(hf_env *env, hf_poller *poller);
void hf_posix_poller_arm(hf_env *env, hf_poller *poller, hf_instant deadline);

/* signal.c */
hf_status hf_posix_interrupt_open(hf_env *env, hf_op *op, int number, void (*on_signal)(void));
void hf_posix_interrupt_close(hf_env *env, int number);
bool hf_posix_interrupt_is_open(int number);
hf_status hf_posix_signals_open(hf_env *env, hf_op *op, const int *numbers, size_t count, int *ret_fd);
hf_status hf_posix_signals_share(hf_env *env, hf_op *op, int number, int *ret_fd);
hf_status hf_posix_signals_read(hf_env *env, hf_op *op, int fd, int *ret_number);
void hf_posix_signals_close(hf_env *env, const int *numbers, size_t count, int fd);
/* The signals a thread of the library leaves to the host's threads: all but faults and open interrupts. */
void hf_posix_thread_mask(sigset_t *ret_blocked);

/* overflow.c */
hf_status hf_posix_overflow_open(hf_env *env, hf_op *op, bool (*on_fault)(void *state, void *address), void *state);
void hf_posix_overflow_close(hf_env *env, void *state);
void hf_posix_overflow_thread(hf_env *env);

/* net.c */
hf_status hf_posix_listen(hf_env *env, hf_op *op, const char *address, int backlog, bool replace, int *ret_fd,
                          char *ret_address);
hf_status hf_posix_accept(hf_env *env, hf_op *op, int fd, int *ret_fd, char *ret_peer);
bool hf_posix_peer_is_us(hf_env *env, int fd);
hf_status hf_posix_connect(hf_env *env, hf_op *op, const char *address, int *ret_fd);
hf_status hf_posix_connect_finish(hf_env *env, hf_op *op, int fd);
hf_status hf_posix_resolve(hf_env *env, hf_op *op, const char *host, char (*ret_addresses)[HF_ADDRESS_LEN_MAX],
                           size_t count, size_t *ret_count);

/* stream.c */
hf_status hf_posix_read(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len);
hf_status hf_posix_write(hf_env *env, hf_op *op, int fd, const void *buf, size_t len, size_t *ret_len);
hf_status hf_posix_shutdown(hf_env *env, hf_op *op, int fd);
void hf_posix_close(hf_env *env, int fd);
hf_status hf_posix_pipe(hf_env *env, hf_op *op, int *ret_read_fd, int *ret_write_fd);
/* write(2) that gives EPIPE and never SIGPIPE, on any kind of descriptor. */
ssize_t hf_posix_write_quietly(int fd, const void *buf, size_t len);

/* file.c */
hf_status hf_posix_file_open(hf_env *env, hf_op *op, const char *path, hf_file_mode mode, int *ret_fd);
hf_status hf_posix_file_read(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len);
hf_status hf_posix_file_write(hf_env *env, hf_op *op, int fd, const void *buf, size_t len);
hf_status hf_posix_file_sync(hf_env *env, hf_op *op, int fd);
hf_status hf_posix_file_close(hf_env *env, hf_op *op, int fd);

hf_status hf_posix_file_check(hf_env *env, hf_op *op, const char *path);
hf_status hf_posix_file_reread(hf_env *env, hf_op *op, const char *path);

/* lock.c */
hf_status hf_posix_lock_open(hf_env *env, hf_op *op, const char *path, bool is_brief, int *ret_fd, int64_t *ret_holder);
void hf_posix_lock_close(hf_env *env, const char *path, int fd);
hf_status hf_posix_file_remove(hf_env *env, hf_op *op, const char *path);
hf_status hf_posix_socket_remove(hf_env *env, hf_op *op, const char *path);

/* process.c and helper_start.c */
hf_status hf_posix_helper_open(hf_env *env, hf_op *op, hf_helper **ret_helper, int *ret_fd);
void hf_posix_helper_close(hf_env *env, hf_helper *helper);
hf_status hf_posix_child_start(hf_env *env, hf_op *op, hf_helper *helper, uint64_t request, const hf_spawn *spawn);
hf_status hf_posix_child_signal(hf_env *env, hf_op *op, hf_helper *helper, int64_t pid, int number);
hf_status hf_posix_child_event(hf_env *env, hf_op *op, hf_helper *helper, hf_child_event *ret_event);

#endif
