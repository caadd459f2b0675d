/* labels: threads */
// <holdfast/holdfast.hpp>: values at their bounds, what JSON cannot hold, what is wrong and says where, and handlers that would outlive what they
// refer to. Compiled as C++17 and as C++20.
#include <holdfast/holdfast.hpp>

#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
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

template <class T> static T there_and_back(const T &value)
{
    std::string text = holdfast::encode(value);
    return holdfast::decode<T>(hf_payload_of_json(text.c_str()));
}

// The sentence of the failure that a function throws; "" = it throws none.
template <class F> static std::string sentence_of(F function)
{
    try {
        function();
    } catch (const holdfast::error &e) {
        return e.what();
    }
    return "";
}
template <class T> static std::string refused(const char *text)
{
    return sentence_of([text] { (void)holdfast::decode<T>(hf_payload_of_json(text)); });
}
static bool has(const std::string &text, const char *part)
{
    bool is_there = text.find(part) != std::string::npos;
    if (!is_there) {
        std::fprintf(stderr, "'%s' is not in: %s\n", part, text.c_str());
    }
    return is_there;
}

static void reals()
{
    const double VALUES[] = {0, -0.5, 0.1, 1e300, -1e-300, 1.0 / 3, 123456789.25, 5e-324, 1.7976931348623157e308};
    for (double value : VALUES) {
        CHECK(there_and_back(value) == value);
    }
    CHECK(holdfast::encode(0.1) == "0.1");
    CHECK(holdfast::encode(1.0 / 3) == "0.33333333333333331" || holdfast::encode(1.0 / 3) == "0.3333333333333333");
    CHECK(there_and_back(1.5F) == 1.5F);
    const double infinity = std::numeric_limits<double>::infinity();
    for (double value : {infinity, -infinity, std::nan("")}) {
        CHECK(has(sentence_of([value] { (void)holdfast::encode(value); }), "cannot be written as JSON"));
        CHECK(has(sentence_of([value] { (void)holdfast::encode(std::vector<double>{value}); }), "cannot be written"));
    }
    CHECK(has(refused<double>("1e999"), "does not fit a double"));
    CHECK(has(refused<float>("1e300"), "does not fit its type"));
    CHECK(has(refused<float>("-1e300"), "does not fit its type"));
}

static void whole_numbers()
{
    CHECK(there_and_back(std::numeric_limits<uint64_t>::max()) == std::numeric_limits<uint64_t>::max());
    CHECK(there_and_back(uint64_t{1} << 63) == uint64_t{1} << 63);
    CHECK(there_and_back(static_cast<uint64_t>(INT64_MAX)) == static_cast<uint64_t>(INT64_MAX));
    CHECK(there_and_back(uint64_t{0}) == 0);
    CHECK(there_and_back(std::numeric_limits<int64_t>::min()) == std::numeric_limits<int64_t>::min());
    CHECK(there_and_back(std::numeric_limits<int64_t>::max()) == std::numeric_limits<int64_t>::max());
    CHECK((there_and_back(std::vector<uint64_t>{7, UINT64_MAX}) == std::vector<uint64_t>{7, UINT64_MAX}));
    CHECK(has(refused<uint64_t>("18446744073709551616"), "does not fit 64 bits"));
    CHECK(has(refused<uint64_t>("-1"), "does not fit its type"));
    CHECK(has(refused<int64_t>("9223372036854775808"), "does not fit 64 bits"));
    CHECK(has(refused<uint32_t>("4294967296"), "the number 4294967296 does not fit its type"));
    CHECK(has(refused<int8_t>("-129"), "does not fit its type"));
    CHECK(has(refused<uint64_t>("1.5"), "a fraction"));
    CHECK(has(refused<uint64_t>("\"1\""), "is a text, not a number"));
}

