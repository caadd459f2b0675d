// Holdfast for C++17 and later: values in place of payloads, exceptions in place of statuses, scopes that close themselves, lambdas. It is
// one header over the C functions, and both may be mixed.
//
//     #include <holdfast/holdfast.hpp>
//
//     std::string order(int item)                                          // a workflow
//     {
//         auto receipt = holdfast::activity<std::string>("charge", item, holdfast::within(30s));
//         holdfast::sleep(24h * 30);
//         return receipt;
//     }
//
//     int main()
//     {
//         return holdfast::run([] {
//             holdfast::service service("sqlite:orders.db");
//             holdfast::worker worker(service, "orders");
//             worker.workflow("order", order);
//             worker.activity("charge", [](int item) { return "receipt " + std::to_string(item); });
//             worker.start();
//             auto bought = service.start("order", 7, "orders");
//             std::puts(bought.result<std::string>().c_str());
//         });
//     }
//
// Failures. A function below throws holdfast::error if the C function fails. An exception that leaves a workflow or an activity becomes its
// failure: the type of a holdfast::error is kept; any other std::exception has the name of its class as type, and what() as message.
// Throw holdfast::final_error from an activity or a workflow that must not be tried again. A failure that was caught is not the cause of a later one,
// unless that is thrown with std::throw_with_nested.
//
// Waiting calls of a workflow throw holdfast::canceled when it is canceled, and holdfast::evicted when the run leaves memory, to go on later. Destructors
// run, as always. evicted is not a std::exception: only catch (...) meets it, and must throw it again. A destructor that waits needs a shield (scope.h).
//
// Values. Integers, doubles, bool, std::string, std::vector, std::optional and holdfast::json are JSON. A struct of your own becomes one by a
// specialisation of holdfast::codec. What JSON cannot hold throws a holdfast::error before it is sent: infinities and NaN, a std::string that
// is not UTF-8, a holdfast::json that is not JSON.
#ifndef HOLDFAST_HOLDFAST_HPP
#define HOLDFAST_HOLDFAST_HPP

#if __cplusplus < 201703L
#error "holdfast.hpp needs C++17 or later: -std=c++17"
#endif

#include <holdfast/holdfast.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#ifdef __has_builtin
#if __has_builtin(__builtin_clear_padding)
#define HOLDFAST_CLEARS_PADDING 1
#endif
#endif
#ifndef HOLDFAST_CLEARS_PADDING
#define HOLDFAST_CLEARS_PADDING 0
#endif

namespace holdfast
{

// ---- Failures -----------------------------------------------------------------------------------------------------------------

class error : public std::runtime_error
{
  public:
    error(hf_status status, std::string type, const std::string &message, std::string cause_type = "")
        : std::runtime_error(message), status_(status), type_(std::move(type)), cause_type_(std::move(cause_type))
    {
    }
    // A failure of your own: throw holdfast::error("Refused", "the card is blocked");
    error(std::string type, const std::string &message) : error(HF_ERR_FAILED, std::move(type), message)
    {
    }

    hf_status status() const
    {
        return status_;
    }
    const std::string &type() const
    {
        return type_;
    } // "ActivityFailed", "HF_ERR_TIMEOUT", or a word of yours
    const std::string &cause_type() const
    {
        return cause_type_;
    } // of what led to it: the type that an activity gave

