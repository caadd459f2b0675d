/* The determinism guard (holdfast/guard.h): functions of libc in front of the real ones. Each asks the library whether the caller is code of a
 * workflow. If not, the real function is called.
 *
 * It is an object of its own, preloaded or linked first, and not a part of the library. The two functions of the library are weak here: in a
 * process without them, such as a child that inherits LD_PRELOAD, every call passes.
 *
 * The real functions are found by dlsym(RTLD_NEXT) at the first call. Functions that dlsym may call itself are not guarded (malloc), or are
 * found before the first call of a workflow. */
#define _GNU_SOURCE
#include <holdfast/guard.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#pragma weak hf_guard_applies
#pragma weak hf_guard_refuse

#define EXPORT __attribute__((visibility("default"), noinline))

enum { PLACE_LEN = 400, HINTS_MAX = 64, FRAMES_MAX = 24 };

/* The next function of this name. A union, since C does not convert between pointers to objects and to functions. */
#define REAL(result, name, params)                \
    static result(*real_##name) params;           \
    static void find_##name(void)                 \
    {                                             \
        if (real_##name == NULL) {                \
            union {                               \
                void *object;                     \
                result(*function) params;         \
            } symbol = {dlsym(RTLD_NEXT, #name)}; \
            real_##name = symbol.function;        \
        }                                         \
    }

/* ---- Places -------------------------------------------------------------------------------------------------------------------- */

static _Thread_local int inside; /* the guard itself calls libc */

REAL(FILE *, popen, (const char *command, const char *mode))

/* The standard library of C++: its headers, and its shared objects. A place in it says nothing about the workflow. */
static bool is_of_cpp(const char *path)
{
    return strstr(path, "/include/c++/") != NULL || strstr(path, "/libstdc++.so") != NULL ||
           strstr(path, "/libc++.so") != NULL;
}

typedef enum whose {
    KNOWN,   /* a file and a line */
    UNKNOWN, /* debug information or addr2line is missing */
    OF_CPP   /* code of the standard library of C++ */
} whose;

/* "order.c:31" by addr2line, which also tells the calls that were inlined there: the innermost that is not of the standard library. */
static whose ask_addr2line(const char *object, uintptr_t offset, char *place)
{
    char command[2 * PLACE_LEN];
    char line[2 * PLACE_LEN];
    whose found = UNKNOWN;
    find_popen();
    if (strpbrk(object, "'\\") != NULL || snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%lx 2>/dev/null",
                                                   object, (unsigned long)offset) >= (int)sizeof command) {
        return UNKNOWN;
    }
    FILE *answer = real_popen != NULL ? real_popen(command, "r") : NULL;
    while (answer != NULL && fgets(line, sizeof line, answer) != NULL) {
        line[strcspn(line, " \n")] = '\0'; /* a discriminator may follow */
        if (found == KNOWN || line[0] == '?' || strstr(line, ":?") != NULL) {
            continue;
        }
        const char *slash = strrchr(line, '/');
        found = is_of_cpp(line) ? OF_CPP : KNOWN;
        (void)snprintf(place, PLACE_LEN, "%.*s", PLACE_LEN - 1, slash != NULL ? slash + 1 : line);
    }
    if (answer != NULL) {
        (void)pclose(answer);
    }
    return found;
}

/* `place` has something in any case. */
static whose find_place_of(const void *address, char *place)
{
    Dl_info info;
    uintptr_t at = (uintptr_t)address - 1; /* inside the call, not behind it */
    if (dladdr((const void *)at, &info) == 0 || info.dli_fname == NULL) {
        (void)snprintf(place, PLACE_LEN, "address %p", address);
        return UNKNOWN;
    }
    uintptr_t offset = at - (uintptr_t)info.dli_fbase;
    whose found = UNKNOWN;
    if (is_of_cpp(info.dli_fname)) {
        found = OF_CPP;
    } else if (info.dli_fbase != NULL && offset < at) {
        found = ask_addr2line(info.dli_fname, offset, place);
    }
    if (found == UNKNOWN) {
        found = ask_addr2line(info.dli_fname, at, place); /* a program at a fixed address has no offset */
    }
    if (found == UNKNOWN || is_of_cpp(info.dli_fname)) {
        const char *slash = strrchr(info.dli_fname, '/');
        (void)snprintf(place, PLACE_LEN, "%s+0x%lx in %s", info.dli_sname != NULL ? info.dli_sname : "a function",
                       (unsigned long)(info.dli_saddr != NULL ? at - (uintptr_t)info.dli_saddr : offset),
                       slash != NULL ? slash + 1 : info.dli_fname);
    }
    return found;
}

/* The place of the call; if the standard library of C++ has made it, the place that called that. */
static void find_place(const void *address, char *place)
{
    void *frames[FRAMES_MAX];
    char outer[PLACE_LEN];
    if (find_place_of(address, place) != OF_CPP) {
        return;
    }
    int count = backtrace(frames, FRAMES_MAX);
    int i = 0;
    while (i < count && frames[i] != address) {
        i++;
    }
    for (i++; i < count; i++) {
        if (find_place_of(frames[i], outer) != OF_CPP) {
            (void)snprintf(place, PLACE_LEN, "%s", outer);
            return;
        }
    }
}

/* ---- Refusing ------------------------------------------------------------------------------------------------------------------- */

static bool applies(void)
{
    return inside == 0 && hf_guard_applies != NULL && hf_guard_refuse != NULL && hf_guard_applies();
}

static void refuse(const char *function, const char *instead, const void *caller)
{
    char place[PLACE_LEN] = "";
    char text[2 * PLACE_LEN];
    inside++;
    find_place(caller, place);
    (void)snprintf(text, sizeof text, "%s() in code of a workflow, at %s: a replay would find something else; %s",
                   function, place, instead);
    hf_guard_refuse(text);
    inside--;
    errno = EPERM;
}

#define GUARDED(name, instead, failure)                      \
    if (applies()) {                                         \
        refuse(#name, instead, __builtin_return_address(0)); \
        return failure;                                      \
    }                                                        \
    find_##name();

#define USE_CLOCK "use hf_wall_now"
#define USE_RANDOM "use hf_random"
#define USE_ACTIVITY "use an activity"
#define USE_SLEEP "use hf_sleep"
#define USE_INPUT "pass the value in the input"

/* Declares the real function, defines ours: result, name, parameters, arguments, what to use instead, what it returns when refused. */
#define GUARD(result, name, params, args, instead, failure) \
    REAL(result, name, params)                              \
    EXPORT result name params                               \
    {                                                       \
        GUARDED(name, instead, failure)                     \
        return real_##name args;                            \
    }

#if !__GLIBC_PREREQ(2, 36) /* the headers do not have them, and a program that calls them brings its own */
uint32_t arc4random(void);
uint32_t arc4random_uniform(uint32_t bound);
void arc4random_buf(void *to, size_t len);
#endif

/* clang-format off */
GUARD(time_t, time, (time_t *to), (to), USE_CLOCK, (time_t)-1)
GUARD(int, clock_gettime, (clockid_t id, struct timespec *to), (id, to), USE_CLOCK, -1)
GUARD(clock_t, clock, (void), (), USE_CLOCK, (clock_t)-1)
GUARD(int, timespec_get, (struct timespec *to, int base), (to, base), USE_CLOCK, 0)
GUARD(int, rand, (void), (), USE_RANDOM, 0)
GUARD(long, random, (void), (), USE_RANDOM, 0)
GUARD(long, lrand48, (void), (), USE_RANDOM, 0)
GUARD(long, mrand48, (void), (), USE_RANDOM, 0)
GUARD(double, drand48, (void), (), USE_RANDOM, 0)
GUARD(ssize_t, getrandom, (void *to, size_t len, unsigned flags), (to, len, flags), USE_RANDOM, -1)
GUARD(int, getentropy, (void *to, size_t len), (to, len), USE_RANDOM, -1)
GUARD(uint32_t, arc4random, (void), (), USE_RANDOM, 0)
GUARD(uint32_t, arc4random_uniform, (uint32_t bound), (bound), USE_RANDOM, 0)
GUARD(int, creat, (const char *path, mode_t mode), (path, mode), USE_ACTIVITY, -1)
GUARD(FILE *, fopen, (const char *path, const char *mode), (path, mode), USE_ACTIVITY, NULL)
GUARD(FILE *, fopen64, (const char *path, const char *mode), (path, mode), USE_ACTIVITY, NULL)
GUARD(FILE *, freopen, (const char *path, const char *mode, FILE *file), (path, mode, file), USE_ACTIVITY, NULL)
GUARD(FILE *, freopen64, (const char *path, const char *mode, FILE *file), (path, mode, file), USE_ACTIVITY, NULL)
GUARD(int, access, (const char *path, int mode), (path, mode), USE_ACTIVITY, -1)
GUARD(int, stat, (const char *restrict path, struct stat *restrict to), (path, to), USE_ACTIVITY, -1)
GUARD(int, lstat, (const char *restrict path, struct stat *restrict to), (path, to), USE_ACTIVITY, -1)
GUARD(int, unlink, (const char *path), (path), USE_ACTIVITY, -1)
GUARD(int, remove, (const char *path), (path), USE_ACTIVITY, -1)
GUARD(int, rename, (const char *from, const char *to), (from, to), USE_ACTIVITY, -1)
GUARD(int, mkdir, (const char *path, mode_t mode), (path, mode), USE_ACTIVITY, -1)
GUARD(DIR *, opendir, (const char *path), (path), USE_ACTIVITY, NULL)
GUARD(int, socket, (int domain, int type, int protocol), (domain, type, protocol), USE_ACTIVITY, -1)
GUARD(int, getaddrinfo, (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **to),
      (node, service, hints, to), USE_ACTIVITY, EAI_SYSTEM)
GUARD(int, pthread_create, (pthread_t *to, const pthread_attr_t *attributes, void *(*body)(void *), void *arg),
      (to, attributes, body, arg), "use hf_fork, or an activity", EPERM)
GUARD(int, thrd_create, (thrd_t *to, thrd_start_t body, void *arg), (to, body, arg), "use hf_fork, or an activity", thrd_error)
GUARD(pid_t, fork, (void), (), USE_ACTIVITY, -1)
GUARD(int, posix_spawn,
      (pid_t *restrict to, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
       const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const env[restrict]),
      (to, path, actions, attributes, argv, env), USE_ACTIVITY, EPERM)
GUARD(int, posix_spawnp,
      (pid_t *restrict to, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
       const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const env[restrict]),
      (to, path, actions, attributes, argv, env), USE_ACTIVITY, EPERM)
GUARD(int, system, (const char *command), (command), USE_ACTIVITY, -1)
GUARD(unsigned, sleep, (unsigned seconds), (seconds), USE_SLEEP, seconds)
GUARD(int, usleep, (useconds_t span), (span), USE_SLEEP, -1)
GUARD(int, nanosleep, (const struct timespec *span, struct timespec *left), (span, left), USE_SLEEP, -1)
GUARD(int, clock_nanosleep, (clockid_t id, int flags, const struct timespec *span, struct timespec *left),
      (id, flags, span, left), USE_SLEEP, EPERM)
GUARD(int, thrd_sleep, (const struct timespec *span, struct timespec *left), (span, left), USE_SLEEP, -2)
GUARD(int, poll, (struct pollfd *list, nfds_t count, int timeout), (list, count, timeout), USE_SLEEP, -1)
GUARD(int, select, (int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict bad, struct timeval *restrict timeout),
      (count, in, out, bad, timeout), USE_SLEEP, -1)
GUARD(char *, getenv, (const char *name), (name), USE_INPUT, NULL)
GUARD(char *, secure_getenv, (const char *name), (name), USE_INPUT, NULL)
/* clang-format on */

EXPORT FILE *popen(const char *command, const char *mode)
{
    GUARDED(popen, USE_ACTIVITY, NULL)
    return real_popen(command, mode);
}

REAL(void, arc4random_buf, (void *to, size_t len))
EXPORT void arc4random_buf(void *to, size_t len)
{
    if (applies()) {
        refuse("arc4random_buf", USE_RANDOM, __builtin_return_address(0));
        memset(to, 0, len);
        return;
    }
    find_arc4random_buf();
    real_arc4random_buf(to, len);
}

/* The type of its second argument differs between versions of libc. */
REAL(int, gettimeofday, (struct timeval * to, void *zone))
EXPORT int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
    GUARDED(gettimeofday, USE_CLOCK, -1)
    return real_gettimeofday(to, zone);
}

/* The mode is there only if a file may be made. */
#define OPENS(name, params, flags, ...)                                   \
    REAL(int, name, params)                                               \
    EXPORT int name params                                                \
    {                                                                     \
        mode_t mode = 0;                                                  \
        GUARDED(name, USE_ACTIVITY, -1)                                   \
        if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
            va_list args;                                                 \
            va_start(args, flags);                                        \
            mode = va_arg(args, mode_t);                                  \
            va_end(args);                                                 \
        }                                                                 \
        return real_##name(__VA_ARGS__, mode);                            \
    }
OPENS(open, (const char *path, int flags, ...), flags, path, flags)
OPENS(open64, (const char *path, int flags, ...), flags, path, flags)
OPENS(openat, (int folder, const char *path, int flags, ...), flags, folder, path, flags)
OPENS(openat64, (int folder, const char *path, int flags, ...), flags, folder, path, flags)

/* ---- printf and its kin pass, with a hint --------------------------------------------------------------------------------------- */

static void hint(const char *function, const void *caller)
{
    static _Atomic(const void *) told[HINTS_MAX];
    for (int i = 0; i < HINTS_MAX; i++) {
        const void *none = NULL;
        if (atomic_compare_exchange_strong(&told[i], &none, caller)) {
            char place[PLACE_LEN] = "";
            inside++;
            find_place(caller, place);
            (void)dprintf(STDERR_FILENO,
                          "holdfast guard: %s() in code of a workflow, at %s: it prints again in every replay; hf_note "
                          "does not\n",
                          function, place);
            inside--;
            return;
        }
        if (none == caller) {
            return; /* was told */
        }
    }
}

#define HINTED(name)                              \
    if (applies()) {                              \
        hint(#name, __builtin_return_address(0)); \
    }

EXPORT int printf(const char *restrict format, ...)
{
    HINTED(printf)
    va_list args;
    va_start(args, format);
    int count = vfprintf(stdout, format, args);
    va_end(args);
    return count;
}

EXPORT int fprintf(FILE *restrict to, const char *restrict format, ...)
{
    HINTED(fprintf)
    va_list args;
    va_start(args, format);
    int count = vfprintf(to, format, args);
    va_end(args);
    return count;
}

int __printf_chk(int flag, const char *format, ...);
EXPORT int __printf_chk(int flag, const char *format, ...)
{
    (void)flag;
    HINTED(printf)
    va_list args;
    va_start(args, format);
    int count = vfprintf(stdout, format, args);
    va_end(args);
    return count;
}

int __fprintf_chk(FILE *to, int flag, const char *format, ...);
EXPORT int __fprintf_chk(FILE *to, int flag, const char *format, ...)
{
    (void)flag;
    HINTED(fprintf)
    va_list args;
    va_start(args, format);
    int count = vfprintf(to, format, args);
    va_end(args);
    return count;
}

REAL(int, puts, (const char *text))
EXPORT int puts(const char *text)
{
    HINTED(puts)
    find_puts();
    return real_puts(text);
}
