/* labels: threads */
// <holdfast/holdfast.hpp>: what a failure is caused by. Compiled as C++17 and as C++20.
#include <holdfast/holdfast.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

static int failures;

#define CHECK(fact)                                                                 \
    do {                                                                            \
        if (!(fact)) {                                                              \
            failures++;                                                             \
            std::fprintf(stderr, "FAILED: %s:%d: %s\n", __FILE__, __LINE__, #fact); \
        }                                                                           \
    } while (0)

// An activity that fails, and whose failure is handled.
static void fail_and_go_on()
{
    try {
        holdfast::activity<void>("break", holdfast::within(1s, 1));
    } catch (const holdfast::error &) {
    }
}

// ---- Failures that were handled are the cause of nothing ----

static void after_a_signal_that_did_not_come()
{
    CHECK(!holdfast::signal_within<std::string>("nickname", 10ms) && hf_error() == nullptr);
    throw std::invalid_argument("n is above 5");
}

static void after_a_condition_that_did_not_come()
{
    CHECK(!holdfast::wait_until_within([] { return false; }, 10ms) && hf_error() == nullptr);
    throw std::invalid_argument("n is above 5");
}

static void after_an_activity()
{
    fail_and_go_on();
    throw std::invalid_argument("n is above 5");
}

static void with_an_error_of_its_own()
{
    fail_and_go_on();
    throw holdfast::error("TooMuch", "n is above 5");
}

static void for_good()
{
    fail_and_go_on();
    throw holdfast::final_error("TooMuch", "n is above 5");
}

static void with_anything()
{
    fail_and_go_on();
    throw 7;
}

// ---- A chain is told once ----

static void again()
{
    try {
        holdfast::activity<void>("break", holdfast::within(1s, 1));
    } catch (const holdfast::error &) {
        throw;
    }
}

static void wrapped()
{
    try {
        holdfast::activity<void>("break", holdfast::within(1s, 1));
    } catch (const holdfast::error &e) {
        throw std::runtime_error(std::string("the order failed: ") + e.what());
    }
}

static void nested()
{
    try {
        holdfast::activity<void>("break", holdfast::within(1s, 1));
    } catch (const holdfast::error &) {
        std::throw_with_nested(std::invalid_argument("the order failed"));
    }
}

static void nested_and_wrapped()
{
    try {
        holdfast::activity<void>("break", holdfast::within(1s, 1));
    } catch (const holdfast::error &e) {
        std::throw_with_nested(holdfast::error("OrderFailed", std::string("the order failed: ") + e.what()));
    }
}

static void nested_twice()
{
    fail_and_go_on();
    try {
        try {
            throw std::out_of_range("far");
        } catch (const std::exception &) {
            std::throw_with_nested(std::logic_error("wrong"));
        }
    } catch (const std::exception &) {
        std::throw_with_nested(std::runtime_error("over"));
    }
}

// ---- A fork that fails while its owner waits elsewhere ----

static void walk()
{
    holdfast::scope legs;
    legs.fork([] {
        holdfast::sleep(10ms);
        throw std::runtime_error("left leg broke");
    });
    holdfast::sleep(1h);
    legs.join();
}

static const char BROKEN[] = "activity 'break' failed; because it is broken";

static const struct {
    const char *name;
    void (*run)();
    const char *type;
    const char *text;
    const char *found; // a type in the chain; nullptr = none is looked for
} CASES[] = {
    {"signal", after_a_signal_that_did_not_come, "std::invalid_argument", "n is above 5", nullptr},
    {"condition", after_a_condition_that_did_not_come, "std::invalid_argument", "n is above 5", nullptr},
    {"activity", after_an_activity, "std::invalid_argument", "n is above 5", nullptr},
    {"error", with_an_error_of_its_own, "TooMuch", "n is above 5", nullptr},
    {"final", for_good, "TooMuch", "n is above 5", nullptr},
    {"anything", with_anything, "int", "an exception of the type int, which is not a std::exception", nullptr},
    {"again", again, "ActivityFailed", BROKEN, "std::domain_error"},
    {"wrapped", wrapped, "std::runtime_error", "the order failed: activity 'break' failed; because it is broken",
     nullptr},
    {"nested", nested, "std::invalid_argument",
     "the order failed; because activity 'break' failed; because it is broken", "std::domain_error"},
    {"nested and wrapped", nested_and_wrapped, "OrderFailed",
     "the order failed; because activity 'break' failed; because it is broken", "std::domain_error"},
    {"nested twice", nested_twice, "std::runtime_error", "over; because wrong; because far", "std::out_of_range"},
    {"walk", walk, "HF_ERR_CANCELED", "hf_sleep: canceled (sibling: scope); because left leg broke",
     "std::runtime_error"},
};

static void workflows(bool evicts)
{
    hf_testenv *env = nullptr;
    hf_testenv_options options = hf_testenv_options();
    options.evict_always = evicts;
    holdfast::check(hf_testenv_new(&env, options));
    hf_worker *worker = hf_testenv_worker(env);
    holdfast::add_activity(worker, "break", [] { throw std::domain_error("it is broken"); });
    for (const auto &each : CASES) {
        holdfast::add_workflow(worker, each.name, [run = each.run] { run(); });
    }
    for (const auto &each : CASES) {
        CHECK(hf_testenv_run(env, each.name, hf_payload_none(), nullptr) == HF_ERR_FAILED);
        bool is_so = std::string(hf_error()->type) == each.type && std::string(hf_error_text()) == each.text;
        CHECK(is_so && (each.found == nullptr || hf_error_find(each.found) != nullptr));
        if (!is_so) {
            std::fprintf(stderr, "%s: %s: %s\n", each.name, hf_error()->type, hf_error_text());
        }
    }
    CHECK(hf_testenv_free(env) == HF_OK);
}

int main()
{
    workflows(false);
    workflows(true);
    std::printf(failures == 0 ? "all is well (C++ %ld)\n" : "FAILED (C++ %ld)\n", static_cast<long>(__cplusplus));
    return failures == 0 ? 0 : 1;
}
