/* The floor: what this machine allows for fibers on one thread, with nothing that a real runtime needs.
 *
 * A switch of six pushes and an indirect jump, stacks carved from one reservation with the control block on the top
 * page of each, a run queue, and just enough on top to run the same workloads as fibers.c: a scope is a counter, a
 * channel has no lock, a cancel is a walk. No threads, no errors, no deadlines, no guards, nobody waits for anything
 * but what the workload needs. Figures of the library stand beside these as a ratio.
 *
 *   fork: control block and first frame on the stack's top page; the stack returns to the pool at the end (eager)
 *   lazy: a forked job is a 32-byte node; a runner takes such jobs one after another on its own hot stack
 *
 * Built for x86-64 only; elsewhere the program prints nothing and the table has no floor column. */
#include "bench.h"

#if defined(__x86_64__)

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

enum { SLOT_LEN = 65536, CHUNK_LEN = 1 << 30, COLORS = 8, COLOR_LEN = 128 };

/* Saves the callee-saved registers on the stack, stores the stack pointer to *from, and continues at *to. It ends in a
 * jump and not in `ret`, which mispredicts whenever the two fibers parked at different places. */
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
typedef struct job job;
typedef void (*body)(void *arg);

typedef struct queue {
    fiber *head;
    fiber *tail;
} queue;

/* A node of the cancel tree; also a scope, for the fibers whose parent it is. */
struct job {
    job *parent;
    job *next;
    job *prev;
    job *kids;
    fiber *waiter; /* to wake when live falls to 0 */
    long live;     /* children that have not ended */
    bool canceled;
};

struct fiber {
    void *sp;
    fiber *next;
    fiber *prev;
    queue *on; /* where it is parked, NULL when it runs */
    body call;
    void *arg;
    job node;
    char *stack;
    void *message; /* the value, or where to write it */
    fiber *joiner;
    int status;
    bool done;
};

/* An unstarted job of the lazy kind. */
typedef struct lazy lazy;
struct lazy {
    lazy *next;
    body call;
    void *arg;
    job *parent;
};

static fiber main_fiber;
static fiber *current = &main_fiber;
static queue ready;
static fiber *stacks_free;
static fiber *dead; /* ended: its stack is released by whoever runs next */
static char *chunk;
static char *chunk_end;
static long slot_count;
static lazy *lazy_free;
static lazy *lazy_head;
static lazy *lazy_tail;
static job no_scope; /* runners belong to no scope */

static inline void queue_push(queue *list, fiber *item)
{
    item->next = NULL;
    item->prev = list->tail;
    if (list->tail != NULL) {
        list->tail->next = item;
    } else {
        list->head = item;
    }
    list->tail = item;
}

static inline fiber *queue_pop(queue *list)
{
    fiber *item = list->head;
    if (item != NULL) {
        list->head = item->next;
        if (list->head != NULL) {
            list->head->prev = NULL;
        } else {
            list->tail = NULL;
        }
    }
    return item;
}

static inline void queue_remove(queue *list, fiber *item)
{
    if (item->prev != NULL) {
        item->prev->next = item->next;
    } else {
        list->head = item->next;
    }
    if (item->next != NULL) {
        item->next->prev = item->prev;
    } else {
        list->tail = item->prev;
    }
}

/* ---- Fibers and the scheduler ------------------------------------------------------------------------------------ */

static void fiber_entry(void);
static void timers_wait(void);
static void lazy_runner(void *arg);

