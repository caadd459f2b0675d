# The library as HF_WITH_REMOTE=OFF makes it, of the same objects but for the layer that opens services: that one is compiled again, without
# the layer `remote` on its include path. So what the option leaves out is tested without a build of its own.

set(farm "${PROJECT_BINARY_DIR}/layers/alone")
file(MAKE_DIRECTORY "${farm}")
foreach(layer open worker client engine depot store service history wire time fiber env base proto)
    set(folder "${PROJECT_SOURCE_DIR}/src/${layer}")
    if(layer STREQUAL proto)
        set(folder "${HF_GENERATED_DIR}/proto")
    endif()
    if(NOT EXISTS "${farm}/${layer}")
        file(CREATE_LINK "${folder}" "${farm}/${layer}" SYMBOLIC)
    endif()
endforeach()
add_library(hf_open_alone OBJECT ${HF_SOURCES_open})
target_include_directories(hf_open_alone PRIVATE "${farm}" "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(hf_open_alone PRIVATE hf_flags hf_warnings Threads::Threads)
add_dependencies(hf_open_alone hf_proto)

set(objects $<TARGET_OBJECTS:hf_open_alone>)
foreach(layer IN LISTS HF_LAYERS)
    if(NOT layer MATCHES "^(open|remote)$")
        list(APPEND objects $<TARGET_OBJECTS:hf_${layer}>)
    endif()
endforeach()
add_library(holdfast_alone SHARED ${objects})
set_target_properties(holdfast_alone PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(holdfast_alone PUBLIC Threads::Threads PRIVATE sqlite3 yajl zstd m hf_flags)
target_link_options(holdfast_alone PRIVATE -Wl,--no-undefined)

add_executable(alone_program alone/alone.c)
target_include_directories(alone_program PRIVATE "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(alone_program PRIVATE holdfast_alone hf_flags hf_test_warnings)
hf_test(build/alone TIMEOUT 300 LABELS plainonly
        COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/alone/alone.sh ${CMAKE_COMMAND} ${PROJECT_SOURCE_DIR} ${CMAKE_C_COMPILER}
                $<TARGET_FILE:alone_program> $<TARGET_FILE:holdfast_alone> ${scratch}/alone)