  private:
    hf_status status_;
    std::string type_;
    std::string cause_type_;
};

class canceled : public error
{
    using error::error;
};
// The run leaves memory, and goes on later by a replay. Not a std::exception, so that handlers of failures do not end it: it must leave the
// workflow's function, as catch (...) { throw; } lets it.
class evicted
{
};
// The run goes on as a new one (continue_as_new). Not a std::exception either: nothing has failed, and nothing is to be compensated.
class continued
{
};
class timeout : public error
{
    using error::error;
};
// From an activity or a workflow: it is not tried again.
class final_error : public error
{
    using error::error;
};

// Throws what hf_error() says.
[[noreturn]] inline void raise(hf_status status)
{
    const hf_failure *failure = hf_error();
    std::string type = failure != nullptr ? failure->type : hf_status_name(status);
    std::string cause = failure != nullptr && failure->cause != nullptr ? failure->cause->type : "";
    std::string message = failure != nullptr ? hf_error_text() : hf_status_text(status);
    switch (status) {
    case HF_ERR_CANCELED:
        throw canceled(status, type, message, cause);
    case HF_ERR_EVICTED:
        throw evicted();
    case HF_ERR_CONTINUED:
        throw continued();
    case HF_ERR_TIMEOUT:
        throw timeout(status, type, message, cause);
    default:
        throw error(status, type, message, cause);
    }
}

inline void check(hf_status status)
{
    if (status != HF_OK) {
        raise(status);
    }
}

namespace detail
{
inline hf_status fail_with_current() noexcept;

// The sentence of an exception that is about to become a failure. What std::throw_with_nested has put into it becomes the last failure, and so
// its cause; else there is none, because the last failure may be an old one that was handled. A sentence that ends with that of its
// cause is cut there: it would be read twice.
inline std::string text_with_cause(const std::exception &e)
{
    std::string text = e.what();
    const auto *outer = dynamic_cast<const std::nested_exception *>(&e);
    if (outer == nullptr || outer->nested_ptr() == nullptr) {
        hf_error_clear();
        return text;
    }
    try {
        outer->rethrow_nested();
    } catch (...) {
        (void)fail_with_current();
    }
    std::string cause = hf_error_text();
    if (!cause.empty() && text.size() > cause.size() &&
        text.compare(text.size() - cause.size(), cause.size(), cause) == 0) {
        size_t end = text.find_last_not_of(" :;,-", text.size() - cause.size() - 1);
        text.resize(end == std::string::npos ? 0 : end + 1);
    }
    return text.empty() ? e.what() : text;
}

inline std::string name_of(const std::type_info &type)
{
    int ignored = 0;
    char *owned = abi::__cxa_demangle(type.name(), nullptr, nullptr, &ignored);
    std::string name = owned != nullptr ? owned : type.name();
    std::free(owned);
    return name;
}

// The name of the class of an exception, without what std::throw_with_nested puts around it.
inline std::string class_of(const std::exception &e)
{
    std::string name = name_of(typeid(e));
    for (const char *around : {"std::_Nested_exception<", "std::__1::__nested<"}) {
        size_t len = std::strlen(around);
        if (name.compare(0, len, around) == 0 && name.back() == '>') {
            name = name.substr(len, name.size() - len - 1);
        }
    }
    return name;
}

// The exception at hand as the failure of this fiber or thread.
inline hf_status fail_with_current() noexcept
{
    try {
        throw;
    } catch (const evicted &) {
        return HF_ERR_EVICTED;
    } catch (const continued &) {
        return HF_ERR_CONTINUED;
    } catch (const final_error &e) {
        std::string text = text_with_cause(e);
        if (hf_activity_info() != nullptr) {
            hf_activity_fail_options options = hf_activity_fail_options();
            options.type = e.type().c_str();
            options.is_final = true;
            return hf_activity_fail(text.c_str(), options);
        }
        if (hf_workflow_info() != nullptr) {
            hf_workflow_fail_options options = hf_workflow_fail_options();
            options.type = e.type().c_str();
            options.is_final = true;
            return hf_workflow_fail(text.c_str(), options);
        }
        return hf_raise_typed(e.status(), e.type().c_str(), "%s", text.c_str());
    } catch (const error &e) {
        // A failure of the library is still the last one of this fiber, with its causes: it is not told twice.
        const hf_failure *last = hf_error();
        if (last != nullptr && last->status == e.status() && e.type() == last->type &&
            (e.cause_type() != "" || std::string(hf_error_text()) == e.what())) {
            return e.status();
        }
        std::string text = text_with_cause(e);
        return hf_raise_typed(e.status(), e.type().c_str(), "%s", text.c_str());
    } catch (const std::bad_alloc &) {
        return hf_raise(HF_ERR_NOMEM, "std::bad_alloc");
    } catch (const std::exception &e) {
        std::string text = text_with_cause(e);
        return hf_raise_typed(HF_ERR_FAILED, class_of(e).c_str(), "%s", text.c_str());
    } catch (...) {
        const std::type_info *type = abi::__cxa_current_exception_type();
        std::string name = type != nullptr ? name_of(*type) : "unknown";
        hf_error_clear();
        return hf_raise_typed(HF_ERR_FAILED, name.c_str(), "an exception of the type %s, which is not a std::exception",
                              name.c_str());
    }
}
} // namespace detail

// ---- Time ------------------------------------------------------------------------------------------------------------------------

template <class Rep, class Period> hf_span span(std::chrono::duration<Rep, Period> from)
{
    return hf_nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(from).count());
}

// ---- Values ----------------------------------------------------------------------------------------------------------------------

// Owns a payload.
class payload
{
  public:
    payload() : raw_(hf_payload_none())
    {
    }
    explicit payload(hf_payload owned) : raw_(owned)
    {
    }
    payload(payload &&other) noexcept : raw_(other.release())
    {
    }
    payload &operator=(payload &&other) noexcept
    {
        if (this != &other) {
            hf_payload_free(&raw_);
            raw_ = other.release();
        }
        return *this;
    }
    payload(const payload &) = delete;
    payload &operator=(const payload &) = delete;
    ~payload()
    {
        hf_payload_free(&raw_);
    }

    hf_payload view() const
    {
        return raw_;
    }
    hf_payload *out() // for a C function that makes one: what was there is freed
    {
        hf_payload_free(&raw_);
        raw_ = hf_payload_none();
        return &raw_;
    }
    hf_payload release()
    {
        hf_payload raw = raw_;
        raw_ = hf_payload_none();
        return raw;
    }

  private:
    hf_payload raw_;
};

// A JSON text as it is.
struct json {
    std::string text;
};

// How a type becomes JSON text, and back from a payload. Specialise it for your own:
//
//     template <> struct holdfast::codec<point> {
//         static std::string encode(const point &p) { return "{\"x\":" + std::to_string(p.x) + "}"; }
//         static point decode(hf_payload in) { return point{holdfast::get<int>(in, "x")}; }
//     };
template <class T, class Enable = void> struct codec {
    static_assert(!std::is_same_v<T, T>,
                  "holdfast: this type has no codec. Values are integers, doubles, bool, std::string, std::vector, "
                  "std::optional and holdfast::json; specialise holdfast::codec for a type of your own");
    static std::string encode(const T &value);
    static T decode(hf_payload in);
};

