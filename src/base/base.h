/* Small things every file uses: hints, counts, asserts that stay on in release builds. */
#ifndef HF_BASE_BASE_H
#define HF_BASE_BASE_H

#include <holdfast/status.h>

#include <stdatomic.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HF_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define HF_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HF_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define HF_TSAN 1
#endif
#ifndef HF_ASAN
#define HF_ASAN 0
#endif
#ifndef HF_TSAN
#define HF_TSAN 0
#endif

#define HF_LIKELY(x) __builtin_expect(!!(x), 1)
#define HF_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HF_NOINLINE __attribute__((noinline))
#ifdef __OPTIMIZE__
#define HF_ALWAYS_INLINE __attribute__((always_inline)) inline
#else /* the locals of each call would be in the frame of the caller, which may be recursive */
#define HF_ALWAYS_INLINE inline
#endif
#define HF_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define HF_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define HF_CONTAINER_CONST(ptr, type, member) ((const type *)(const void *)((const char *)(ptr)-offsetof(type, member)))

/* States what must be true. If it is not: calls the fatal hook of the running fiber's runtime, then aborts. */
#define hf_assert(what)                          \
    do {                                         \
        if (HF_UNLIKELY(!(what))) {              \
            hf_panic(#what, __FILE__, __LINE__); \
        }                                        \
    } while (0)

void hf_panic(const char *what, const char *file, int line) __attribute__((noreturn, cold));

static inline void hf_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