static void texts()
{
    using namespace std::string_literals;
    const std::string VALUES[] = {""s, "\0"s, "a\0b\0"s, "\"\\/\b\f\n\r\t\x01\x1f"s,
                                  "k\xc3\xa4se \xe2\x82\xac \xf0\x9f\x98\x80"s};
    for (const std::string &value : VALUES) {
        CHECK(there_and_back(value) == value);
        CHECK(there_and_back(std::vector<std::string>{value, "x"})[0] == value);
    }
    CHECK(holdfast::decode<std::string>(hf_payload_of_json("\"\\u0000\\u00e4\\u20ac\\ud83d\\ude00\\/\"")) ==
          "\0\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80/"s);
    CHECK(holdfast::decode<std::string>(hf_payload_of_json(" \n\"a\\u0062\"\t ")) == "ab");
    CHECK(holdfast::decode<uint64_t>(hf_payload_of_json(" 18446744073709551615 ")) == UINT64_MAX);
    CHECK(has(sentence_of([] { (void)holdfast::encode(std::string("\xff")); }), "UTF-8"));
    CHECK(has(refused<std::string>("7"), "is a number, not a text"));
    CHECK(has(refused<std::string>("\"\\ud83d\""), "surrogate"));
    CHECK(has(sentence_of([] { (void)holdfast::encode(holdfast::json{"oops"}); }), "no JSON"));
    CHECK(has(sentence_of([] { (void)holdfast::encode(holdfast::json{"1\0 2"s}); }), "no JSON"));
    CHECK(holdfast::encode(holdfast::json{"{\"a\": [1]}"}) == "{\"a\": [1]}");
}

// The digits around the point are those of C, whatever the locale says. The test makes the locale, where that is possible.
static void in_locale(const std::string &name, const char *half)
{
    char folder[] = "/tmp/holdfast-locale-XXXXXX";
    if (mkdtemp(folder) == nullptr) {
        std::printf("skipped: no folder for a locale\n");
        return;
    }
    std::string path = folder;
    std::string command = "localedef -i " + name + " -f UTF-8 " + path + "/" + name + ".UTF-8 >/dev/null 2>&1";
    (void)!std::system(command.c_str()); // it warns of this and that
    (void)setenv("LOCPATH", folder, 1);
    if (std::setlocale(LC_NUMERIC, (name + ".UTF-8").c_str()) == nullptr) {
        std::printf("skipped: the locale %s cannot be made\n", name.c_str());
    } else {
        char text[16];
        double number = 0;
        std::snprintf(text, sizeof text, "%.1f", 0.5);
        CHECK(std::string(text) == half);
        CHECK(holdfast::encode(0.5) == "0.5");
        CHECK(there_and_back(-12.25) == -12.25);
        reals();
        whole_numbers();
        holdfast::payload object; // and in C
        const hf_field fields[] = {hf_field_real("n", 0.25), hf_field_end()};
        CHECK(hf_payload_object_of(fields, object.out()) == HF_OK);
        CHECK(std::string(static_cast<const char *>(object.view().data)) == "{\"n\":0.25}");
        CHECK(hf_json_get_real(object.view(), "n", &number) == HF_OK && number == 0.25);
    }
    (void)std::setlocale(LC_NUMERIC, "C");
    (void)unsetenv("LOCPATH");
    CHECK(std::system(("rm -r " + path).c_str()) == 0);
}

static void locales()
{
    in_locale("de_DE", "0,5");
    in_locale("ps_AF", "0\xd9\xab"
                       "5");
}

// ---- Functions --------------------------------------------------------------------------------------------------------------------

static void first_functions()
{
    auto held = std::make_shared<int>(7);
    hf_runtime_options wrong = hf_runtime_options();
    wrong.threads = -7;
    CHECK(holdfast::run([held] {}, wrong) == 1); // it does not begin
    CHECK(held.use_count() == 1);
    long in_function = 0;
    CHECK(holdfast::run([held, &in_function] { in_function = held.use_count(); }) == 0);
    CHECK(in_function >= 2 && held.use_count() == 1);
    CHECK(holdfast::run([held] { throw std::runtime_error("no"); }) == 1);
    CHECK(held.use_count() == 1);
    (void)holdfast::run([held] {
        holdfast::scope scope;
        hf_fork_options too_large = hf_fork_options();
        too_large.stack_size = SIZE_MAX;
        CHECK(sentence_of([&] { scope.fork([held] {}, too_large); }) != "");
        CHECK(held.use_count() == 2); // the closure of the fork that has failed is gone
    });
    CHECK(held.use_count() == 1);
}

// A failure of a value says which value it is.
static std::string tells(int number)
{
    switch (number) {
    case 0:
        return sentence_of([] { (void)holdfast::activity<int>("word", holdfast::within(1s)); });
    case 1:
        return sentence_of([] { (void)holdfast::signal<int>("go"); });
    case 2:
        return sentence_of([] { (void)holdfast::signal_within<int>("go", 1s); });
    case 3:
        return sentence_of([] { holdfast::activity<void>("takes", std::string("x"), holdfast::within(1s, 1)); });
    case 4:
        return sentence_of([] { holdfast::activity<void>("takes", std::nan(""), holdfast::within(1s, 1)); });
    default:
        return sentence_of([] { (void)holdfast::signal<void>("approve"); });
    }
}