static fiber *fiber_carve(void)
{
    if (chunk == chunk_end) {
        chunk = mmap(NULL, CHUNK_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (chunk == MAP_FAILED) {
            perror("mmap");
            exit(1);
        }
        madvise(chunk, CHUNK_LEN, MADV_NOHUGEPAGE);
        chunk_end = chunk + CHUNK_LEN;
    }
    char *stack = chunk;
    chunk += SLOT_LEN;
    /* The tops are shifted a little so that the hot lines of many fibers do not share one cache set. */
    uintptr_t top = (uintptr_t)stack + SLOT_LEN - sizeof(fiber) - (uintptr_t)(slot_count++ % COLORS) * COLOR_LEN;
    fiber *made = (fiber *)(top & ~(uintptr_t)63);
    made->stack = stack;
    return made;
}

static fiber *fiber_new(body call, void *arg)
{
    fiber *made = stacks_free;
    if (__builtin_expect(made != NULL, 1)) {
        stacks_free = made->next;
    } else {
        made = fiber_carve();
    }
    made->call = call;
    made->arg = arg;
    made->done = false;
    made->joiner = NULL;
    made->on = NULL;
    made->status = 0;
    memset(&made->node, 0, sizeof made->node);
    uintptr_t *sp = (uintptr_t *)((uintptr_t)made & ~(uintptr_t)15);
    *--sp = 0; /* a return address that is never used: the entry finds the stack aligned as after a call */
    *--sp = (uintptr_t)fiber_entry;
    for (int i = 0; i < 6; i++) {
        *--sp = 0;
    }
    made->sp = sp;
    return made;
}

static inline void fiber_free(fiber *gone)
{
    gone->next = stacks_free;
    stacks_free = gone;
}

static inline void reap(void)
{
    if (dead != NULL) {
        fiber *gone = dead;
        dead = NULL;
        fiber_free(gone);
    }
}

static inline void schedule(void)
{
    fiber *leaver = current;
    fiber *next;
    while (__builtin_expect((next = queue_pop(&ready)) == NULL, 0)) {
        if (lazy_head != NULL) {
            next = fiber_new(lazy_runner, NULL);
            break;
        }
        timers_wait();
    }
    if (next == leaver) {
        return;
    }
    current = next;
    floor_switch(&leaver->sp, &next->sp);
    reap();
}

static inline void fiber_yield(void)
{
    queue_push(&ready, current);
    schedule();
}

static inline int park(queue *list)
{
    current->on = list;
    current->status = 0;
    if (list != NULL) {
        queue_push(list, current);
    }
    schedule();
    return current->status;
}

static inline void wake(fiber *sleeper)
{
    sleeper->on = NULL;
    queue_push(&ready, sleeper);
}

static inline void scope_leave(job *scope)
{
    if (--scope->live == 0 && scope->waiter != NULL) {
        fiber *waiter = scope->waiter;
        scope->waiter = NULL;
        wake(waiter);
    }
}

static void fiber_entry(void)
{
    reap();
    current->call(current->arg);
    fiber *self = current;
    self->done = true;
    if (self->joiner != NULL) {
        wake(self->joiner);
    }
    job *parent = self->node.parent;
    if (parent != NULL) {
        if (self->node.prev != NULL) {
            self->node.prev->next = self->node.next;
        } else {
            parent->kids = self->node.next;
        }
        if (self->node.next != NULL) {
            self->node.next->prev = self->node.prev;
        }
        scope_leave(parent);
        dead = self;
    }
    schedule();
    __builtin_unreachable();
}

static inline fiber *fork_alone(body call, void *arg)
{
    fiber *made = fiber_new(call, arg);
    queue_push(&ready, made);
    return made;
}

static inline void join_alone(fiber *other)
{
    while (!other->done) {
        other->joiner = current;
        park(NULL);
    }
    fiber_free(other);
}

static inline void fork_in(job *scope, body call, void *arg)
{
    fiber *made = fiber_new(call, arg);
    made->node.parent = scope;
    made->node.next = scope->kids;
    if (scope->kids != NULL) {
        scope->kids->prev = &made->node;
    }
    scope->kids = &made->node;
    scope->live++;
    queue_push(&ready, made);
}

static inline void scope_wait(job *scope)
{
    while (scope->live > 0) {
        scope->waiter = current;
        schedule();
    }
}

static void fork_lazy(job *scope, body call, void *arg)
{
    static lazy *block;
    static lazy *block_end;
    lazy *made = lazy_free;
    if (made != NULL) {
        lazy_free = made->next;
    } else {
        if (block == block_end) {
            block = malloc(sizeof *block * 4096);
            if (block == NULL) {
                abort();
            }
            block_end = block + 4096;
        }
        made = block++;
    }
    *made = (lazy){.call = call, .arg = arg, .parent = scope};
    scope->live++;
    if (lazy_tail != NULL) {
        lazy_tail->next = made;
    } else {
        lazy_head = made;
    }
    lazy_tail = made;
}

static void lazy_runner(void *arg)
{
    (void)arg;
    unsigned taken = 0;
    lazy *next;
    while ((next = lazy_head) != NULL) {
        lazy_head = next->next;
        if (lazy_head == NULL) {
            lazy_tail = NULL;
        }
        lazy work = *next;
        next->next = lazy_free;
        lazy_free = next;
        work.call(work.arg);
        scope_leave(work.parent);
        if (ready.head != NULL && (++taken & 15) == 0) {
            fiber_yield(); /* started fibers must not starve */
        }
    }
    current->node.parent = &no_scope;
    no_scope.live++;
}

/* ---- Timers: a 4-ary heap with the deadline beside the pointer, so that sifting touches no fiber ----------------- */

typedef struct sleeper_at {
    int64_t at_ns;
    fiber *sleeper;
} sleeper_at;

static sleeper_at *heap;
static size_t heap_count;
static size_t heap_capacity;

static void heap_add(fiber *sleeper, int64_t at_ns)
{
    if (heap_count == heap_capacity) {
        heap_capacity = heap_capacity > 0 ? heap_capacity * 2 : 1024;
        heap = realloc(heap, sizeof *heap * heap_capacity);
        if (heap == NULL) {
            abort();
        }
    }
    size_t at = heap_count++;
    while (at > 0 && heap[(at - 1) / 4].at_ns > at_ns) {
        heap[at] = heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    heap[at] = (sleeper_at){.at_ns = at_ns, .sleeper = sleeper};
}

static fiber *heap_pop(void)
{
    fiber *first = heap[0].sleeper;
    sleeper_at last = heap[--heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = at * 4 + 1;
        size_t least = child;
        if (child >= heap_count) {
            break;
        }
        for (size_t i = child + 1; i < child + 4 && i < heap_count; i++) {
            if (heap[i].at_ns < heap[least].at_ns) {
                least = i;
            }
        }
        if (heap[least].at_ns >= last.at_ns) {
            break;
        }
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = last;
    return first;
}

static __attribute__((noinline)) void timers_wait(void)
{
    if (heap_count == 0) {
        fprintf(stderr, "floor: nothing can ever run again\n");
        exit(1);
    }
    int64_t now_ns = bench_wall_ns();
    int64_t left_ns = heap[0].at_ns - now_ns;
    if (left_ns > 0) {
        struct timespec left = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        nanosleep(&left, NULL);
        now_ns = bench_wall_ns();
    }
    while (heap_count > 0 && heap[0].at_ns <= now_ns) {
        wake(heap_pop());
    }
}

static void fiber_sleep(int64_t span_ns)
{
    heap_add(current, bench_wall_ns() + span_ns);
    schedule();
}

/* ---- Cancel and channels ----------------------------------------------------------------------------------------- */

static fiber *fiber_of(job *node)
{
    return (fiber *)((char *)node - offsetof(fiber, node));
}

static void cancel(job *scope)
{
    scope->canceled = true;
    for (job *kid = scope->kids; kid != NULL; kid = kid->next) {
        fiber *parked = fiber_of(kid);
        if (kid->canceled) {
            continue;
        }
        if (parked->on != NULL) {
            queue_remove(parked->on, parked);
            parked->status = ECANCELED;
            wake(parked);
        }
        cancel(kid);
    }
}

/* A rendezvous: the value goes from stack to stack. */
typedef struct channel {
    queue receivers;
    queue senders;
} channel;

static inline void channel_send(channel *chan, void *value)
{
    fiber *receiver = queue_pop(&chan->receivers);
    if (receiver != NULL) {
        *(void **)receiver->message = value;
        wake(receiver);
        return;
    }
    current->message = value;
    park(&chan->senders);
}

static inline void channel_recv(channel *chan, void **ret_value)
{
    fiber *sender = queue_pop(&chan->senders);
    if (sender != NULL) {
        *ret_value = sender->message;
        wake(sender);
        return;
    }
    current->message = ret_value;
    park(&chan->receivers);
}

/* ---- Workloads --------------------------------------------------------------------------------------------------- */

static queue parked;
static channel there;
static channel back;

static void body_empty(void *arg)
{
    (void)arg;
}

static void body_yield(void *arg)
{
    for (long left = *(long *)arg; left > 0; left--) {
        fiber_yield();
    }
}

static void body_pong(void *arg)
{
    void *value = NULL;
    for (long left = *(long *)arg; left > 0; left--) {
        channel_recv(&there, &value);
        channel_send(&back, value);
    }
}

static void body_park(void *arg)
{
    (void)arg;
    park(&parked);
}

static void body_sleep(void *arg)
{
    (void)arg;
    fiber_sleep(10000000);
}

static void body_parent(void *arg)
{
    for (long i = 0; i < *(long *)arg; i++) {
        fork_in(&current->node, body_park, NULL);
    }
    scope_wait(&current->node);
}

static void run_yield(job *root, long count)
{
    long each = count / 2;
    for (int i = 0; i < 2; i++) {
        fork_in(root, body_yield, &each);
    }
    int64_t start = bench_cpu_ns();
    scope_wait(root);
    bench_print("yield", (double)(bench_cpu_ns() - start) / (double)(each * 2));
}

static void run_fork_one(job *root, long count)
{
    (void)root;
    int64_t start = 0;
    for (long i = -1000; i < count; i++) {
        if (i == 0) {
            start = bench_cpu_ns();
        }
        join_alone(fork_alone(body_empty, NULL));
    }
    bench_print("fork_one", (double)(bench_cpu_ns() - start) / (double)count);
}

static void run_fork_batch(job *root, long count)
{
    int64_t start = 0;
    for (long batch = -1; batch < count / 1000; batch++) {
        if (batch == 0) {
            start = bench_cpu_ns();
        }
        for (int i = 0; i < 1000; i++) {
            fork_in(root, body_empty, NULL);
        }
        scope_wait(root);
    }
    bench_print("fork_batch", (double)(bench_cpu_ns() - start) / (double)count);
}

static void run_lazy_batch(job *root, long count)
{
    int64_t start = 0;
    for (long batch = -1; batch < count / 1000; batch++) {
        if (batch == 0) {
            start = bench_cpu_ns();
        }
        for (int i = 0; i < 1000; i++) {
            fork_lazy(root, body_empty, NULL);
        }
        scope_wait(root);
    }
    bench_print("lazy_batch", (double)(bench_cpu_ns() - start) / (double)count);
}

static void run_chan(job *root, long count)
{
    void *value = NULL;
    long each = count / 2;
    fork_in(root, body_pong, &each);
    int64_t start = bench_cpu_ns();
    for (long i = 0; i < each; i++) {
        channel_send(&there, &value);
        channel_recv(&back, &value);
    }
    bench_print("chan", (double)(bench_cpu_ns() - start) / (double)(each * 2));
    scope_wait(root);
}

static void run_mem(job *root, long count)
{
    bench_memory before = bench_memory_now();
    int64_t start = bench_cpu_ns();
    for (long i = 0; i < count; i++) {
        fork_in(root, body_park, NULL);
    }
    fiber_yield();
    bench_print("create_s", (double)(bench_cpu_ns() - start) / 1e9);
    bench_print_memory("rss", "pte", before, count);
    _exit(0);
}

static void run_queued(job *root, long count)
{
    bench_memory before = bench_memory_now();
    for (long i = 0; i < count; i++) {
        fork_lazy(root, body_empty, NULL);
    }
    bench_print_memory("queued", NULL, before, count);
    scope_wait(root);
}

static void run_sleep(job *root, long count)
{
    for (int round = 0; round < 2; round++) {
        int64_t start = bench_wall_ns();
        for (long i = 0; i < count; i++) {
            fork_in(root, body_sleep, NULL);
        }
        scope_wait(root);
        bench_print(round == 0 ? "cold_ms" : "warm_ms", (double)(bench_wall_ns() - start) / 1e6);
    }
}

static void cancel_measure(job *root)
{
    int64_t start = bench_cpu_ns();
    cancel(root);
    int64_t marked = bench_cpu_ns();
    scope_wait(root);
    bench_print("cancel_ms", (double)(bench_cpu_ns() - start) / 1e6);
    bench_print("mark_ms", (double)(marked - start) / 1e6);
}

static void run_cancel_tree(job *root, long count)
{
    long each = 1000;
    for (long i = 0; i < count / each; i++) {
        fork_in(root, body_parent, &each);
    }
    fiber_yield();
    fiber_yield();
    cancel_measure(root);
}

static void run_cancel_flat(job *root, long count)
{
    for (long i = 0; i < count; i++) {
        fork_in(root, body_park, NULL);
    }
    fiber_yield();
    cancel_measure(root);
}

static const struct {
    const char *name;
    void (*run)(job *root, long count);
    long count;
} MODES[] = {
    {"yield", run_yield, 8000000},
    {"fork_one", run_fork_one, 2000000},
    {"fork_batch", run_fork_batch, 2000000},
    {"lazy_batch", run_lazy_batch, 8000000},
    {"chan", run_chan, 8000000},
    {"mem", run_mem, 100000},
    {"queued", run_queued, 100000},
    {"sleep", run_sleep, 100000},
    {"cancel_tree", run_cancel_tree, 100000},
    {"cancel_flat", run_cancel_flat, 100000},
};

int main(int argc, char **argv)
{
    bench_args args = bench_args_parse(argc, argv);
    job root = {0};
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        if (strcmp(args.mode, MODES[i].name) == 0) {
            MODES[i].run(&root, bench_count(args, MODES[i].count));
            return 0;
        }
    }
    fprintf(stderr, "floor: no mode '%s'\n", args.mode);
    return 2;
}

#else

int main(void)
{
    fprintf(stderr, "floor: written for x86-64 only\n");
    return 2;
}

#endif
