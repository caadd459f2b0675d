/* System calls without a C library, for the helper program. Each returns the kernel's result: on failure a negative
 * errno. */
#ifndef HF_ENV_POSIX_HELPER_SYS_H
#define HF_ENV_POSIX_HELPER_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline long sys6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "the helper program knows x86-64 and aarch64"
#endif

#define SYS_ARG(x) ((long)(x))
#define SYS_PTR(x) ((long)(uintptr_t)(x))
#define sys1(n, a) sys6(n, SYS_ARG(a), 0, 0, 0, 0, 0)
#define sys2(n, a, b) sys6(n, SYS_ARG(a), SYS_ARG(b), 0, 0, 0, 0)
#define sys3(n, a, b, c) sys6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), 0, 0, 0)
#define sys4(n, a, b, c, d) sys6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), 0, 0)
#define sys5(n, a, b, c, d, e) sys6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), 0)

#endif
