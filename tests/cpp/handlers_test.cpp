/* labels: threads */
// <holdfast/holdfast.hpp>: handlers of queries, signals and updates, conditions, and functions without input or result. Compiled as C++17 and as C++20.
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

using namespace std::chrono_literals;

static int failures;

#define CHECK(fact)                                                                 \
    do {                                                                            \
        if (!(fact)) {                                                              \
            failures++;                                                             \
            std::fprintf(stderr, "FAILED: %s:%d: %s\n", __FILE__, __LINE__, #fact); \
        }                                                                           \
    } while (0)

// The type of the failure that a function throws; "" = it throws none. That of a workflow or update is the cause.
template <class F> static std::string failure_of(F function)
{
    try {
        function();
    } catch (const holdfast::error &e) {
        return e.cause_type() != "" ? e.cause_type() : e.type();
    }
    return "";
}

struct tally {
    int total;
    int pings;
    bool is_closed;
};

// A desk with handlers of all kinds, with and without input, with and without result.
static int desk()
{
    auto &all = holdfast::keep(tally());
    holdfast::on_query("total", [&all] { return all.total; });
    holdfast::on_query("plus", [&all](int more) noexcept { return all.total + more; });
    holdfast::on_signal("ping", [&all] { all.pings++; });
    holdfast::on_signal("add", [&all](int more) {
        holdfast::sleep(1ms);
        all.total += more;
    });
    holdfast::on_signal("bad", [](int) { throw std::out_of_range("a signal handler fails for itself"); });
    holdfast::on_update("set", [&all](int to) { all.total = to; });
    holdfast::on_update("reset", [&all] { all.total = 0; });
    holdfast::on_update("next", [&all] { return ++all.total; });
    holdfast::on_update(
        "deposit", [&all](int more) { return all.total += more; },
        [&all](int more) {
            if (more <= 0) {
                throw holdfast::error("NotPositive", "a deposit is positive");
            }
            if (all.is_closed) {
                throw holdfast::final_error("Closed", "the desk is closed");
            }
        });
    holdfast::on_update(
        "close", [&all] { all.is_closed = true; }, [] {});
    holdfast::on_update("fail", [](int) { throw std::out_of_range("an update handler fails its update"); });
    holdfast::wait_until([&all] { return all.is_closed; });
    holdfast::handlers_wait();
    return all.total + 1000 * all.pings;
}

static void updates_and_signals(holdfast::service &service)
{
    auto run = service.start("desk", "desks"); // without input
    run.update<void>("set", 40);
    CHECK(run.query<int>("total") == 40 && run.query<int>("plus", 2) == 42);
    CHECK(run.update<int>("next") == 41);
    CHECK(run.update<int>("deposit", 4) == 45);
    CHECK(failure_of([&] { run.update<int>("deposit", -4); }) == "NotPositive");
    CHECK(failure_of([&] { run.update<void>("fail", 1); }) == "std::out_of_range");
    CHECK(run.query<int>("total") == 45); // the update that was rejected did nothing
    run.update<void>("reset");
    CHECK(run.query<int>("total") == 0);
    run.signal("ping");
    run.signal("bad", 1);
    run.signal("ping");
    run.signal("add", 7);
    run.update<void>("close");
    CHECK(run.result<int>() == 2007);
    CHECK(run.query<int>("total") == 7); // handlers outlive the function
}

// A signal that came before its handler, and one that never comes.
static std::string early()
{
    auto &greeted = holdfast::keep(0);
    holdfast::sleep(1ms);
    holdfast::on_signal("greet", [&greeted] { greeted++; });
    holdfast::wait_until([&greeted] { return greeted == 2; });
    bool has_third = holdfast::wait_until_within([&greeted] { return greeted == 3; }, 10ms);
    bool has_come = holdfast::signal_within<void>("never", 10ms);
    return std::string(has_third ? "third" : "two") + (has_come ? " came" : " never");
}

// What a condition throws leaves the wait, and the workflow may wait again.
static int condition_that_throws()
{
    auto &looks = holdfast::keep(0);
    std::string type;
    try {
        holdfast::wait_until_within(
            [&looks]() -> bool { throw holdfast::error("Look", "no " + std::to_string(++looks)); }, 1h);
    } catch (const holdfast::error &e) {
        type = e.type();
    }
    holdfast::sleep(1ms); // is not refused: the condition is over
    return type == "Look" ? holdfast::activity<int>("seven", holdfast::within(10s)) : 0;
}

// A text that stays, and grows.
static std::string writer(const std::string &name)
{
    auto &stage = holdfast::keep<holdfast::text>("begins");
    holdfast::on_query("stage", [&stage] { return stage; });
    holdfast::on_update("say", [&stage](const std::string &more) {
        stage = stage.str() + " " + more;
        return stage.str();
    });
    stage = "waits for " + name;
    holdfast::signal<void>("go");
    holdfast::text copy = stage;
    stage = "";
    return copy;
}

// A text that is assigned again and again takes no more of the run's memory than its longest content.
static long frugal()
{
    auto &stage = holdfast::keep<holdfast::text>();
    std::string longer(3000, 'x');
    auto begin = reinterpret_cast<std::uintptr_t>(hf_workflow_alloc(16));
    for (int i = 0; i < 1000; i++) {
        stage = longer;
        stage = "short";
        stage = std::string_view(longer).substr(1);
    }
    auto end = reinterpret_cast<std::uintptr_t>(hf_workflow_alloc(16));
    return end > begin ? static_cast<long>(end - begin) : static_cast<long>(begin - end);
}

// Goes on as a new run, and no handler of failures compensates.
static int countdown(int left)
{
    try {
        if (left > 0) {
            holdfast::continue_as_new(left - 1);
        }
    } catch (const std::exception &) {
        return -1;
    }
    return 7;
}

static std::atomic<int> swept;

int main()
{
    int code = holdfast::run([] {
        holdfast::service service("memory:");
        hf_worker_options options = hf_worker_options();
        for (int cached_max : {0, HF_OFF}) { // in memory, and replayed at every step
            options.cached_max = cached_max;
            holdfast::worker worker(service, "desks", options);
            worker.workflow("desk", desk);
            worker.workflow("early", early);
            worker.workflow("throwing", condition_that_throws);
            worker.workflow("writer", writer);
            worker.workflow("countdown", countdown);
            worker.workflow("frugal", frugal);
            worker.workflow("sweep", [] { holdfast::activity<void>("sweep", holdfast::within(10s)); });
            worker.activity("sweep", [] { swept++; });
            worker.activity("seven", []() noexcept { return 7; });
            worker.start();
            updates_and_signals(service);
            auto run = service.start("early", "desks");
            run.signal("greet");
            run.signal("greet");
            CHECK(run.result<std::string>() == "two never");
            CHECK(service.start("throwing", "desks").result<int>() == 7);
            service.start("sweep", "desks").result<void>();
            auto written = service.start("writer", std::string("ada"), "desks");
            CHECK(written.update<std::string>("say", std::string(200, 'x')) ==
                  "waits for ada " + std::string(200, 'x'));
            CHECK(written.query<std::string>("stage").size() == 214);
            written.signal("go");
            CHECK(written.result<std::string>().size() == 214 && written.query<std::string>("stage") == "");
            CHECK(service.start("countdown", 2, "desks").result<int>() == 7);
            CHECK(service.start("frugal", "desks").result<long>() < 100000);
        }
    });
    CHECK(code == 0 && swept == 2);
    std::printf(failures == 0 ? "all is well (C++ %ld)\n" : "FAILED (C++ %ld)\n", static_cast<long>(__cplusplus));
    return failures == 0 ? 0 : 1;
}
