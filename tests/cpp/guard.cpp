// The determinism guard and the standard library of C++: what asks the operating system there is refused in code of a workflow, and the sentence
// names the line of the workflow. To be run with the guard preloaded (cpp.cmake).
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

using namespace std::chrono_literals;

static int line; // of the call at hand

struct deed {
    const char *name;
    const char *refused; // the function of libc
    void (*call)();
};

/* clang-format off */
static const deed DEEDS[] = {
    {"system_clock", "clock_gettime", [] { line = __LINE__; (void)std::chrono::system_clock::now(); }},
    {"steady_clock", "clock_gettime", [] { line = __LINE__; (void)std::chrono::steady_clock::now(); }},
    {"rand", "rand", [] { line = __LINE__; (void)std::rand(); }},
    {"getenv", "getenv", [] { line = __LINE__; (void)std::getenv("HOME"); }},
    {"sleep_for", "nanosleep", [] { line = __LINE__; std::this_thread::sleep_for(1ms); }},
    {"ofstream", "fopen", [] { line = __LINE__; std::ofstream("/dev/null") << "x"; }},
    {"thread", "pthread_create", [] { line = __LINE__; try { std::thread([] {}).join(); } catch (const std::exception &) { } }},
};
/* clang-format on */

static void asks(int number)
{
    DEEDS[number].call();
    holdfast::sleep(1ms);
}

static void quiet(void *, hf_log_level, const char *, const char *)
{
}

int main()
{
    int failures = 0;
    for (size_t i = 0; i < sizeof DEEDS / sizeof *DEEDS; i++) {
        hf_testenv *env = nullptr;
        hf_testenv_options options = hf_testenv_options();
        options.log = quiet;
        holdfast::check(hf_testenv_new(&env, options));
        holdfast::add_workflow(hf_testenv_worker(env), "asks", asks);
        holdfast::add_workflow(hf_testenv_worker(env), "acts",
                               [](int number) { holdfast::activity<void>("act", number, holdfast::within(1s)); });
        holdfast::add_activity(hf_testenv_worker(env), "act", [](int number) { DEEDS[number].call(); });
        std::string in = std::to_string(i);
        hf_status status = hf_testenv_run(env, "asks", hf_payload_of_json(in.c_str()), nullptr);
        std::string text = status != HF_OK ? hf_error_text() : "it passes";
        std::string place = "guard.cpp:" + std::to_string(line);
        std::printf("%s: %s\n", DEEDS[i].name, text.c_str());
        if (text.find(DEEDS[i].refused) == std::string::npos ||
            text.find("() in code of a workflow, at " + place + ": ") == std::string::npos) {
            std::printf("FAILED: %s: no '%s() ... at %s'\n", DEEDS[i].name, DEEDS[i].refused, place.c_str());
            failures++;
        }
        if (hf_testenv_run(env, "acts", hf_payload_of_json(in.c_str()), nullptr) != HF_OK) {
            std::printf("FAILED: %s in an activity: %s\n", DEEDS[i].name, hf_error_text());
            failures++;
        }
        holdfast::check(hf_testenv_free(env));
    }
    return failures == 0 ? 0 : 1;
}
