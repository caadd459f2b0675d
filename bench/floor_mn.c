/* The floor of a scheduler on several threads: what stealing and real atomics cost before a runtime adds anything.
 *
 * Each worker has a FIFO ring that others steal from and a private next slot; what overflows goes to a shared queue;
 * idle workers search for a while and then sleep on a futex. A scope is an atomic counter. There is no cancel, no
 * error and no deadline.
 *
 * The rule that makes parking safe: what must happen once a fiber has left its stack (put it back in the ring, drop a
 * lock, free it, give up a scope's last token) is noted in the worker and done by the next context, in after_switch.
 *
 * Built for x86-64 only, as floor.c. */
#include "bench.h"

#if defined(__x86_64__)

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
    SLOT_LEN = 65536,
    CHUNK_LEN = 1 << 28,
    RING = 1024,
    WORKERS_MAX = 8,
    STEAL_MAX = 64,
    SEARCH_ROUNDS = 2000, /* before an idle worker sleeps */
    WAKE_AT = 2           /* a thief is woken only when so many fibers queue up */
};

void floor_switch(void **from, void **to);
__asm__(".text\n"
        ".p2align 5\n"
        ".globl floor_switch\n"
        ".type floor_switch,@function\n"
        "floor_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq (%rsi), %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    popq %rcx\n"
        "    jmp *%rcx\n"
        ".size floor_switch, .-floor_switch\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");

typedef struct fiber fiber;
typedef void (*body)(void *arg);

/* Counts the children and one token of the owner, which it gives up when it waits. */
typedef struct scope {
    atomic_long live;
    fiber *waiter;
} scope;

struct fiber {
    void *sp;
    fiber *next;
    body call;
    void *arg;
    scope *in;
    void *message; /* the value, or where to write it */
    int home;      /* the worker that carved the stack; it goes back there */
};

typedef struct worker {
    _Alignas(64) atomic_uint head;
    _Alignas(64) atomic_uint tail;
    fiber *next_slot; /* runs before the ring; never stolen, so a ping-pong stays on its thread */
    _Atomic(fiber *) ring[RING];
    _Alignas(64) fiber *current;
    fiber *stacks_free;
    fiber idle;
    fiber *after_push;        /* done by the next context: to the ring, */
    fiber *after_dead;        /* its stack to the pool, */
    fiber *after_wait;        /* its scope's token given up, */
    atomic_int *after_unlock; /* this lock dropped */
    int id;
    unsigned ticks;
    char *chunk;
    char *chunk_end;
    unsigned long slot_count;
    _Alignas(64) _Atomic(fiber *) stacks_returned; /* by other workers */
} worker;

static worker workers[WORKERS_MAX];
static int worker_count = 1;
static _Thread_local worker *worker_here;
static atomic_int shared_lock;
static fiber *shared_head;
static fiber *shared_tail;
static atomic_int shared_count;
static atomic_int idlers;
static atomic_int searchers;
static atomic_int wake_word;
static atomic_int stopping;

/* Out of line, so that no thread-local address is kept over a switch. */
static __attribute__((noinline)) worker *here(void)
{
    worker *found = worker_here;
    __asm__ volatile("" : "+r"(found));
    return found;
}

static inline void spin_lock(atomic_int *lock)
{
    for (int tries = 0; atomic_exchange_explicit(lock, 1, memory_order_acquire) != 0; tries++) {
        if (tries > 50) {
            sched_yield();
            tries = 0;
        } else {
            __builtin_ia32_pause();
        }
    }
}