namespace detail
{
inline std::string view_text(hf_payload in, const char *path)
{
    hf_payload part = hf_payload_none();
    check(hf_json_get_view(in, path, &part));
    return std::string(static_cast<const char *>(part.data), part.len);
}

[[noreturn]] inline void does_not_fit(const std::string &number)
{
    throw error(HF_ERR_TOO_BIG, "HF_ERR_TOO_BIG", "the number " + number + " does not fit its type");
}

// Throws if it is not JSON: its bytes are not UTF-8, say.
inline void check_json(const std::string &text)
{
    hf_json_kind kind = HF_KIND_NULL;
    hf_payload bytes = hf_payload_of_bytes(text.data(), text.size());
    bytes.encoding = HF_ENCODING_JSON_TEXT;
    check(hf_json_get_kind(bytes, "", &kind));
}

// The shortest digits that are read as the same number, with a decimal point whatever the locale says.
inline std::string real_text(double value)
{
    char text[40];
    if (!(value - value == 0)) {
        throw error(HF_ERR_INVALID, "HF_ERR_INVALID", "an infinite number, or not a number, cannot be written as JSON");
    }
    for (int digits = 15; digits <= 17; digits++) {
        std::snprintf(text, sizeof text, "%.*g", digits, value);
        if (std::strtod(text, nullptr) == value) {
            break;
        }
    }
    std::string usual;
    for (const char *c = text; *c != '\0'; c++) {
        if (std::strchr("0123456789+-e", *c) != nullptr) {
            usual += *c;
        } else if (usual.empty() || usual.back() != '.') { // a point may have several bytes
            usual += '.';
        }
    }
    return usual;
}

inline unsigned hex_of(const char *digits)
{
    return static_cast<unsigned>(std::strtoul(std::string(digits, 4).c_str(), nullptr, 16));
}

inline void put_utf8(std::string &to, unsigned code)
{
    if (code < 0x80) {
        to += static_cast<char>(code);
        return;
    }
    unsigned count = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; // bytes that follow the first one
    to += static_cast<char>((0xff00u >> (count + 1) & 0xff) | code >> 6 * count);
    while (count-- > 0) {
        to += static_cast<char>(0x80 | (code >> 6 * count & 0x3f));
    }
}

// The characters of a JSON text between its quotes. The library has read it, so it is well formed.
inline std::string unquote(const std::string &quoted)
{
    static const char NAMES[] = "bfnrt";
    static const char MEANT[] = "\b\f\n\r\t";
    std::string text;
    for (size_t i = 1; i + 1 < quoted.size(); i++) {
        if (quoted[i] != '\\') {
            text += quoted[i];
            continue;
        }
        const char *name = std::strchr(NAMES, quoted[++i]);
        if (quoted[i] != 'u') {
            text += name != nullptr ? MEANT[name - NAMES] : quoted[i];
            continue;
        }
        unsigned code = hex_of(&quoted[i + 1]);
        i += 4;
        if (code >= 0xd800 && code < 0xdc00) { // the other half follows as \uXXXX
            code = 0x10000 + ((code - 0xd800) << 10) + (hex_of(&quoted[i + 3]) - 0xdc00);
            i += 6;
        }
        put_utf8(text, code);
    }
    return text;
}
} // namespace detail

template <class T> struct codec<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
    static std::string encode(T value)
    {
        return std::to_string(value);
    }
    static T decode(hf_payload in)
    {
        int64_t number = 0;
        uint64_t large = 0;
        if (is_large(in, &large)) {
            return static_cast<T>(large);
        }
        check(hf_json_get_int(in, "", &number));
        bool fits = std::is_signed_v<T> ? number >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                                              number <= static_cast<int64_t>(std::numeric_limits<T>::max())
                                        : number >= 0 && static_cast<uint64_t>(number) <=
                                                             static_cast<uint64_t>(std::numeric_limits<T>::max());
        if (!fits) {
            detail::does_not_fit(std::to_string(number));
        }
        return static_cast<T>(number);
    }

  private:
    // Whether it is a number above those of int64_t, and T has it.
    static bool is_large(hf_payload in, uint64_t *ret_number)
    {
        hf_json_kind kind = HF_KIND_MISSING;
        if constexpr (std::is_signed_v<T> || sizeof(T) < sizeof(uint64_t)) {
            return false;
        }
        check(hf_json_get_kind(in, "", &kind));
        std::string digits = kind == HF_KIND_NUMBER ? detail::view_text(in, "") : "";
        uint64_t number = 0;
        for (char c : digits) {
            uint64_t digit = static_cast<uint64_t>(c - '0');
            if (c < '0' || c > '9' || number > (UINT64_MAX - digit) / 10) {
                return false;
            }
            number = number * 10 + digit;
        }
        *ret_number = number;
        return number > static_cast<uint64_t>(INT64_MAX);
    }
};
template <class T> struct codec<T, std::enable_if_t<std::is_floating_point_v<T>>> {
    static std::string encode(T value)
    {
        return detail::real_text(static_cast<double>(value));
    }
    static T decode(hf_payload in)
    {
        double number = 0;
        check(hf_json_get_real(in, "", &number));
        if (number > static_cast<double>(std::numeric_limits<T>::max()) ||
            number < static_cast<double>(std::numeric_limits<T>::lowest())) {
            detail::does_not_fit(detail::real_text(number));
        }
        return static_cast<T>(number);
    }
};
template <> struct codec<bool> {
    static std::string encode(bool value)
    {
        return value ? "true" : "false";
    }
    static bool decode(hf_payload in)
    {
        bool flag = false;
        check(hf_json_get_bool(in, "", &flag));
        return flag;
    }
};
template <> struct codec<std::string> {
    static std::string encode(const std::string &value)
    {
        std::string text = "\"";
        bool is_ascii = true;
        for (char c : value) {
            char escape[8];
            is_ascii = is_ascii && static_cast<unsigned char>(c) < 0x80;
            if (c == '"' || c == '\\') {
                text += '\\';
                text += c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
                text += escape;
            } else {
                text += c;
            }
        }
        text += '"';
        if (!is_ascii) {
            detail::check_json(text); // a text that is not UTF-8 would fail where it is read
        }
        return text;
    }
    static std::string decode(hf_payload in)
    {
        hf_json_kind kind = HF_KIND_MISSING;
        check(hf_json_get_kind(in, "", &kind));
        if (kind != HF_KIND_TEXT) {
            char none = '\0';
            check(hf_json_get_text(in, "", 1, &none)); // throws, with the kind that it is
        }
        return detail::unquote(detail::view_text(in, ""));
    }
};
template <> struct codec<json> {
    static std::string encode(const json &value)
    {
        detail::check_json(value.text);
        return value.text;
    }
    static json decode(hf_payload in)
    {
        return json{detail::view_text(in, "")};
    }
};

