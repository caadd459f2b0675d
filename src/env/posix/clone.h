/* clone(2) of a function onto a stack of its own, sharing memory. Like the C library's clone, but sanitizers do not
 * intercept it. */
#ifndef HF_ENV_POSIX_CLONE_H
#define HF_ENV_POSIX_CLONE_H

/* Runs main(arg) in a new process on the stack that ends at `stack_end`; its result is the exit code. Returns the new
 * process's number, or a negative errno. `ret_pid_fd` is written with CLONE_PIDFD. */
long hf_posix_clone(int (*main)(void *arg), void *stack_end, unsigned long flags, void *arg, int *ret_pid_fd);

#endif
