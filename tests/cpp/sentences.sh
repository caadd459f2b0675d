#!/usr/bin/env bash
# Code that <holdfast/holdfast.hpp> cannot take is refused by the compiler with a sentence: sentences.sh CXX HEADERS.
set -euo pipefail
cxx=$1 headers=$2

# The headers are compiled once for each standard.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
flags=(-Wall -Wextra -Werror -I"$headers")
for standard in 17 20; do
    cat >"$scratch/head$standard.hpp" <<'END'
#include <holdfast/holdfast.hpp>
using namespace std::chrono_literals;
struct point {
    int x;
};
END
    "$cxx" -x c++-header -std=c++$standard "${flags[@]}" "$scratch/head$standard.hpp" -o "$scratch/head$standard.hpp.gch"
done

# compile BODY: the errors of the compiler for a file with this function body, as C++17 and C++20.
compile()
{
    local standard
    for standard in 17 20; do
        printf 'void body(hf_worker *worker, holdfast::service &service, holdfast::execution &run);
                void body(hf_worker *worker, holdfast::service &service, holdfast::execution &run)
                { (void)worker; (void)service; (void)run; %s }\n' "$1" |
            LC_ALL=C "$cxx" -x c++ -std=c++$standard "${flags[@]}" -include "$scratch/head$standard.hpp" -fsyntax-only - 2>&1 ||
            echo "refused as C++$standard"
    done
}

# refused SENTENCE BODY
refused()
{
    local errors
    errors=$(compile "$2")
    if [[ $errors != *"refused as C++17"* || $errors != *"refused as C++20"* || $errors != *"holdfast: $1"* ]]; then
        printf 'FAILED: no "%s" for: %s\n%s\n' "$1" "$2" "$errors"
        exit 1
    fi
    printf '%s\n' "$1"
}

errors=$(compile 'run.update<void>("close"); service.start("order", "orders"); holdfast::add_activity(worker, "a", [] {});')
[[ $errors == '' ]] || { printf 'FAILED: what is right is refused: %s\n' "$errors" && exit 1; }

refused 'this type has no codec' 'holdfast::add_activity(worker, "a", [](point p) { return p.x; });'
refused 'this type has no codec' 'holdfast::add_workflow(worker, "w", [](int x) { return point{x}; });'
refused 'this type has no codec' 'service.start("order", std::vector<point>(), "orders");'
refused 'this type has no codec' '(void)run.result<point>();'
refused 'this type has no codec' '(void)run.query<const char *>("stage");'
refused 'a workflow, activity or handler has one parameter, or none' 'holdfast::add_activity(worker, "a", [](int, int) {});'
refused 'a workflow, activity or handler is a function or a lambda whose parameter has a type' \
    'holdfast::add_activity(worker, "a", [](auto in) { return in; });'
refused 'a handler is not destroyed' 'holdfast::on_query("q", [text = std::string("x")] { return text; });'
refused 'keep() destroys nothing' 'holdfast::keep<std::string>("x");'
refused 'a query handler returns the answer' 'holdfast::on_query("q", [] {});'
refused 'a signal handler returns nothing' 'holdfast::on_signal("s", [] { return 1; });'
refused 'a validator returns nothing' 'holdfast::on_update("u", [](int) {}, [](int more) { return more > 0; });'

errors=$(LC_ALL=C "$cxx" -x c++ -std=c++14 -I"$headers" -fsyntax-only - <<<'#include <holdfast/holdfast.hpp>' 2>&1 || true)
[[ $errors == *'holdfast.hpp needs C++17 or later'* ]] || { printf 'FAILED: C++14 gets no sentence: %s\n' "$errors" && exit 1; }