namespace detail
{
// Whether the text of a codec is looked at by encode(): the codecs of this header make JSON, or look at it themselves.
template <class T> inline constexpr bool is_sure = std::is_arithmetic_v<T>;
template <> inline constexpr bool is_sure<std::string> = true;
template <> inline constexpr bool is_sure<json> = true;
template <class T> inline constexpr bool is_sure<std::vector<T>> = is_sure<T>;
template <class T> inline constexpr bool is_sure<std::optional<T>> = is_sure<T>;

template <class T> void check_codec(const std::string &text)
{
    if constexpr (!is_sure<T>) {
        try {
            check_json(text);
        } catch (const error &e) {
            std::string made = text.size() > 100 ? text.substr(0, 100) + "..." : text;
            raise(hf_raise(HF_ERR_INVALID, "holdfast::codec<%s>::encode made text that is not JSON: %s (%s)",
                           name_of(typeid(T)).c_str(), made.c_str(), e.what()));
        }
    }
}
} // namespace detail

template <class T> std::string encode(const T &value)
{
    std::string text = codec<std::decay_t<T>>::encode(value);
    detail::check_codec<std::decay_t<T>>(text);
    return text;
}
inline std::string encode(const char *value)
{
    return codec<std::string>::encode(value);
}
template <class T> T decode(hf_payload in)
{
    return codec<T>::decode(in);
}
namespace detail
{
// Throws what went wrong with a value again, with the name of the value in front of the sentence.
[[noreturn]] inline void raise_of(const error &e, const std::string &name)
{
    std::string text = name + ": " + e.what();
    if (e.type() == hf_status_name(e.status())) {
        raise(hf_raise(e.status(), "%s", text.c_str()));
    }
    throw error(e.status(), e.type(), text);
}
template <class T> T decode_of(hf_payload in, const char *what, const char *name)
{
    try {
        return decode<T>(in);
    } catch (const error &e) {
        if (typeid(e) != typeid(error)) {
            throw; // a final_error, or a class of the program's own: it stays what it is
        }
        raise_of(e, std::string(what) + "'" + name + "'");
    }
}
} // namespace detail

namespace detail
{
template <class T> inline constexpr bool is_optional = false;
template <class T> inline constexpr bool is_optional<std::optional<T>> = true;
} // namespace detail

// The value at a path of a JSON payload (json.h): holdfast::get<int>(in, "item.number"). What is not there, a std::optional has as nothing.
template <class T> T get(hf_payload in, const char *path)
{
    if constexpr (detail::is_optional<T>) {
        hf_json_kind kind = HF_KIND_MISSING;
        check(hf_json_get_kind(in, path, &kind));
        if (kind == HF_KIND_MISSING) {
            return std::nullopt;
        }
    }
    std::string text = detail::view_text(in, path);
    return detail::decode_of<T>(hf_payload_of_json(text.c_str()), "", path);
}

template <class T> struct codec<std::vector<T>> {
    static std::string encode(const std::vector<T> &values)
    {
        std::string text = "[";
        for (const auto &value : values) {
            text += (text.size() > 1 ? "," : "") + codec<T>::encode(value);
        }
        return text + "]";
    }
    static std::vector<T> decode(hf_payload in)
    {
        size_t count = 0;
        std::vector<T> values;
        check(hf_json_get_count(in, "", &count));
        for (size_t i = 0; i < count; i++) {
            values.push_back(get<T>(in, ("[" + std::to_string(i) + "]").c_str()));
        }
        return values;
    }
};
template <class T> struct codec<std::optional<T>> {
    static std::string encode(const std::optional<T> &value)
    {
        return value ? codec<T>::encode(*value) : "null";
    }
    static std::optional<T> decode(hf_payload in)
    {
        hf_json_kind kind = HF_KIND_NULL;
        if (in.data == nullptr) {
            return std::nullopt;
        }
        check(hf_json_get_kind(in, "", &kind));
        return kind == HF_KIND_NULL ? std::nullopt : std::optional<T>(codec<T>::decode(in));
    }
};

