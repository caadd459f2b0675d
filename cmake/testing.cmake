# How programs become tests. A source says how it may be run in a comment of its own:
#     labels: threads     uses real threads: also run under ThreadSanitizer
#     labels: plainonly   too slow or too special for a sanitizer: only run in a plain build
# (several may be named, separated by spaces).

set(HF_SANITIZER_ENV
    "HF_TEST_SCALE=${HF_TEST_SCALE}"
    "ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

# ThreadSanitizer needs its shadow where a kernel with much address randomisation may have put a mapping.
set(HF_TEST_LAUNCHER "")
if(HF_SANITIZE MATCHES "thread")
    find_program(SETARCH setarch)
    if(SETARCH)
        execute_process(COMMAND ${SETARCH} -R true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
        if(NOT failed)
            set(HF_TEST_LAUNCHER ${SETARCH} -R)
        endif()
    endif()
endif()

function(hf_labels_of source ret_labels)
    file(STRINGS "${source}" lines REGEX "/\\* labels: [a-z ]+\\*/")
    string(REGEX REPLACE ".*/\\* labels: ([a-z ]+)\\*/.*" "\\1" labels "${lines}")
    string(STRIP "${labels}" labels)
    string(REPLACE " " ";" labels "${labels}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    set(${ret_labels} "${labels}" PARENT_SCOPE)
endfunction()

# Whether a program with these labels is part of this build. Others can still be built by name.
function(hf_labels_fit labels ret_fit)
    set(fit ON)
    if(HF_SANITIZE MATCHES "thread" AND NOT "threads" IN_LIST labels)
        set(fit OFF)
    elseif(HF_SANITIZE AND "plainonly" IN_LIST labels)
        set(fit OFF)
    endif()
    set(${ret_fit} ${fit} PARENT_SCOPE)
endfunction()

# hf_test(<name> TIMEOUT <seconds> LABELS <label>... COMMAND <command>...)
function(hf_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;COMMAND")
    add_test(NAME ${name} COMMAND ${HF_TEST_LAUNCHER} ${arg_COMMAND})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
                                            ENVIRONMENT "${HF_SANITIZER_ENV}")
endfunction()