struct kept {
    int votes;
};

// A value whose codec refuses some numbers for ever.
static int picky_calls;
struct picky {
    int number;
};
template <> struct holdfast::codec<picky> {
    static std::string encode(const picky &value)
    {
        return std::to_string(value.number);
    }
    static picky decode(hf_payload in)
    {
        int number = holdfast::decode<int>(in);
        picky_calls++;
        if (number < 0) {
            throw holdfast::final_error("Negative", "the number is negative");
        }
        return picky{number};
    }
};

// A text in a buffer; what is behind it was never written, and holds what was on the stack before.
struct label {
    char text[64];
};

// Handlers that refer to the stack of their workflow, and one that does not.
static std::string captures()
{
    int local = 0;
    auto &all = holdfast::keep(kept());
    auto word = "HF_ERR_MISUSE";
    auto is_refused = [word](auto add) {
        try {
            add();
        } catch (const holdfast::error &e) {
            return e.type() == word && has(e.what(), "refers to the stack of this fiber");
        }
        return false;
    };
    // Padding that holds an address of the stack is not a capture.
    volatile uintptr_t stale[8];
    for (auto &word_of_stack : stale) {
        word_of_stack = reinterpret_cast<uintptr_t>(&local);
    }
    holdfast::on_query("q", [&all, flag = true] { return flag ? all.votes : 0; });
    holdfast::on_update(
        "u", [](int) {}, [](int) {});
    // Nor is what an optional had once.
    std::optional<uintptr_t> unset = reinterpret_cast<uintptr_t>(&local);
    unset.reset();
    holdfast::on_query("q", [unset] { return unset.has_value(); });
    // Handlers that cannot be copied byte by byte, because a std::pair or a std::tuple cannot.
    holdfast::on_query("q", [both = std::make_pair(1, 2L), &all] { return both.first + all.votes; });
    holdfast::on_signal("s", [three = std::make_tuple(1, true, 2L), &all] { all.votes += std::get<0>(three); });
    label name = {"a label"};
    const void *old = &local;
    std::memcpy(name.text + 16, &old, sizeof old);
    holdfast::on_query("q", [name] { return std::string(name.text); });
    if (HOLDFAST_CLEARS_PADDING == 0) {
        return "fine";
    }
    CHECK(is_refused([&] { holdfast::on_query("q", [&local] { return local; }); }));
    CHECK(is_refused([&] { holdfast::on_query("q", [&] { return all.votes + local; }); }));
    CHECK(is_refused([&] { holdfast::on_signal("s", [&] { local++; }); }));
    CHECK(is_refused([&] { holdfast::on_update("u", [&](int more) { return local += more; }); }));
    CHECK(is_refused([&] {
        holdfast::on_update(
            "u", [](int) {}, [&](int) { local++; });
    }));
    CHECK(is_refused([&] { holdfast::on_query("q", [at = &local] { return *at; }); }));
    holdfast::on_query("q", [&all, local, text = "x"] { return all.votes + local + static_cast<int>(text[0]); });
    holdfast::on_signal("s", [&] { all.votes++; });
    holdfast::on_update(
        "u", [&](int more) { return all.votes += more; }, [&](int) {});
    return "fine";
}

// A codec that forgets the quotes of a text.
struct unquoted {
    std::string text;
};
template <> struct holdfast::codec<unquoted> {
    static std::string encode(const unquoted &value)
    {
        return value.text;
    }
};

static std::string refusal_of(void (*function)())
{
    try {
        function();
    } catch (const holdfast::error &e) {
        return e.what();
    }
    return "";
}

static void what_codecs_make()
{
    CHECK(holdfast::encode(unquoted{"\"done\""}) == "\"done\"");
    std::string text = refusal_of([] { holdfast::encode(unquoted{"done"}); });
    CHECK(has(text, "holdfast::codec<unquoted>::encode made text that is not JSON: done"));
    text = refusal_of([] { holdfast::encode(std::vector<unquoted>{{"1"}, {"done"}}); });
    CHECK(has(text, "unquoted") && has(text, "made text that is not JSON: [1,done]"));
    CHECK(has(refusal_of([] { holdfast::encode(unquoted{""}); }), "codec<unquoted>"));
}