namespace detail
{
template <class F, class = void> inline constexpr bool has_one_call = false;
template <class F> inline constexpr bool has_one_call<F, std::void_t<decltype(&F::operator())>> = true;

// The parameter and the result of a function, a pointer to one, or a lambda.
template <class F> struct signature : signature<decltype(&F::operator())> {
    static_assert(has_one_call<F>,
                  "holdfast: a workflow, activity or handler is a function or a lambda whose parameter has a type: "
                  "[](auto in) and overloaded calls have none");
};
template <class R, class... A> struct signature<R (*)(A...)> {
    using result = R;
    using args = std::tuple<std::decay_t<A>...>;
};
template <class R, class... A> struct signature<R(A...)> : signature<R (*)(A...)> {
};
template <class F, class R, class... A> struct signature<R (F::*)(A...) const> : signature<R (*)(A...)> {
};
template <class F, class R, class... A> struct signature<R (F::*)(A...)> : signature<R (*)(A...)> {
};
template <class R, class... A> struct signature<R (*)(A...) noexcept> : signature<R (*)(A...)> {
};
template <class F, class R, class... A> struct signature<R (F::*)(A...) const noexcept> : signature<R (*)(A...)> {
};
template <class F, class R, class... A> struct signature<R (F::*)(A...) noexcept> : signature<R (*)(A...)> {
};
template <class F> using result_of = typename signature<F>::result;

template <class T> T decode_input(hf_payload in)
{
    if (hf_handler_name() != nullptr) {
        return decode_of<T>(in, "the input of ", hf_handler_name());
    }
    if (hf_activity_info() != nullptr) {
        return decode_of<T>(in, "the input of activity ", hf_activity_info()->name);
    }
    return decode_of<T>(in, "the input of workflow ", hf_workflow_info()->type);
}

// Calls it with the value of the payload, if it has a parameter.
template <class F> result_of<F> invoke_with(F &function, hf_payload in)
{
    using args = typename signature<F>::args;
    static_assert(std::tuple_size_v<args> <= 1, "holdfast: a workflow, activity or handler has one parameter, or none");
    if constexpr (std::tuple_size_v<args> == 0) {
        (void)in;
        return function();
    } else {
        return function(decode_input<std::tuple_element_t<0, args>>(in));
    }
}

template <class F> void invoke_into(F &function, hf_payload in, hf_payload *ret_out)
{
    if constexpr (std::is_void_v<result_of<F>>) {
        (void)ret_out;
        invoke_with(function, in);
    } else {
        std::string text = encode(invoke_with(function, in));
        check(hf_payload_copy(hf_payload_of_json(text.c_str()), ret_out));
    }
}

// The value of a payload; nothing if T is void.
template <class T> T take(const payload &from, const char *what, const char *name)
{
    if constexpr (std::is_void_v<T>) {
        (void)from;
        (void)what;
        (void)name;
    } else {
        return decode_of<T>(from.view(), what, name);
    }
}

template <class F> hf_status call_workflow(hf_payload in, hf_payload *ret_out)
{
    try {
        invoke_into(*static_cast<F *>(hf_workflow_info()->arg), in, ret_out);
        return HF_OK;
    } catch (...) {
        return fail_with_current();
    }
}
template <class F> hf_status call_activity(hf_payload in, hf_payload *ret_out)
{
    try {
        invoke_into(*static_cast<F *>(hf_activity_arg()), in, ret_out);
        return HF_OK;
    } catch (...) {
        return fail_with_current();
    }
}
template <class F> hf_status call_reply(void *arg, hf_payload in, hf_payload *ret_out)
{
    try {
        invoke_into(*static_cast<F *>(arg), in, ret_out);
        return HF_OK;
    } catch (...) {
        return fail_with_current();
    }
}
template <class F> hf_status call_signal(void *arg, hf_payload in)
{
    try {
        invoke_with(*static_cast<F *>(arg), in);
        return HF_OK;
    } catch (...) {
        return fail_with_current();
    }
}
// The handler and the validator of an update, which share one argument.
template <class F, class V> struct checked {
    F handler;
    V validator;
};
template <class F, class V> hf_status call_checked(void *arg, hf_payload in, hf_payload *ret_out)
{
    return call_reply<F>(&static_cast<checked<F, V> *>(arg)->handler, in, ret_out);
}
template <class F, class V> hf_status call_validator(void *arg, hf_payload in)
{
    return call_signal<V>(&static_cast<checked<F, V> *>(arg)->validator, in);
}
template <class F> hf_status call_body(void *arg)
{
    std::unique_ptr<F> function(static_cast<F *>(arg));
    try {
        (*function)();
        return HF_OK;
    } catch (...) {
        return fail_with_current();
    }
}
template <class F> void drop_body(void *arg)
{
    delete static_cast<F *>(arg);
}
// The first function of a runtime. It is moved to the fiber, so that what it has captured is destroyed there; if the runtime cannot
// begin, it stays with the caller.
template <class F> hf_status call_first(void *arg)
{
    try {
        F function(std::move(*static_cast<F *>(arg)));
        function();
        return HF_OK;
    } catch (...) {
        return fail_with_current();
    }
}
} // namespace detail

// ---- Inside a workflow --------------------------------------------------------------------------------------------------------------

// Options of an activity with a time limit for one attempt; set others in what it returns.
template <class Rep, class Period>
hf_activity_options within(std::chrono::duration<Rep, Period> start_to_close, int attempts_max = 0)
{
    hf_activity_options options = hf_activity_options();
    options.start_to_close = span(start_to_close);
    options.attempts_max = attempts_max;
    return options;
}

// Runs an activity and waits for it: activity<int>("charge", order, within(30s)). activity<void> has no result, and an activity without
// input has no value: activity<int>("count", within(30s)).
template <class R, class A>
R activity(const char *name, const A &in, hf_activity_options options, const char *file = __builtin_FILE(),
           int line = __builtin_LINE())
{
    std::string text = encode(in);
    payload out;
    check(hf_activity_run(name, hf_payload_of_json(text.c_str()), out.out(), options, file, line));
    return detail::take<R>(out, "the result of activity ", name);
}
template <class R>
R activity(const char *name, hf_activity_options options, const char *file = __builtin_FILE(),
           int line = __builtin_LINE())
{
    payload out;
    check(hf_activity_run(name, hf_payload_none(), out.out(), options, file, line));
    return detail::take<R>(out, "the result of activity ", name);
}

template <class Rep, class Period> void sleep(std::chrono::duration<Rep, Period> time)
{
    check(hf_sleep(span(time)));
}

// Waits for a signal and takes its value.
template <class T> T signal(const char *name, const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    payload out;
    check(hf_signal_wait(name, out.out(), hf_wait_options(), file, line));
    return detail::take<T>(out, "signal ", name);
}
// The same; nothing if none comes in time. signal_within<void> tells whether it has come.
template <class T, class Rep, class Period>
std::conditional_t<std::is_void_v<T>, bool, std::optional<T>>
signal_within(const char *name, std::chrono::duration<Rep, Period> time, const char *file = __builtin_FILE(),
              int line = __builtin_LINE())
{
    payload out;
    hf_wait_options options = hf_wait_options();
    options.timeout = span(time);
    hf_status status = hf_signal_wait(name, out.out(), options, file, line);
    if (status == HF_ERR_TIMEOUT) {
        hf_error_clear(); // it is an answer, and must not become the cause of a later failure
    } else {
        check(status);
    }
    if constexpr (std::is_void_v<T>) {
        return status == HF_OK;
    } else {
        return status == HF_OK ? std::optional<T>(detail::decode_of<T>(out.view(), "signal ", name)) : std::nullopt;
    }
}

