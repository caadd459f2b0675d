# Tests in C++, which are programs without cmocka. The library itself is C; where there is no C++ compiler they are left out.

include(CheckLanguage)
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER)
    message(WARNING "no C++ compiler was found (Debian: g++); the tests in C++ are left out")
    return()
endif()
enable_language(CXX)

set(cxx_flags -std=c++17 -Wall -Wextra -Wpedantic -Wshadow $<$<BOOL:${HF_WERROR}>:-Werror>)
if(HF_SANITIZE)
    list(APPEND cxx_flags -fno-omit-frame-pointer -fsanitize=${HF_SANITIZE} -fno-sanitize-recover=all)
endif()

file(GLOB cpp_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*_test.cpp")
foreach(test IN LISTS cpp_tests)
    get_filename_component(name "${test}" NAME)
    string(REGEX REPLACE "_test\\.cpp$" "" name "${name}")
    hf_labels_of("${test}" labels)
    hf_labels_fit("${labels}" fit)
    add_executable(test_cpp_${name} "${test}")
    target_compile_options(test_cpp_${name} PRIVATE ${cxx_flags})
    target_link_libraries(test_cpp_${name} PRIVATE holdfast_static hf_flags)
    if(fit)
        hf_test(cpp/${name} TIMEOUT 300 LABELS ${labels} COMMAND $<TARGET_FILE:test_cpp_${name}>)
    else()
        set_target_properties(test_cpp_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
endforeach()

# The same tests as a module that a program in C loads, with a C++ runtime that only the module needs.
if(NOT HF_SANITIZE)
    add_library(cpp_plugin MODULE "${CMAKE_CURRENT_LIST_DIR}/exceptions_test.cpp")
    target_compile_options(cpp_plugin PRIVATE ${cxx_flags} -Wno-pedantic) # which is about taking main for a function
    target_link_libraries(cpp_plugin PRIVATE holdfast)
    add_executable(cpp_plugin_host "${CMAKE_CURRENT_LIST_DIR}/plugin_host.c")
    target_link_libraries(cpp_plugin_host PRIVATE holdfast hf_flags hf_test_warnings ${CMAKE_DL_LIBS})
    hf_test(cpp/plugin TIMEOUT 300 LABELS plainonly COMMAND cpp_plugin_host $<TARGET_FILE:cpp_plugin>)
endif()

# The guard, in front of the standard library of C++; with and without calls that are inlined.
if(NOT HF_SANITIZE AND TARGET holdfast_guard)
    foreach(level 0 1)
        add_executable(cpp_guard_${level} "${CMAKE_CURRENT_LIST_DIR}/guard.cpp")
        target_compile_options(cpp_guard_${level} PRIVATE ${cxx_flags} -g -O${level})
        target_include_directories(cpp_guard_${level} PRIVATE "${PROJECT_SOURCE_DIR}/include")
        target_link_libraries(cpp_guard_${level} PRIVATE holdfast)
        hf_test(cpp/guard_${level} TIMEOUT 120 LABELS plainonly
                COMMAND ${CMAKE_COMMAND} -E env LD_PRELOAD=$<TARGET_FILE:holdfast_guard> $<TARGET_FILE:cpp_guard_${level}>)
    endforeach()
endif()

# The wrapper also as C++20.
foreach(name wrapper handlers values failures)
    add_executable(test_cpp_${name}_20 "${CMAKE_CURRENT_LIST_DIR}/${name}_test.cpp")
    target_compile_options(test_cpp_${name}_20 PRIVATE ${cxx_flags} -std=c++20 -O0) # and as newcomers compile
    target_link_libraries(test_cpp_${name}_20 PRIVATE holdfast_static hf_flags)
    hf_test(cpp/${name}_20 TIMEOUT 300 LABELS threads COMMAND $<TARGET_FILE:test_cpp_${name}_20>)
endforeach()

# What the wrapper cannot do is told by the compiler, in a sentence.
hf_test(cpp/sentences TIMEOUT 120 LABELS plainonly
        COMMAND ${CMAKE_CURRENT_LIST_DIR}/sentences.sh ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR}/include)
