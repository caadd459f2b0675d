/* The floor of what crosses threads: a call handed to another thread and back, and a message between two threads.
 *
 * call: a pool of four threads behind one mutex and one condition, completions on a lock-free list, and an eventfd that
 *       only the first completion of a batch rings, seen by epoll. COUNT calls, with THREADS in flight at a time.
 * spin: two threads that hand one word to and fro, each spinning for its turn: nothing crosses cores faster. */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { POOL_THREADS = 4 };

typedef struct request request;
struct request {
    request *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static request *waiting;
static _Atomic(request *) finished;
static int bell;

static void *pool_thread(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (waiting == NULL) {
            pthread_cond_wait(&filled, &lock);
        }
        request *taken = waiting;
        waiting = taken->next;
        pthread_mutex_unlock(&lock);
        request *first = atomic_load(&finished);
        do {
            taken->next = first;
        } while (!atomic_compare_exchange_weak(&finished, &first, taken));
        if (first == NULL && eventfd_write(bell, 1) != 0) {
            abort();
        }
    }
    return NULL;
}

static void submit(request *call)
{
    pthread_mutex_lock(&lock);
    call->next = waiting;
    waiting = call;
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&filled);
}

static int run_call(long count, long depth)
{
    bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    request *calls = calloc((size_t)depth, sizeof *calls);
    if (bell < 0 || poller < 0 || calls == NULL || epoll_ctl(poller, EPOLL_CTL_ADD, bell, &event) != 0) {
        perror("floor_pool");
        return 1;
    }
    for (int i = 0; i < POOL_THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, pool_thread, NULL);
        pthread_detach(thread);
    }
    long sent = 0;
    long done = 0;
    int64_t start = bench_wall_ns();
    while (sent < depth && sent < count) {
        submit(&calls[sent++]);
    }
    while (done < count) {
        eventfd_t rings = 0;
        epoll_wait(poller, &event, 1, -1);
        if (eventfd_read(bell, &rings) != 0) {
            continue;
        }
        request *batch = atomic_exchange(&finished, NULL);
        while (batch != NULL) {
            request *call = batch;
            batch = call->next;
            done++;
            if (sent < count) {
                sent++;
                submit(call);
            }
        }
    }
    bench_print("call_us", (double)(bench_wall_ns() - start) / 1e3 / (double)count);
    _exit(0); /* the pool's threads wait for ever */
}

static _Alignas(64) atomic_long turn;

/* Waits for the word to reach `value`; gives the core away now and then, in case both threads share one. */
static void await_turn(long value)
{
    for (int tries = 0; atomic_load_explicit(&turn, memory_order_acquire) != value; tries++) {
        if (tries > 10000) {
            sched_yield();
            tries = 0;
        }
    }
}

static void *spin_thread(void *arg)
{
    for (long i = 0; i < *(const long *)arg; i += 2) {
        await_turn(i + 1);
        atomic_store_explicit(&turn, i + 2, memory_order_release);
    }
    return NULL;
}

static int run_spin(long count)
{
    pthread_t other;
    count &= ~1L;
    pthread_create(&other, NULL, spin_thread, &count);
    int64_t start = 0;
    for (long i = 0; i < count; i += 2) {
        if (i == 2) {
            start = bench_wall_ns(); /* the other thread runs */
        }
        atomic_store_explicit(&turn, i + 1, memory_order_release);
        await_turn(i + 2);
    }
    bench_print("spin", (double)(bench_wall_ns() - start) / (double)(count - 2));
    pthread_join(other, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    bench_args args = bench_args_parse(argc, argv);
    if (strcmp(args.mode, "call") == 0) {
        return run_call(bench_count(args, 5000), args.threads);
    }
    if (strcmp(args.mode, "spin") == 0) {
        return run_spin(bench_count(args, 1000000));
    }
    fprintf(stderr, "floor_pool: no mode '%s'\n", args.mode);
    return 2;
}