static inline void spin_unlock(atomic_int *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

static void futex(atomic_int *word, int operation, int value)
{
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

static void wake_thief(void)
{
    if (worker_count > 1 && atomic_load_explicit(&idlers, memory_order_relaxed) > 0 &&
        atomic_load_explicit(&searchers, memory_order_relaxed) == 0) {
        atomic_fetch_add(&wake_word, 1);
        futex(&wake_word, FUTEX_WAKE_PRIVATE, 1);
    }
}

static void shared_push(fiber *item)
{
    spin_lock(&shared_lock);
    item->next = NULL;
    if (shared_tail != NULL) {
        shared_tail->next = item;
    } else {
        shared_head = item;
    }
    shared_tail = item;
    atomic_fetch_add(&shared_count, 1);
    spin_unlock(&shared_lock);
}

static fiber *shared_pop(void)
{
    if (atomic_load(&shared_count) == 0) {
        return NULL;
    }
    spin_lock(&shared_lock);
    fiber *item = shared_head;
    if (item != NULL) {
        shared_head = item->next;
        if (shared_head == NULL) {
            shared_tail = NULL;
        }
        atomic_fetch_sub(&shared_count, 1);
    }
    spin_unlock(&shared_lock);
    return item;
}

static inline void ring_push(worker *self, fiber *item)
{
    unsigned tail = atomic_load_explicit(&self->tail, memory_order_relaxed);
    if (tail - atomic_load_explicit(&self->head, memory_order_acquire) >= RING) {
        shared_push(item);
        return;
    }
    atomic_store_explicit(&self->ring[tail % RING], item, memory_order_relaxed);
    atomic_store_explicit(&self->tail, tail + 1, memory_order_release);
}

/* For the owner and for thieves. */
static inline fiber *ring_pop(worker *from)
{
    for (;;) {
        unsigned head = atomic_load_explicit(&from->head, memory_order_acquire);
        unsigned tail = atomic_load_explicit(&from->tail, memory_order_acquire);
        if ((int)(tail - head) <= 0) {
            return NULL;
        }
        fiber *item = atomic_load_explicit(&from->ring[head % RING], memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&from->head, &head, head + 1, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
            return item;
        }
    }
}

static void ready_next(fiber *item)
{
    worker *self = here();
    if (self->next_slot != NULL) {
        ring_push(self, self->next_slot);
        wake_thief();
    }
    self->next_slot = item;
}

static void ready_last(fiber *item)
{
    worker *self = here();
    ring_push(self, item);
    unsigned queued = atomic_load_explicit(&self->tail, memory_order_relaxed) -
                      atomic_load_explicit(&self->head, memory_order_relaxed);
    if ((int)queued >= WAKE_AT) {
        wake_thief();
    }
}

static fiber *find_work(worker *self)
{
    fiber *found = NULL;
    if ((++self->ticks & 63) == 0 && (found = shared_pop()) != NULL) {
        return found; /* the shared queue must not starve */
    }
    if ((found = self->next_slot) != NULL) {
        self->next_slot = NULL;
        return found;
    }
    if ((found = ring_pop(self)) != NULL) {
        return found;
    }
    return shared_pop();
}

static fiber *steal(worker *self)
{
    for (int i = 1; i < worker_count; i++) {
        worker *victim = &workers[(self->id + i) % worker_count];
        int count = (int)(atomic_load(&victim->tail) - atomic_load(&victim->head) + 1) / 2;
        fiber *first = NULL;
        fiber *item = NULL;
        for (int taken = 0; taken < count && taken < STEAL_MAX && (item = ring_pop(victim)) != NULL; taken++) {
            if (first == NULL) {
                first = item;
            } else {
                ring_push(self, item);
            }
        }
        if (first != NULL) {
            return first;
        }
    }
    return NULL;
}

/* ---- Fibers and scopes ------------------------------------------------------------------------------------------- */

/* A stack goes home to the worker that carved it, else the pools drift and every fork faults new pages. */
static void fiber_free(worker *self, fiber *gone)
{
    if (gone->home == self->id) {
        gone->next = self->stacks_free;
        self->stacks_free = gone;
        return;
    }
    worker *home = &workers[gone->home];
    fiber *first = atomic_load_explicit(&home->stacks_returned, memory_order_relaxed);
    do {
        gone->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&home->stacks_returned, &first, gone, memory_order_release,
                                                    memory_order_relaxed));
}

static inline void after_switch(void)
{
    worker *self = here();
    if (self->after_push != NULL) {
        fiber *item = self->after_push;
        self->after_push = NULL;
        ring_push(self, item);
    }
    if (self->after_unlock != NULL) {
        atomic_int *lock = self->after_unlock;
        self->after_unlock = NULL;
        spin_unlock(lock);
    }
    if (self->after_dead != NULL) {
        fiber *gone = self->after_dead;
        self->after_dead = NULL;
        fiber_free(self, gone);
    }
    if (self->after_wait != NULL) {
        fiber *owner = self->after_wait;
        self->after_wait = NULL;
        if (atomic_fetch_sub(&owner->in->live, 1) == 1) {
            ready_next(owner);
        }
    }
}

static void schedule(worker *self)
{
    fiber *leaver = self->current;
    fiber *next = find_work(self);
    if (next == NULL) {
        next = &self->idle;
    }
    self->current = next;
    if (next != leaver) {
        floor_switch(&leaver->sp, &next->sp);
    }
    after_switch();
}

static void fiber_entry(void)
{
    after_switch();
    fiber *started = here()->current;
    started->call(started->arg);
    worker *self = here();
    self->after_dead = started;
    if (atomic_fetch_sub_explicit(&started->in->live, 1, memory_order_acq_rel) == 1) {
        ready_next(started->in->waiter);
    }
    schedule(self);
    __builtin_unreachable();
}

static fiber *fiber_carve(worker *self)
{
    if (self->chunk == self->chunk_end) {
        self->chunk = mmap(NULL, CHUNK_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (self->chunk == MAP_FAILED) {
            perror("mmap");
            exit(1);
        }
        self->chunk_end = self->chunk + CHUNK_LEN;
    }
    uintptr_t top = (uintptr_t)self->chunk + SLOT_LEN - sizeof(fiber) - (self->slot_count++ % 8) * 128;
    self->chunk += SLOT_LEN;
    fiber *made = (fiber *)(top & ~(uintptr_t)63);
    made->home = self->id;
    return made;
}

static fiber *fiber_new(body call, void *arg)
{
    worker *self = here();
    fiber *made = self->stacks_free;
    if (made == NULL && atomic_load_explicit(&self->stacks_returned, memory_order_relaxed) != NULL) {
        made = atomic_exchange_explicit(&self->stacks_returned, NULL, memory_order_acquire);
    }
    if (made != NULL) {
        self->stacks_free = made->next;
    } else {
        made = fiber_carve(self);
    }
    made->call = call;
    made->arg = arg;
    uintptr_t *sp = (uintptr_t *)((uintptr_t)made & ~(uintptr_t)15);
    *--sp = 0;
    *--sp = (uintptr_t)fiber_entry;
    for (int i = 0; i < 6; i++) {
        *--sp = 0;
    }
    made->sp = sp;
    return made;
}

static void scope_init(scope *made)
{
    atomic_init(&made->live, 1);
    made->waiter = here()->current;
}

static void fork_in(scope *in, body call, void *arg)
{
    fiber *made = fiber_new(call, arg);
    made->in = in;
    atomic_fetch_add_explicit(&in->live, 1, memory_order_relaxed);
    ready_last(made);
}

static void scope_wait(scope *in)
{
    worker *self = here();
    fiber *owner = self->current;
    scope *outer = owner->in;
    owner->in = in;
    in->waiter = owner;
    self->after_wait = owner;
    schedule(self);
    owner->in = outer;
}

static fiber *search(worker *self)
{
    fiber *found = NULL;
    atomic_fetch_add(&searchers, 1);
    for (int i = 0; i < SEARCH_ROUNDS && found == NULL; i++) {
        found = steal(self);
        if (found == NULL) {
            found = shared_pop();
        }
        if (found == NULL) {
            __builtin_ia32_pause();
        }
    }
    atomic_fetch_sub(&searchers, 1);
    if (found != NULL) {
        wake_thief();
        return found;
    }
    atomic_fetch_add(&idlers, 1);
    int seen = atomic_load(&wake_word);
    if ((found = steal(self)) == NULL && (found = shared_pop()) == NULL && atomic_load(&stopping) == 0) {
        futex(&wake_word, FUTEX_WAIT_PRIVATE, seen);
    }
    atomic_fetch_sub(&idlers, 1);
    return found;
}

static void *worker_loop(void *arg)
{
    worker *self = arg;
    worker_here = self;
    self->current = &self->idle;
    while (atomic_load(&stopping) == 0) {
        fiber *found = find_work(self);
        if (found == NULL) {
            found = search(self);
        }
        if (found != NULL) {
            self->current = found;
            floor_switch(&self->idle.sp, &found->sp);
            after_switch();
        }
    }
    return NULL;
}

/* A rendezvous of two with one lock, which is dropped only after the parker has left its stack. */
typedef struct channel {
    atomic_int lock;
    fiber *receiver;
    fiber *sender;
} channel;

static void channel_send(channel *chan, void *value)
{
    spin_lock(&chan->lock);
    fiber *receiver = chan->receiver;
    if (receiver != NULL) {
        chan->receiver = NULL;
        *(void **)receiver->message = value;
        spin_unlock(&chan->lock);
        ready_next(receiver);
        return;
    }
    worker *self = here();
    self->current->message = value;
    chan->sender = self->current;
    self->after_unlock = &chan->lock;
    schedule(self);
}

static void channel_recv(channel *chan, void **ret_value)
{
    spin_lock(&chan->lock);
    fiber *sender = chan->sender;
    if (sender != NULL) {
        chan->sender = NULL;
        *ret_value = sender->message;
        spin_unlock(&chan->lock);
        ready_next(sender);
        return;
    }
    worker *self = here();
    self->current->message = ret_value;
    chan->receiver = self->current;
    self->after_unlock = &chan->lock;
    schedule(self);
}

/* ---- Workloads --------------------------------------------------------------------------------------------------- */

static channel there;
static channel back;

static void body_work(void *arg)
{
    (void)arg;
    bench_work();
}

static void body_pong(void *arg)
{
    void *value = NULL;
    for (long left = *(long *)arg; left > 0; left--) {
        channel_recv(&there, &value);
        channel_send(&back, value);
    }
}

static void body_ping(void *arg)
{
    void *value = NULL;
    for (long left = *(long *)arg; left > 0; left--) {
        channel_send(&there, &value);
        channel_recv(&back, &value);
    }
}

static void body_tree(void *arg)
{
    long below = (long)(intptr_t)arg;
    if (below == 0) {
        return;
    }
    scope kids;
    scope_init(&kids);
    fork_in(&kids, body_tree, (void *)(intptr_t)(below - 1));
    fork_in(&kids, body_tree, (void *)(intptr_t)(below - 1));
    scope_wait(&kids);
}

static void run_chan(long count)
{
    scope pair;
    long each = count / 2;
    scope_init(&pair);
    fork_in(&pair, body_pong, &each);
    fork_in(&pair, body_ping, &each);
    int64_t start = bench_wall_ns();
    scope_wait(&pair);
    bench_print("chan", (double)(bench_wall_ns() - start) / (double)(each * 2));
}

static void run_work(long count)
{
    int64_t start = 0;
    for (long batch = -20; batch < count / 1000; batch++) {
        if (batch == 0) {
            start = bench_wall_ns();
        }
        scope batch_scope;
        scope_init(&batch_scope);
        for (int i = 0; i < 1000; i++) {
            fork_in(&batch_scope, body_work, NULL);
        }
        scope_wait(&batch_scope);
    }
    bench_print("work", (double)(bench_wall_ns() - start) / (double)count);
}

static void run_tree(long depth)
{
    int64_t start = 0;
    for (int round = 0; round < 2; round++) { /* the first one carves the stacks */
        start = bench_wall_ns();
        body_tree((void *)(intptr_t)depth);
    }
    bench_print("tree", (double)(bench_wall_ns() - start) / (double)((2L << depth) - 1));
}

static const struct mode {
    const char *name;
    void (*run)(long count);
    long count;
} MODES[] = {
    {"chan", run_chan, 2000000},
    {"work", run_work, 100000},
    {"tree", run_tree, 18},
};

static const struct mode *mode;
static bench_args args;

static void body_main(void *arg)
{
    (void)arg;
    mode->run(bench_count(args, mode->count));
    atomic_store(&stopping, 1);
    atomic_fetch_add(&wake_word, 1);
    futex(&wake_word, FUTEX_WAKE_PRIVATE, WORKERS_MAX);
}

int main(int argc, char **argv)
{
    args = bench_args_parse(argc, argv);
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        if (strcmp(args.mode, MODES[i].name) == 0) {
            mode = &MODES[i];
        }
    }
    if (mode == NULL || args.threads < 1 || args.threads > WORKERS_MAX) {
        fprintf(stderr, "floor_mn: no mode '%s', or not 1 to %d threads\n", args.mode, WORKERS_MAX);
        return 2;
    }
    worker_count = args.threads;
    for (int i = 0; i < worker_count; i++) {
        workers[i].id = i;
    }
    worker_here = &workers[0];
    workers[0].current = &workers[0].idle;
    scope top;
    atomic_init(&top.live, 2); /* never falls to 0: main ends through `stopping` */
    fiber *first = fiber_new(body_main, NULL);
    first->in = &top;
    ring_push(&workers[0], first);
    pthread_t threads[WORKERS_MAX];
    for (int i = 1; i < worker_count; i++) {
        pthread_create(&threads[i], NULL, worker_loop, &workers[i]);
    }
    worker_loop(&workers[0]);
    for (int i = 1; i < worker_count; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}

#else

int main(void)
{
    fprintf(stderr, "floor_mn: written for x86-64 only\n");
    return 2;
}

#endif
