/* labels: threads */
// C++ exceptions on fibers: what a catch block, a destructor in the middle of an unwind and std::current_exception see is the
// fiber's own, whatever other fibers do on the same thread while it waits.
#include <holdfast/holdfast.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

namespace
{

std::atomic<int> failures{0};
std::atomic<int> passed{0}; // checks that were reached and held

bool check(bool is_so, const char *what, int line)
{
    if (!is_so) {
        std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, what);
        failures++;
    } else {
        passed++;
    }
    return is_so;
}

#define CHECK(cond) check((cond), #cond, __LINE__)

std::string text_of(const char *what, long number)
{
    return std::string(what) + " number " + std::to_string(number) + ", in words that are too long for a short string";
}

// Gives others the thread for a while, in one of the ways there are.
hf_status wait_a_while(long number)
{
    switch (number % 3) {
    case 0:
        return hf_yield();
    case 1:
        return hf_sleep(hf_microseconds(50 + 37 * (number % 7)));
    default:
        HF_TRY(hf_yield());
        return hf_sleep(hf_microseconds(10));
    }
}

// ---- What fibers do ------------------------------------------------------------------------------------------------------

hf_status wait_in_catch(void *arg)
{
    long number = reinterpret_cast<long>(arg);
    std::string want = text_of("failure", number);
    try {
        throw std::runtime_error(want);
    } catch (const std::exception &e) {
        HF_TRY(wait_a_while(number));
        CHECK(want == e.what());
        HF_TRY(wait_a_while(number + 1));
        CHECK(want == e.what());
        CHECK(std::uncaught_exceptions() == 0);
    }
    CHECK(std::current_exception() == nullptr);
    return HF_OK;
}

hf_status nest_catches(void *arg)
{
    long number = reinterpret_cast<long>(arg);
    std::string outer = text_of("outer", number);
    std::string inner = text_of("inner", number);
    try {
        throw std::runtime_error(outer);
    } catch (const std::exception &e) {
        HF_TRY(wait_a_while(number));
        try {
            throw std::logic_error(inner);
        } catch (const std::exception &f) {
            HF_TRY(wait_a_while(number + 1));
            CHECK(inner == f.what());
            CHECK(outer == e.what());
        }
        HF_TRY(wait_a_while(number + 2));
        CHECK(outer == e.what());
        try {
            std::rethrow_exception(std::current_exception());
        } catch (const std::runtime_error &again) {
            CHECK(outer == again.what());
        }
    }
    return HF_OK;
}

hf_status rethrow_after_wait(void *arg)
{
    long number = reinterpret_cast<long>(arg);
    std::string want = text_of("thrown again", number);
    bool is_caught = false;
    try {
        try {
            throw std::runtime_error(want);
        } catch (...) {
            HF_TRY(wait_a_while(number));
            throw;
        }
    } catch (const std::runtime_error &e) {
        is_caught = want == e.what();
        HF_TRY(wait_a_while(number + 1));
        CHECK(want == e.what());
    }
    CHECK(is_caught);
    return HF_OK;
}

hf_status keep_current(void *arg)
{
    long number = reinterpret_cast<long>(arg);
    std::string want = text_of("kept", number);
    std::exception_ptr kept;
    try {
        throw std::runtime_error(want);
    } catch (...) {
        std::exception_ptr before = std::current_exception();
        HF_TRY(wait_a_while(number));
        CHECK(std::current_exception() == before);
        kept = before;
    }
    CHECK(std::current_exception() == nullptr);
    HF_TRY(wait_a_while(number));
    try {
        std::rethrow_exception(kept);
    } catch (const std::exception &e) {
        CHECK(want == e.what());
    }
    return HF_OK;
}

struct slow_goodbye {
    long number;
    int expected; // exceptions that are on their way while this goes
    ~slow_goodbye()
    {
        CHECK(std::uncaught_exceptions() == expected);
        (void)wait_a_while(number);
        CHECK(std::uncaught_exceptions() == expected);
        try { // another one, in the middle of the first
            throw std::logic_error("in between");
        } catch (const std::exception &) {
            (void)wait_a_while(number + 1);
            CHECK(std::uncaught_exceptions() == expected);
        }
        CHECK(std::uncaught_exceptions() == expected);
    }
};

hf_status wait_while_unwinding(void *arg)
{
    long number = reinterpret_cast<long>(arg);
    std::string want = text_of("unwound", number);
    try {
        slow_goodbye goodbye = {number, 1};
        throw std::runtime_error(want);
    } catch (const std::exception &e) {
        CHECK(want == e.what());
    }
    {
        slow_goodbye goodbye = {number, 0};
    }
    return HF_OK;
}

hf_status call_out(void *arg)
{
    long number = reinterpret_cast<long>(arg);
    try {
        throw std::runtime_error(text_of("elsewhere", number));
    } catch (const std::exception &e) {
        CHECK(text_of("elsewhere", number) == e.what());
    }
    return HF_OK;
}

