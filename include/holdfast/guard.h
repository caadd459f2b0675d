/* The determinism guard: finds code of workflows that asks the operating system for something that a replay would not find again.
 *
 *     LD_PRELOAD=libholdfast_guard.so ./orders      a program that is linked with libholdfast.so
 *     cc orders.c -lholdfast_guard -lholdfast ...   one that is linked with libholdfast.a: the guard's archive comes first
 *     holdfast worker orders.db --plugin orders.so --queue orders --guard
 *
 * In code of a workflow these calls are refused, and the workflow task fails with a sentence that names the call and its place:
 *
 *     clocks    time, gettimeofday, clock_gettime, clock, timespec_get    use hf_wall_now, hf_sleep
 *     chance    rand, random, lrand48, mrand48, drand48, getrandom,       use hf_random, hf_uuid
 *               getentropy, arc4random, arc4random_uniform, arc4random_buf
 *     files     open, openat, creat, fopen, freopen, opendir, access,     use an activity
 *               stat, lstat, unlink, remove, rename, mkdir
 *     network   socket, getaddrinfo                                       use an activity
 *     threads   pthread_create, thrd_create, fork, posix_spawn,           use hf_fork, or an activity
 *               posix_spawnp, system, popen
 *     waiting   sleep, usleep, nanosleep, clock_nanosleep, thrd_sleep,    use hf_sleep
 *               poll, select
 *     settings  getenv, secure_getenv                                     pass it in the input
 *
 * A refused call returns what it returns on failure; errno is EPERM. printf and its kin pass, with a hint at hf_note, once for each
 * place. Activities, the library and the rest of the program are not affected. A place is "file.c:31" if the object has debug
 * information and addr2line (binutils) is installed, else the function and the offset in the object. If the standard library of C++ has
 * made the call (std::chrono, std::ofstream, std::thread), it is the place that called it. What the processor answers alone is not seen:
 * rdtsc, rdrand, and so std::random_device.
 *
 * The guard costs a comparison in each of these calls; programs run without it in production. */
#ifndef HOLDFAST_GUARD_H
#define HOLDFAST_GUARD_H

#include <holdfast/status.h>

HF_BEGIN_DECLS

/* For the guard itself, and for wrappers of your own around calls that it does not know: whether the caller is code of a workflow, and not
 * the library on its behalf. */
HF_API bool hf_guard_applies(void);
/* Fails the workflow task at hand with this sentence, when its code waits next or returns; the first of several counts. `message` is
 * copied. Outside of a workflow nothing happens. */
HF_API void hf_guard_refuse(const char *message);

HF_END_DECLS

#endif
