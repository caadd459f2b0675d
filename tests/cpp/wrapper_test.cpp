/* labels: threads */
// <holdfast/holdfast.hpp>: values, exceptions, scopes, lambdas; on an engine whose time is skipped. Compiled as C++17 and as C++20.
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

using namespace std::chrono_literals;

static int failures;

#define CHECK(fact)                                                                 \
    do {                                                                            \
        if (!(fact)) {                                                              \
            failures++;                                                             \
            std::fprintf(stderr, "FAILED: %s:%d: %s\n", __FILE__, __LINE__, #fact); \
        }                                                                           \
    } while (0)

struct basket {
    std::string customer;
    std::vector<int> items;
};

template <> struct holdfast::codec<basket> {
    static std::string encode(const basket &b)
    {
        return "{\"customer\":" + holdfast::encode(b.customer) + ",\"items\":" + holdfast::encode(b.items) + "}";
    }
    static basket decode(hf_payload in)
    {
        return basket{holdfast::get<std::string>(in, "customer"), holdfast::get<std::vector<int>>(in, "items")};
    }
};

// A destructor that must run, whatever ends the workflow.
struct counted {
    explicit counted(std::atomic<int> &count) : count_(count)
    {
        count_++;
    }
    ~counted()
    {
        count_--;
    }
    std::atomic<int> &count_;
};

static std::atomic<int> alive;

static std::string order(const basket &in)
{
    counted here(alive);
    std::vector<std::string> receipts(in.items.size());
    {
        holdfast::scope all;
        for (size_t i = 0; i < in.items.size(); i++) {
            all.fork([&receipts, &in, i] {
                receipts[i] = holdfast::activity<std::string>("charge", in.items[i], holdfast::within(30s, 3));
            });
        }
        all.join();
    }
    holdfast::sleep(24h * 30);
    auto note = holdfast::signal_within<std::string>("note", 24h);
    std::string text = in.customer + ":";
    for (const auto &receipt : receipts) {
        text += " " + receipt;
    }
    return text + " " + note.value_or("no note");
}

static int refused(int item)
{
    counted here(alive);
    try {
        holdfast::activity<void>("refuse", item, holdfast::within(1s, 1));
    } catch (const holdfast::error &e) {
        CHECK(e.type() == "ActivityFailed" && e.cause_type() == "std::invalid_argument");
        throw;
    }
    return 0;
}

static void waits()
{
    counted here(alive);
    holdfast::signal<void>("never");
}

static std::atomic<int> attempts; // of the workflow that fails for good

static void fails_for_good(int)
{
    attempts = hf_workflow_info()->attempt;
    throw holdfast::final_error("NoMore", "it is not tried again");
}

static void starts_that(int number)
{
    hf_child_options options = hf_child_options();
    options.attempts_max = 5;
    std::string in = holdfast::encode(number);
    holdfast::check(hf_child_run("fails_for_good", hf_payload_of_json(in.c_str()), nullptr, options));
}

static hf_testenv *make_env(bool evicts)
{
    hf_testenv *env = nullptr;
    hf_testenv_options options = hf_testenv_options();
    options.evict_always = evicts;
    holdfast::check(hf_testenv_new(&env, options));
    hf_worker *worker = hf_testenv_worker(env);
    holdfast::add_workflow(worker, "order", order);
    holdfast::add_workflow(worker, "refused", refused);
    holdfast::add_workflow(worker, "waits", waits);
    holdfast::add_workflow(worker, "fails_for_good", fails_for_good);
    holdfast::add_workflow(worker, "starts_that", starts_that);
    holdfast::add_workflow(worker, "lambda", [factor = 3](int number) { return number * factor; });
    holdfast::add_workflow(worker, "throws", [](int) -> int { throw std::out_of_range("too far"); });
    holdfast::add_activity(worker, "charge", [](int item) { return "receipt-" + std::to_string(item); });
    holdfast::add_activity(worker, "refuse", [](int) { throw std::invalid_argument("the card is \"blocked\""); });
    return env;
}

static void workflows_in_cpp(bool evicts)
{
    hf_testenv *env = make_env(evicts);
    holdfast::payload out;
    std::string in = holdfast::encode(basket{"ada \"the first\"\n", {1, 2, 3}});
    CHECK(hf_testenv_run(env, "order", hf_payload_of_json(in.c_str()), out.out()) == HF_OK);
    CHECK(holdfast::decode<std::string>(out.view()) == "ada \"the first\"\n: receipt-1 receipt-2 receipt-3 no note");
    CHECK(hf_testenv_run(env, "lambda", hf_payload_of_json("7"), out.out()) == HF_OK);
    CHECK(holdfast::decode<int>(out.view()) == 21);
    CHECK(hf_testenv_run(env, "throws", hf_payload_of_json("7"), nullptr) == HF_ERR_FAILED);
    CHECK(std::string(hf_error()->type) == "std::out_of_range");
    CHECK(hf_testenv_run(env, "refused", hf_payload_of_json("7"), nullptr) == HF_ERR_FAILED);
    CHECK(hf_error_find("std::invalid_argument") != nullptr);
    CHECK(hf_testenv_run(env, "starts_that", hf_payload_of_json("7"), nullptr) == HF_ERR_FAILED);
    CHECK(hf_error_find("NoMore") != nullptr && attempts == 1);
    CHECK(hf_testenv_run(env, "waits", hf_payload_none(), nullptr) == HF_ERR_AGAIN);
    CHECK(hf_testenv_free(env) == HF_OK);
    CHECK(alive == 0); // evictions and ends have run all destructors
}

static void values()
{
    CHECK(holdfast::decode<std::string>(hf_payload_of_json("\"a\\u00e9\\\"\"")) == "a\xc3\xa9\"");
    CHECK(holdfast::encode(true) == "true" && holdfast::encode(-7) == "-7" && holdfast::encode("x\\") == "\"x\\\\\"");
    CHECK(holdfast::decode<double>(hf_payload_of_json("0.5")) == 0.5);
    CHECK(!holdfast::decode<std::optional<int>>(hf_payload_of_json("null")));
    try {
        holdfast::decode<signed char>(hf_payload_of_json("1000"));
        CHECK(false);
    } catch (const holdfast::error &e) {
        CHECK(e.status() == HF_ERR_TOO_BIG);
    }
    try {
        holdfast::decode<int>(hf_payload_of_json("\"text\""));
        CHECK(false);
    } catch (const holdfast::error &e) {
        CHECK(e.status() == HF_ERR_INVALID);
    }
}

// Queries and updates while it waits, and queries after its end; cleanup when it was canceled.
static int visited_desk()
{
    auto &stage = holdfast::keep<const char *>("open");
    auto &total = holdfast::keep(0);
    holdfast::on_query("stage", [&stage] { return std::string(stage); });
    holdfast::on_query("sum", [&total](int more) { return total + more; });
    holdfast::on_query("bad", []() -> int { throw std::out_of_range("no such question"); });
    holdfast::on_update("add", [&total](int more) {
        holdfast::sleep(1ms);
        return total += more;
    });
    try {
        holdfast::signal<void>("close");
        stage = "closed";
    } catch (const holdfast::canceled &) {
        holdfast::shield shield(10s);
        holdfast::activity<int>("double", total, holdfast::within(10s));
        stage = "cleaned up";
        throw;
    }
    return total;
}

static void handlers(holdfast::service &service)
{
    auto desk = service.start("desk", 0, "orders");
    CHECK(desk.query<std::string>("stage") == "open");
    CHECK(desk.update<int>("add", 5) == 5);
    CHECK(desk.query<int>("sum", 2) == 7);
    std::string type;
    try {
        (void)desk.query<int>("bad");
    } catch (const holdfast::error &e) {
        type = e.what();
    }
    CHECK(type.find("no such question") != std::string::npos);
    desk.signal("close");
    CHECK(desk.result<int>() == 5);
    CHECK(desk.query<std::string>("stage") == "closed"); // its function has returned
    auto left = service.start("desk", 0, "orders");
    CHECK(left.query<std::string>("stage") == "open");
    left.cancel();
    try {
        left.result<int>();
    } catch (const holdfast::error &e) {
        type = e.what();
    }
    CHECK(type == "the workflow was canceled");
    CHECK(left.query<std::string>("stage") == "cleaned up");
}

static int whole_program()
{
    return holdfast::run([] {
        holdfast::service service("memory:");
        holdfast::worker worker(service, "orders");
        worker.workflow("double",
                        [](int number) { return holdfast::activity<int>("double", number, holdfast::within(10s)); });
        worker.activity("double", [](int number) { return 2 * number; });
        worker.workflow("desk", visited_desk);
        worker.start();
        handlers(service);
        CHECK(service.start("double", 21, "orders").result<int>() == 42);
        bool is_canceled = false;
        holdfast::scope scope;
        scope.fork([&] {
            try {
                holdfast::sleep(1h);
            } catch (const holdfast::canceled &) {
                is_canceled = true;
                throw;
            }
        });
        holdfast::sleep(1ms);
        scope.cancel();
        try {
            scope.join();
        } catch (const holdfast::canceled &) {
        }
        CHECK(is_canceled);
    });
}

int main()
{
    values();
    workflows_in_cpp(false);
    workflows_in_cpp(true);
    CHECK(whole_program() == 0);
    std::printf(failures == 0 ? "all is well (C++ %ld)\n" : "FAILED (C++ %ld)\n", static_cast<long>(__cplusplus));
    return failures == 0 ? 0 : 1;
}