// The handler forks, joins and has a pool thread do something.
hf_status work_in_catch(void *arg)
{
    long number = reinterpret_cast<long>(arg);
    std::string want = text_of("worked", number);
    try {
        throw std::runtime_error(want);
    } catch (const std::exception &e) {
        HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
        HF_TRY(hf_scope_open(&scope));
        for (long i = 0; i < 3; i++) { // jobs that one runner takes one after another, on its hot stack
            HF_TRY(hf_fork(scope, call_out, reinterpret_cast<void *>(i)));
        }
        HF_TRY(hf_fork(scope, wait_in_catch, reinterpret_cast<void *>(number)));
        HF_TRY(hf_block(call_out, arg));
        HF_TRY(hf_join(scope));
        CHECK(want == e.what());
    }
    return HF_OK;
}

const hf_body BODIES[] = {wait_in_catch, nest_catches,         rethrow_after_wait,
                          keep_current,  wait_while_unwinding, work_in_catch};

hf_status fork_all(void *)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
    HF_TRY(hf_scope_open(&scope));
    for (long i = 0; i < 60; i++) {
        HF_TRY(hf_fork(scope, BODIES[static_cast<unsigned long>(i) % 6], reinterpret_cast<void *>(i)));
    }
    return hf_join(scope);
}

// ---- Where they run ------------------------------------------------------------------------------------------------------

void on_threads()
{
    for (int threads = 1; threads <= 4; threads++) {
        hf_runtime_options options = hf_runtime_options();
        options.threads = threads;
        CHECK(hf_run(fork_all, nullptr, options) == HF_OK);
    }
}

void in_simulation()
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        hf_sim_options sim = hf_sim_options();
        sim.seed = seed;
        hf_env *env = nullptr;
        CHECK(hf_sim_new(&env, sim) == HF_OK);
        hf_runtime_options options = hf_runtime_options();
        options.threads = 1 + static_cast<int>(seed % 3);
        options.env = env;
        CHECK(hf_run(fork_all, nullptr, options) == HF_OK);
        hf_sim_free(env);
    }
}

// The host turns its runtime from inside a handler, and another time from outside.
void on_a_hosts_loop()
{
    hf_runtime_options options = hf_runtime_options();
    options.threads = HF_OFF;
    hf_runtime *rt = nullptr;
    CHECK(hf_runtime_new(&rt, options) == HF_OK);
    hf_scope_options scope_options = hf_scope_options();
    scope_options.runtime = rt;
    hf_scope *scope = nullptr;
    CHECK(hf_scope_open(&scope, scope_options) == HF_OK);
    for (long i = 0; i < 30; i++) {
        CHECK(hf_fork(scope, BODIES[static_cast<unsigned long>(i) % 6], reinterpret_cast<void *>(i)) == HF_OK);
    }
    std::string want = text_of("the host's", 1);
    while (!hf_scope_is_idle(scope)) {
        try {
            throw std::runtime_error(want);
        } catch (const std::exception &e) {
            HF_IGNORE(hf_runtime_turn(rt, hf_milliseconds(1)));
            CHECK(want == e.what());
        }
        CHECK(std::current_exception() == nullptr);
        HF_IGNORE(hf_runtime_turn(rt, hf_milliseconds(1)));
    }
    try {
        throw std::runtime_error(want);
    } catch (const std::exception &e) { // the thread turns it while it waits
        CHECK(hf_join(scope) == HF_OK);
        CHECK(want == e.what());
    }
    CHECK(hf_scope_close(scope) == HF_OK);
    CHECK(hf_runtime_free(rt) == HF_OK);
}

std::atomic<bool> is_replaced;

// Keeps its thread until another fiber of the same scheduler has run, which needs another thread: this one is lost, and the
// fiber is carried over when it waits next. Its exception goes along.
hf_status lose_thread_in_catch(void *arg)
{
    long number = reinterpret_cast<long>(arg);
    std::string want = text_of("carried", number);
    try {
        throw std::runtime_error(want);
    } catch (const std::exception &e) {
        while (!is_replaced) {
        }
        CHECK(want == e.what());
        HF_IGNORE(hf_yield()); // canceled by the watchdog, but on another thread
        CHECK(want == e.what());
        try {
            throw std::logic_error("on the new thread");
        } catch (const std::logic_error &) {
            HF_IGNORE(hf_yield());
        }
        CHECK(want == e.what());
        CHECK(std::current_exception() != nullptr);
    }
    CHECK(std::current_exception() == nullptr);
    return HF_OK;
}

