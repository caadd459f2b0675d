# The library as one file (docs/adr/0032): it is compiled once, as its users compile it, and what is linked with it runs.

set(object "${PROJECT_BINARY_DIR}/amalgamation/holdfast.o")
add_custom_command(
    OUTPUT "${object}"
    # Another file's `static int count;` would be the same variable: -Wredundant-decls tells of it.
    COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${CMAKE_C_COMPILER} -std=c17 -O1 -Wall -Wextra -Wredundant-decls -Werror -c
            "${HF_AMALGAMATION_DIR}/holdfast.c" -o "${object}"
    DEPENDS "${HF_AMALGAMATION_DIR}/holdfast.c" "${HF_AMALGAMATION_DIR}/holdfast.h"
    COMMENT "Compiling the library as one file"
    VERBATIM)
add_custom_target(amalgamation_object ALL DEPENDS "${object}")
add_dependencies(amalgamation_object amalgamation)

hf_test(package/amalgamation TIMEOUT 900 LABELS plainonly
        COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/package/amalgamation.sh ${PROJECT_SOURCE_DIR} ${HF_AMALGAMATION_DIR}
                "${HF_AMALGAMATION_PROCESSORS}" $<TARGET_FILE:holdfast> ${scratch}/amalgamation
                $<TARGET_FILE:holdfast_program>)

# kill -9, of a program with that file inside.
add_executable(amalgamation_kill_child ${kill_child})
target_include_directories(amalgamation_kill_child PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include"
                           "${CMAKE_CURRENT_SOURCE_DIR}" "${HF_GENERATED_DIR}")
target_link_options(amalgamation_kill_child PRIVATE -Wl,--wrap=sqlite3_wal_checkpoint_v2)
target_link_libraries(amalgamation_kill_child PRIVATE "${object}" hf_flags hf_test_warnings sqlite3 yajl Threads::Threads m)
add_dependencies(amalgamation_kill_child amalgamation_object hf_proto)
hf_test(package/amalgamation_kill TIMEOUT 300 LABELS plainonly
        COMMAND kill_drive $<TARGET_FILE:amalgamation_kill_child> $<TARGET_FILE:holdfast_program> 20)
