# How our code is compiled. Three interface targets: hf_flags for everything, hf_warnings for the library and the examples,
# hf_test_warnings for tests, which may be a little less strict about integer conversions.

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE ccache)
mark_as_advanced(CCACHE)
if(CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

set(c "$<COMPILE_LANGUAGE:C>")

add_library(hf_flags INTERFACE)
target_compile_definitions(hf_flags INTERFACE _GNU_SOURCE HF_SWITCH_FPU=$<BOOL:${HF_SWITCH_FPU}>)
target_compile_options(
    hf_flags
    INTERFACE
        # Stacks are walked by hf_dump, and a C++ exception may pass through our frames on its way out of a body.
        $<${c}:-fasynchronous-unwind-tables>
        $<${c}:-fexceptions>
        # A 16-byte load over two fields that were just stored one by one stalls the processor for a dozen cycles.
        $<${c}:-fno-tree-slp-vectorize>
        # The same objects serve both libraries: without this, -fPIC would forbid inlining our own public functions.
        $<${c}:-fno-semantic-interposition>
        # Messages name files as src/..., wherever the tree was built.
        $<${c}:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>
        # A file of the other architecture's assembly is empty and must not ask for an executable stack.
        $<$<COMPILE_LANGUAGE:ASM>:-Wa,--noexecstack>)

# The context switch is entered by a push and a jump (src/base/switch.h): nothing may live below the stack pointer.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
    target_compile_options(hf_flags INTERFACE $<${c}:-mno-red-zone>)
endif()
if(HF_SANITIZE)
    target_compile_options(hf_flags INTERFACE $<${c}:-fno-omit-frame-pointer>)
    target_compile_options(hf_flags INTERFACE $<${c}:-fsanitize=${HF_SANITIZE}> $<${c}:-fno-sanitize-recover=all>)
    target_link_options(hf_flags INTERFACE -fsanitize=${HF_SANITIZE})
endif()
if(HF_FUZZ)
    # Coverage for libFuzzer; the targets of tests/fuzz link its main.
    target_compile_options(hf_flags INTERFACE $<${c}:-fsanitize=fuzzer-no-link>)
endif()
if(HF_HARDEN)
    target_compile_options(hf_flags INTERFACE $<${c}:-fstack-protector-strong> $<${c}:-U_FORTIFY_SOURCE>
                                              $<${c}:-D_FORTIFY_SOURCE=2>)
    target_link_options(hf_flags INTERFACE -Wl,-z,relro,-z,now)
endif()

add_library(hf_test_warnings INTERFACE)
target_compile_options(
    hf_test_warnings INTERFACE $<${c}:-Wall> $<${c}:-Wextra> $<${c}:-Wshadow> $<${c}:-Wstrict-prototypes> $<${c}:-Wvla>
                               $<${c}:-Wformat=2> $<${c}:-Wundef> $<$<BOOL:${HF_WERROR}>:-Werror>)

# The warnings. The list is also used by tools/check_compilers.sh, through a file in the build tree.
set(HF_WARNING_LIST
    -Wall
    -Wextra
    -Wpedantic
    -Wshadow
    -Wconversion
    -Wsign-conversion
    -Wstrict-prototypes
    -Wmissing-prototypes
    -Wswitch-enum
    -Wvla
    -Wcast-qual
    -Wformat=2
    -Wundef)
add_library(hf_warnings INTERFACE)
foreach(warning IN LISTS HF_WARNING_LIST)
    target_compile_options(hf_warnings INTERFACE $<${c}:${warning}>)
endforeach()
target_compile_options(hf_warnings INTERFACE $<$<BOOL:${HF_WERROR}>:-Werror>)