namespace detail
{
template <class F> hf_status wait_until(F &condition, hf_wait_options options, const char *file, int line)
{
    hf_until until;
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    hf_status status = hf_until_begin(&until, &options);
    try {
        while (status == HF_OK && !condition()) {
            status = hf_until_next(&until);
        }
    } catch (...) {
        (void)!hf_until_end(&until, status); // else verbs would be refused from now on, as inside the condition
        throw;
    }
    return hf_until_end(&until, status);
}
} // namespace detail

// Waits until the function returns true: wait_until([&] { return votes >= 2; }). It is called again whenever something has come to the
// workflow (handler.h). It may read the workflow's data, and throw.
template <class F> void wait_until(F condition, const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    check(detail::wait_until(condition, hf_wait_options(), file, line));
}
// The same for a time; false if it has passed.
template <class F, class Rep, class Period>
bool wait_until_within(F condition, std::chrono::duration<Rep, Period> time, const char *file = __builtin_FILE(),
                       int line = __builtin_LINE())
{
    hf_wait_options options = hf_wait_options();
    options.timeout = span(time);
    hf_status status = detail::wait_until(condition, options, file, line);
    if (status == HF_ERR_TIMEOUT) {
        hf_error_clear(); // as in signal_within
    } else {
        check(status);
    }
    return status == HF_OK;
}

// A text in the memory of the run, for keep(): a std::string would have to be destroyed. Its bytes are those of the run, too, so only code of the
// workflow makes and changes one.
//
//     auto &stage = holdfast::keep<holdfast::text>("charging");
//     stage = "waits for " + name;
class text
{
public:
    text() = default;
    text(const char *from) : text(std::string_view(from))
    {
    }
    text(const std::string &from) : text(std::string_view(from))
    {
    }
    text(std::string_view from)
    {
        assign(from);
    }
    text(const text &from) : text(from.view())
    {
    }
    text &operator=(const text &from)
    {
        assign(from.view());
        return *this;
    }
    // Without a text in between, which would leave its bytes behind.
    template <class From, class = std::enable_if_t<std::is_convertible_v<const From &, std::string_view>>>
    text &operator=(const From &from)
    {
        assign(std::string_view(from));
        return *this;
    }
    std::string_view view() const noexcept
    {
        return std::string_view(bytes, len);
    }
    std::string str() const
    {
        return std::string(bytes, len);
    }
    operator std::string() const
    {
        return str();
    }

private:
    void assign(std::string_view from)
    {
        if (from.size() > room) { // twice as large, so that what it leaves behind is not more than it is
            size_t next = from.size() > 2 * room ? from.size() : 2 * room;
            char *at = static_cast<char *>(hf_workflow_alloc(next));
            if (at == nullptr) {
                throw std::bad_alloc();
            }
            bytes = at;
            room = next;
        }
        if (!from.empty()) {
            std::memmove(bytes, from.data(), from.size());
        }
        len = from.size();
    }
    char *bytes = nullptr;
    size_t len = 0;
    size_t room = 0;
};
template <> struct codec<text> {
    static std::string encode(const text &value)
    {
        return codec<std::string>::encode(value.str());
    }
    static text decode(hf_payload in)
    {
        return text(codec<std::string>::decode(in));
    }
};

// The run ends, and goes on as a new one with this input, or without one: for workflows that would have too many events (run.h). It leaves
// the function as an exception that handlers of std::exception do not see.
template <class T>
[[noreturn]] void continue_as_new(const T &in, hf_continue_options options = hf_continue_options())
{
    std::string made = encode(in);
    raise(hf_continue_as_new(hf_payload_of_json(made.c_str()), options));
}
[[noreturn]] inline void continue_as_new()
{
    raise(hf_continue_as_new(hf_payload_none()));
}

// A value in the memory of the run: it stays when the function has returned, as handlers need it. It is not destroyed, and so it has nothing to free.
//
//     auto &stage = holdfast::keep<const char *>("charging");
//     holdfast::on_query("stage", [&stage] { return std::string(stage); });
template <class T> T &keep(T first = T())
{
    static_assert(std::is_trivially_destructible_v<T>,
                  "holdfast: keep() destroys nothing: it is for numbers, holdfast::text in place of std::string, arrays "
                  "and structs of them");
    void *at = hf_workflow_alloc(sizeof(T));
    if (at == nullptr) {
        throw std::bad_alloc();
    }
    return *new (at) T(std::move(first));
}

namespace detail
{
// A handler in the memory of the run.
template <class F> F *keep_handler(F handler)
{
    static_assert(std::is_trivially_destructible_v<F>,
                  "holdfast: a handler is not destroyed, so it captures what keep() returned, by reference, and values "
                  "that have nothing to free: not a std::string or a std::vector");
    F *kept = &holdfast::keep<F>(std::move(handler));
#if HOLDFAST_CLEARS_PADDING
    if constexpr (std::is_trivially_copyable_v<F>) {
        __builtin_clear_padding(kept);
    }
#endif
    return kept;
}
// The bytes of a handler in which an address on the stack is looked for. Bytes that are no value may have one by chance: padding, where the
// compiler cannot clear it, an optional that is empty, the end of a buffer behind its text. So only handlers are looked at that are aligned as an
// address, and have captured something by reference (these have no standard layout) or consist of values only.
template <class F> constexpr size_t captured_len()
{
    bool has_references = std::is_trivially_copyable_v<F> && !std::is_standard_layout_v<F>;
    bool is_all_value = std::has_unique_object_representations_v<F>;
    bool may_have_one = alignof(F) >= alignof(void *) && (has_references || is_all_value);
    return HOLDFAST_CLEARS_PADDING != 0 && may_have_one ? sizeof(F) : 0;
}
} // namespace detail