static void values_that_may_be_missing()
{
    hf_payload in = hf_payload_of_json("{\"a\": 7, \"b\": null, \"c\": {}}");
    CHECK(holdfast::get<std::optional<int>>(in, "a") == 7);
    CHECK(!holdfast::get<std::optional<int>>(in, "b"));
    CHECK(!holdfast::get<std::optional<int>>(in, "none"));
    CHECK(!holdfast::get<std::optional<std::string>>(in, "c.none"));
    CHECK(!holdfast::get<std::optional<std::vector<int>>>(in, "none"));
}

static void quiet(void *, hf_log_level, const char *, const char *)
{
}

static void workflows()
{
    hf_testenv *env = nullptr;
    hf_testenv_options options = hf_testenv_options();
    options.log = quiet;
    holdfast::check(hf_testenv_new(&env, options));
    hf_worker *worker = hf_testenv_worker(env);
    holdfast::add_workflow(worker, "tells", tells);
    holdfast::add_workflow(worker, "captures", captures);
    holdfast::add_workflow(worker, "takes", [](uint64_t number) { return number; });
    holdfast::add_workflow(worker, "asks", [](const holdfast::json &in) {
        return holdfast::get<int>(hf_payload_of_json(in.text.c_str()), "n");
    });
    holdfast::add_activity(worker, "word", [] { return std::string("seven"); });
    holdfast::add_activity(worker, "takes", [](int) {});
    holdfast::add_activity(worker, "picks", [](picky) {});
    holdfast::add_workflow(worker, "picks", [](int number) {
        try {
            holdfast::activity<void>("picks", number, holdfast::within(1s, 3));
        } catch (const holdfast::error &e) {
            return e.cause_type() + ", " + e.what();
        }
        return std::string();
    });
    const struct {
        const char *signal;
        const char *part;
    } CASES[] = {{nullptr, "the result of activity 'word': "},
                 {"go", "signal 'go': "},
                 {"go", "signal 'go': "},
                 {nullptr, "the input of activity 'takes': "},
                 {nullptr, "cannot be written as JSON"}};
    for (int i = 0; i < 5; i++) {
        holdfast::payload out;
        hf_execution *raw = nullptr;
        std::string in = std::to_string(i);
        CHECK(hf_testenv_start(env, "tells", hf_payload_of_json(in.c_str()), &raw) == HF_OK);
        holdfast::execution run(raw);
        if (CASES[i].signal != nullptr) {
            run.signal(CASES[i].signal, std::string("seven"));
        }
        CHECK(hf_testenv_result(env, raw, out.out()) == HF_OK);
        CHECK(has(holdfast::decode<std::string>(out.view()), CASES[i].part));
    }
    holdfast::payload out;
    CHECK(hf_testenv_run(env, "captures", hf_payload_none(), out.out()) == HF_OK);
    CHECK(holdfast::decode<std::string>(out.view()) == "fine");
    CHECK(hf_testenv_run(env, "takes", hf_payload_of_json("18446744073709551615"), out.out()) == HF_OK);
    CHECK(holdfast::decode<uint64_t>(out.view()) == UINT64_MAX);
    CHECK(hf_testenv_run(env, "picks", hf_payload_of_json("-1"), out.out()) == HF_OK);
    CHECK(has(holdfast::decode<std::string>(out.view()), "Negative, activity 'picks' failed"));
    CHECK(picky_calls == 1); // a final_error of a codec is final
    CHECK(hf_testenv_run(env, "takes", hf_payload_of_json("\"x\""), out.out()) == HF_ERR_FAILED);
    CHECK(std::string(hf_error_text()) ==
          "the input of workflow 'takes': hf_json_get_int: the JSON text is a text, not a number, at byte 0");
    CHECK(hf_testenv_run(env, "asks", hf_payload_of_json("{\"n\": \"x\"}"), nullptr) == HF_ERR_FAILED);
    CHECK(std::string(hf_error_text()) == "'n': hf_json_get_int: the JSON text is a text, not a number, at byte 0");
    CHECK(hf_testenv_run(env, "asks", hf_payload_of_json("{}"), nullptr) == HF_ERR_FAILED);
    CHECK(std::string(hf_error_text()) == "hf_json_get_view: there is no 'n' in the JSON text");
    CHECK(hf_testenv_free(env) == HF_OK);
}

int main()
{
    what_codecs_make();
    values_that_may_be_missing();
    reals();
    whole_numbers();
    texts();
    locales();
    first_functions();
    workflows();
    std::printf("%d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
