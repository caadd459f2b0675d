/* The operating system as an hf_env: just the table. Each group of operations has a file of its own. */
#include "env/posix/posix.h"

static const hf_env_ops OPS = {
    .name = "posix",

    .now = hf_posix_now,
    .wall_now = hf_posix_wall_now,
    .wall_coarse = hf_posix_wall_coarse,
    .random = hf_posix_random,
    .whoami = hf_posix_whoami,

    .allocate = hf_posix_allocate,
    .release = hf_posix_release,
    .heap_trim = hf_posix_heap_trim,
    .pages_reserve = hf_posix_pages_reserve,
    .pages_release = hf_posix_pages_release,
    .pages_discard = hf_posix_pages_discard,
    .pages_guard = hf_posix_pages_guard,
    .pages_touched = hf_posix_pages_touched,
    .mappings_max = hf_posix_mappings_max,
    .fork_marker_open = hf_posix_fork_marker_open,
    .fork_marker_close = hf_posix_fork_marker_close,

    .core_count = hf_posix_core_count,
    .thread_start = hf_posix_thread_start,
    .thread_join = hf_posix_thread_join,
    .thread_forget = hf_posix_thread_forget,
    .thread_signal = hf_posix_thread_signal,
    .thread_id = hf_posix_thread_id,
    .thread_core = hf_posix_thread_core,
    .thread_pin = hf_posix_thread_pin,
    .thread_unpin = hf_posix_thread_unpin,
    .word_wait = hf_posix_word_wait,
    .word_wake = hf_posix_word_wake,
    .barrier_all = hf_posix_barrier_all,
    .point = NULL,

    .interrupt_open = hf_posix_interrupt_open,
    .interrupt_close = hf_posix_interrupt_close,
    .overflow_open = hf_posix_overflow_open,
    .overflow_close = hf_posix_overflow_close,
    .overflow_thread = hf_posix_overflow_thread,

    .poller_open = hf_posix_poller_open,
    .poller_close = hf_posix_poller_close,
    .poller_set = hf_posix_poller_set,
    .poller_wait = hf_posix_poller_wait,
    .poller_ring = hf_posix_poller_ring,
    .poller_fd = hf_posix_poller_fd,
    .poller_arm = hf_posix_poller_arm,

    .listen = hf_posix_listen,
    .accept = hf_posix_accept,
    .peer_is_us = hf_posix_peer_is_us,
    .connect = hf_posix_connect,
    .connect_finish = hf_posix_connect_finish,
    .read = hf_posix_read,
    .write = hf_posix_write,
    .shutdown = hf_posix_shutdown,
    .close = hf_posix_close,
    .resolve = hf_posix_resolve,

    .file_open = hf_posix_file_open,
    .file_read = hf_posix_file_read,
    .file_write = hf_posix_file_write,
    .file_sync = hf_posix_file_sync,
    .file_close = hf_posix_file_close,
    .file_remove = hf_posix_file_remove,
    .socket_remove = hf_posix_socket_remove,
    .file_check = hf_posix_file_check,
    .file_reread = hf_posix_file_reread,
    .lock_open = hf_posix_lock_open,
    .lock_close = hf_posix_lock_close,

    .signals_open = hf_posix_signals_open,
    .signals_share = hf_posix_signals_share,
    .signals_read = hf_posix_signals_read,
    .signals_close = hf_posix_signals_close,

    .helper_open = hf_posix_helper_open,
    .helper_close = hf_posix_helper_close,
    .child_start = hf_posix_child_start,
    .child_signal = hf_posix_child_signal,
    .child_event = hf_posix_child_event,
    .pipe = hf_posix_pipe,

    .print = hf_posix_print,
};

hf_env *hf_env_posix(void)
{
    static hf_env env = {.ops = &OPS};
    return &env;
}