// Handlers of queries, signals and updates are functions with one parameter, or none. They are called after the end of the workflow's function, too:
// let them capture what keep() returned, and nothing that is on the stack: a handler that refers to the calling fiber's
// stack is refused with a holdfast::error of the type HF_ERR_MISUSE, where that can be told from bytes that are no value (clang cannot).
// A buffer that is captured beside a reference needs a value in each byte, `char name[64] = {}`: what was never written may look like an address.
//
// Answers queries. The handler must not wait, nor change anything.
template <class F> void on_query(const char *name, F handler)
{
    static_assert(
        !std::is_void_v<detail::result_of<F>>,
        "holdfast: a query handler returns the answer; for a handler without one there are signals and updates");
    hf_on_query_options options = hf_on_query_options();
    options.arg = detail::keep_handler(std::move(handler));
    options.arg_len = detail::captured_len<F>();
    check(hf_on_query(name, detail::call_reply<F>, options));
}
// Takes signals. The handler may wait, and change the workflow's data; wait_until() sees the change. A signal that has a handler
// cannot be waited for with signal().
template <class F> void on_signal(const char *name, F handler, hf_on_signal_options options = hf_on_signal_options())
{
    static_assert(std::is_void_v<detail::result_of<F>>,
                  "holdfast: a signal handler returns nothing, because nobody waits for it; on_update answers");
    options.arg = detail::keep_handler(std::move(handler));
    options.arg_len = detail::captured_len<F>();
    check(hf_on_signal(name, detail::call_signal<F>, options));
}
// Answers updates: with a result, or without one if the handler returns void. The handler may wait, and change the workflow's data.
template <class F> void on_update(const char *name, F handler, hf_on_update_options options = hf_on_update_options())
{
    options.arg = detail::keep_handler(std::move(handler));
    options.arg_len = detail::captured_len<F>();
    check(hf_on_update(name, detail::call_reply<F>, options));
}
// The same with a validator, which is called first, with the same input: an update for which it throws is rejected, is not in the history, and
// its caller gets the failure. It must not wait, nor change anything.
//
//     holdfast::on_update("add", [&total](int more) { total += more; },
//                         [](int more) { if (more < 0) throw holdfast::error("Negative", "only positive numbers"); });
template <class F, class V, class = std::enable_if_t<!std::is_same_v<std::decay_t<V>, hf_on_update_options>>>
void on_update(const char *name, F handler, V validator, hf_on_update_options options = hf_on_update_options())
{
    static_assert(std::is_void_v<detail::result_of<V>>,
                  "holdfast: a validator returns nothing; it throws to reject the update");
    options.arg = detail::keep_handler(detail::checked<F, V>{std::move(handler), std::move(validator)});
    options.arg_len = detail::captured_len<detail::checked<F, V>>();
    options.validator = detail::call_validator<F, V>;
    check(hf_on_update(name, detail::call_checked<F, V>, options));
}
// Waits until no other handler of signals or updates is under way; for the end of a workflow that must answer them all.
inline void handlers_wait(const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    check(hf_handlers_wait(hf_wait_options(), file, line));
}

// ---- Scopes, in workflows and elsewhere -----------------------------------------------------------------------------------------------

// Children that cannot outlive the block: its destructor cancels those that still run, and waits for them.
class scope
{
  public:
    explicit scope(hf_scope_options options = hf_scope_options())
    {
        check(hf_scope_open(&raw_, options));
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope()
    {
        if (raw_ != nullptr) {
            hf_scope_close(raw_);
        }
    }
    // Runs a function on a fiber of its own. Objects that it refers to must live as long as the scope.
    template <class F>
    void fork(F function, hf_fork_options options = hf_fork_options(), const char *file = __builtin_FILE(),
              int line = __builtin_LINE())
    {
        options.drop = detail::drop_body<F>; // also called if the fork fails
        check(hf_fork(raw_, detail::call_body<F>, new F(std::move(function)), options, file, line));
    }
    // Waits for all children, as the policy of the scope says; throws their failure.
    void join()
    {
        check(hf_join(raw_));
    }
    void cancel()
    {
        check(hf_scope_cancel(raw_));
    }
    hf_scope *raw() const
    {
        return raw_;
    }

  private:
    hf_scope *raw_ = nullptr;
};

// While it lives, waits are not canceled from outside: for cleanup after a cancel. After `bound` they throw holdfast::canceled, too.
class shield
{
  public:
    template <class Rep, class Period> explicit shield(std::chrono::duration<Rep, Period> bound)
    {
        check(hf_shield_open(span(bound), &raw_));
    }
    shield(const shield &) = delete;
    shield &operator=(const shield &) = delete;
    ~shield()
    {
        hf_shield_close(raw_);
    }