hf_status notice(void *)
{
    try {
        throw std::runtime_error("meanwhile");
    } catch (const std::exception &) {
        HF_TRY(hf_yield());
        is_replaced = true;
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

hf_status lose_threads(void *)
{
    hf_scope_options options = hf_scope_options();
    options.join = HF_JOIN_COLLECT;
    HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
    HF_TRY(hf_scope_open(&scope, options));
    HF_TRY(hf_fork(scope, lose_thread_in_catch, nullptr));
    HF_TRY(hf_fork(scope, notice, nullptr));
    HF_IGNORE(hf_join(scope));
    return HF_OK;
}

void ignore_log(void *, hf_log_level, const char *, const char *)
{
}

void on_a_thread_that_is_replaced()
{
    for (int round = 0; round < 3; round++) {
        is_replaced = false;
        hf_runtime_options options = hf_runtime_options();
        options.threads = 1;
        options.log = ignore_log;
        options.watchdog.signal = SIGURG;
        options.watchdog.stuck_after = hf_milliseconds(20);
        CHECK(hf_run(lose_threads, nullptr, options) == HF_OK);
        CHECK(is_replaced);
    }
}

// ---- Workflows -------------------------------------------------------------------------------------------------------------

hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

// Every wait inside the handlers may be the end of its stack: it is evicted there, and played again from its history.
hf_status wait_in_workflow(hf_payload in, hf_payload *ret_out)
{
    std::string want(static_cast<const char *>(in.data), in.len);
    want += ", in words that are too long for a short string";
    hf_activity_options options = hf_activity_options();
    options.start_to_close = hf_seconds(30);
    try {
        throw std::runtime_error(want);
    } catch (const std::exception &e) {
        HF_TRY(hf_sleep(hf_milliseconds(1)));
        CHECK(want == e.what());
        hf_payload echoed = hf_payload();
        HF_TRY(hf_activity_run("echo", in, &echoed, options));
        CHECK(want == e.what());
        try {
            throw std::logic_error("inside");
        } catch (const std::logic_error &) {
            HF_TRY(hf_sleep(hf_milliseconds(1)));
        }
        CHECK(want == e.what());
    }
    return hf_payload_copy(in, ret_out);
}

struct shop {
    hf_service *service;
    hf_worker *worker;
};

hf_status run_worker(void *arg)
{
    return hf_worker_run(static_cast<shop *>(arg)->worker);
}

hf_status use_workflows(void *arg)
{
    enum { RUNS = 12 };
    shop *sh = static_cast<shop *>(arg);
    hf_execution *runs[RUNS] = {nullptr};
    HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, run_worker, sh));
    for (int i = 0; i < RUNS; i++) {
        hf_start_options options = hf_start_options();
        options.task_queue = "shop";
        CHECK(hf_start(sh->service, "wait", hf_payload_of_json(i % 2 == 0 ? "\"even\"" : "\"odd\""), &runs[i],
                       options) == HF_OK);
    }
    for (int i = 0; i < RUNS; i++) {
        CHECK(hf_result(runs[i], nullptr) == HF_OK);
        hf_execution_free(runs[i]);
    }
    HF_TRY(hf_worker_stop(sh->worker));
    return hf_join(scope);
}

hf_status in_a_shop(void *arg)
{
    hf_worker_options options = hf_worker_options();
    options.cached_max = *static_cast<int *>(arg);
    shop sh = shop();
    HF_TRY(hf_open("memory:", &sh.service));
    CHECK(hf_worker_new(sh.service, "shop", &sh.worker, options) == HF_OK);
    CHECK(hf_worker_add_workflow(sh.worker, "wait", wait_in_workflow) == HF_OK);
    CHECK(hf_worker_add_activity(sh.worker, "echo", echo) == HF_OK);
    CHECK(use_workflows(&sh) == HF_OK);
    CHECK(hf_worker_free(sh.worker) == HF_OK);
    return hf_close(sh.service);
}

void in_workflows()
{
    int cached[] = {0, 2, HF_OFF}; // all in memory, most evicted between two steps, every one after every step
    for (int i = 0; i < 3; i++) {
        hf_runtime_options options = hf_runtime_options();
        options.threads = 1 + i % 2;
        CHECK(hf_run(in_a_shop, &cached[i], options) == HF_OK);
    }
}

const struct {
    const char *name;
    void (*run)();
} CASES[] = {{"on_threads", on_threads},
             {"in_simulation", in_simulation},
             {"on_a_hosts_loop", on_a_hosts_loop},
             {"on_a_thread_that_is_replaced", on_a_thread_that_is_replaced},
             {"in_workflows", in_workflows}};

} // namespace

// The names of cases, or all of them.
int main(int argc, char **argv)
{
    for (const auto &each : CASES) {
        bool is_wanted = argc == 1;
        for (int i = 1; i < argc; i++) {
            is_wanted = is_wanted || std::strcmp(argv[i], each.name) == 0;
        }
        if (is_wanted) {
            int before = passed;
            each.run();
            std::printf("%s: %d checks\n", each.name, passed - before);
            (void)std::fflush(stdout);
        }
    }
    return failures == 0 ? 0 : 1;
}