  private:
    hf_shield *raw_ = nullptr;
};

// Runs a function on the first fiber of a new runtime; returns 0, or prints the failure and returns 1. For main().
template <class F> int run(F function, hf_runtime_options options = hf_runtime_options())
{
    hf_status status = hf_run(detail::call_first<F>, &function, options);
    if (status != HF_OK) {
        std::fprintf(stderr, "%s\n", hf_error_text());
    }
    return status == HF_OK ? 0 : 1;
}

// ---- Clients -----------------------------------------------------------------------------------------------------------------------------

class execution
{
  public:
    explicit execution(hf_execution *owned) : raw_(owned, &hf_execution_free)
    {
    }
    // The result of the workflow, when it has ended; result<void> has none. Throws its failure.
    template <class T> T result()
    {
        payload out;
        check(hf_result(raw_.get(), out.out()));
        return detail::take<T>(out, "the result of workflow ", hf_execution_id(raw_.get()));
    }
    template <class A> void signal(const char *name, const A &in)
    {
        std::string text = encode(in);
        check(hf_signal(raw_.get(), name, hf_payload_of_json(text.c_str())));
    }
    void signal(const char *name)
    {
        check(hf_signal(raw_.get(), name, hf_payload_none()));
    }
    template <class R, class A> R query(const char *name, const A &in)
    {
        std::string text = encode(in);
        payload out;
        check(hf_query(raw_.get(), name, hf_payload_of_json(text.c_str()), out.out()));
        return detail::take<R>(out, "the answer of query ", name);
    }
    template <class R> R query(const char *name)
    {
        payload out;
        check(hf_query(raw_.get(), name, hf_payload_none(), out.out()));
        return detail::take<R>(out, "the answer of query ", name);
    }
    // Runs an update and waits for its end; update<void> has no result, and an update without input has no value: update<int>("close").
    template <class R, class A> R update(const char *name, const A &in)
    {
        std::string text = encode(in);
        payload out;
        check(hf_update(raw_.get(), name, hf_payload_of_json(text.c_str()), out.out()));
        return detail::take<R>(out, "the result of update ", name);
    }
    template <class R> R update(const char *name)
    {
        payload out;
        check(hf_update(raw_.get(), name, hf_payload_none(), out.out()));
        return detail::take<R>(out, "the result of update ", name);
    }
    void cancel()
    {
        check(hf_cancel(raw_.get()));
    }
    hf_execution *raw() const
    {
        return raw_.get();
    }

  private:
    std::unique_ptr<hf_execution, void (*)(hf_execution *)> raw_;
};

class service
{
  public:
    explicit service(const char *address, hf_open_options options = hf_open_options())
    {
        check(hf_open(address, &raw_, options));
    }
    service(const service &) = delete;
    service &operator=(const service &) = delete;
    ~service()
    {
        hf_close(raw_);
    }

    // Starts a workflow: start("order", 7, "orders"), or without input start("order", "orders").
    template <class A> execution start(const char *type, const A &in, hf_start_options options)
    {
        hf_execution *made = nullptr;
        std::string text = encode(in);
        check(hf_start(raw_, type, hf_payload_of_json(text.c_str()), &made, options));
        return execution(made);
    }
    template <class A> execution start(const char *type, const A &in, const char *task_queue)
    {
        hf_start_options options = hf_start_options();
        options.task_queue = task_queue;
        return start(type, in, options);
    }
    execution start(const char *type, hf_start_options options)
    {
        hf_execution *made = nullptr;
        check(hf_start(raw_, type, hf_payload_none(), &made, options));
        return execution(made);
    }
    execution start(const char *type, const char *task_queue)
    {
        hf_start_options options = hf_start_options();
        options.task_queue = task_queue;
        return start(type, options);
    }
    hf_service *raw() const
    {
        return raw_;
    }

  private:
    hf_service *raw_ = nullptr;
};

// ---- Workers -----------------------------------------------------------------------------------------------------------------------------

namespace detail
{
// What workers call: it stays, and stays reachable.
struct kept {
    kept *next = nullptr;
};
template <class F> struct kept_function : kept {
    F function;
    explicit kept_function(F given) : function(std::move(given))
    {
    }
};
inline std::atomic<kept *> kept_all{nullptr};

template <class F> void *keep(F function)
{
    auto *it = new kept_function<F>(std::move(function));
    it->next = kept_all.load();
    while (!kept_all.compare_exchange_weak(it->next, it)) {
    }
    return &it->function;
}
} // namespace detail

// Adds functions and lambdas to a worker of C, such as that of HF_PLUGIN or hf_testenv_worker. They are kept as long as the process lives.
template <class F>
void add_workflow(hf_worker *worker, const char *name, F function,
                  hf_worker_add_workflow_options options = hf_worker_add_workflow_options())
{
    options.arg = detail::keep(std::move(function));
    check(hf_worker_add_workflow(worker, name, detail::call_workflow<F>, options));
}
template <class F>
void add_activity(hf_worker *worker, const char *name, F function,
                  hf_worker_add_activity_options options = hf_worker_add_activity_options())
{
    options.arg = detail::keep(std::move(function));
    check(hf_worker_add_activity(worker, name, detail::call_activity<F>, options));
}

class worker
{
  public:
    worker(service &on, const char *task_queue, hf_worker_options options = hf_worker_options())
    {
        check(hf_worker_new(on.raw(), task_queue, &raw_, options));
    }
    worker(const worker &) = delete;
    worker &operator=(const worker &) = delete;
    ~worker()
    {
        hf_worker_free(raw_);
    } // stops it, and waits

    template <class F>
    worker &workflow(const char *name, F function,
                     hf_worker_add_workflow_options options = hf_worker_add_workflow_options())
    {
        options.arg = keep(std::move(function));
        check(hf_worker_add_workflow(raw_, name, detail::call_workflow<F>, options));
        return *this;
    }
    template <class F>
    worker &activity(const char *name, F function,
                     hf_worker_add_activity_options options = hf_worker_add_activity_options())
    {
        options.arg = keep(std::move(function));
        check(hf_worker_add_activity(raw_, name, detail::call_activity<F>, options));
        return *this;
    }
    void start()
    {
        check(hf_worker_start(raw_));
    }
    void run()
    {
        check(hf_worker_run(raw_));
    }
    void stop()
    {
        check(hf_worker_stop(raw_));
    }
    hf_worker *raw() const
    {
        return raw_;
    }

  private:
    template <class F> void *keep(F function)
    {
        auto kept = std::make_shared<F>(std::move(function));
        functions_.push_back(kept);
        return kept.get();
    }
    std::vector<std::shared_ptr<void>> functions_; // freed after the worker has ended
    hf_worker *raw_ = nullptr;
};

} // namespace holdfast

#endif
