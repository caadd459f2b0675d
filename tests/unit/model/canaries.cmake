# The library once more, with seeded bugs in src/fiber, src/store and src/engine that sleep until a test wakes one
# (src/base/canary.h), and the model tests linked with it; the models of the engine and of the store are the simulator and its
# images of power cuts. unit/model/canaries runs them. Plain builds only.

get_target_property(fiber_includes hf_fiber INCLUDE_DIRECTORIES)
add_library(hf_fiber_canary OBJECT ${HF_SOURCES_fiber})
target_include_directories(hf_fiber_canary PRIVATE ${fiber_includes})
target_compile_definitions(hf_fiber_canary PRIVATE HF_CANARIES=1)
target_link_libraries(hf_fiber_canary PRIVATE hf_flags hf_warnings Threads::Threads)

get_target_property(store_includes hf_store INCLUDE_DIRECTORIES)
add_library(hf_store_canary OBJECT ${HF_SOURCES_store})
target_include_directories(hf_store_canary PRIVATE ${store_includes})
target_compile_definitions(hf_store_canary PRIVATE HF_CANARIES=1)
target_link_libraries(hf_store_canary PRIVATE hf_flags hf_warnings Threads::Threads)
hf_store_schema(hf_store_canary)

get_target_property(engine_includes hf_engine INCLUDE_DIRECTORIES)
add_library(hf_engine_canary OBJECT ${HF_SOURCES_engine})
target_include_directories(hf_engine_canary PRIVATE ${engine_includes})
target_compile_definitions(hf_engine_canary PRIVATE HF_CANARIES=1)
target_link_libraries(hf_engine_canary PRIVATE hf_flags hf_warnings Threads::Threads)
add_dependencies(hf_engine_canary hf_proto)

add_library(
    holdfast_canary STATIC
    $<TARGET_OBJECTS:hf_base> $<TARGET_OBJECTS:hf_env> $<TARGET_OBJECTS:hf_fiber_canary> $<TARGET_OBJECTS:hf_wire>
    $<TARGET_OBJECTS:hf_history> $<TARGET_OBJECTS:hf_service> $<TARGET_OBJECTS:hf_store_canary>
    $<TARGET_OBJECTS:hf_engine_canary> $<TARGET_OBJECTS:hf_client>
    $<TARGET_OBJECTS:hf_worker> $<TARGET_OBJECTS:hf_open>)
set_target_properties(holdfast_canary PROPERTIES LINKER_LANGUAGE C)

foreach(model scope chan keylock flight life crew hung engine images)
    set(model_sources unit/model/${model}_model_test.c)
    if(model STREQUAL engine)
        file(GLOB disk CONFIGURE_DEPENDS support/vfs*.c)
        set(model_sources sim/engine_sim_test.c ${engine_sim_sources} ${disk})
    elseif(model STREQUAL images)
        set(model_sources sim/engine_crash_test.c ${engine_sim_sources} ${disk})
    endif()
    add_executable(canary_${model} ${model_sources} support/support.c)
    target_compile_definitions(canary_${model} PRIVATE HF_CANARIES=1)
    target_include_directories(canary_${model} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
                                                       "${CMAKE_CURRENT_SOURCE_DIR}" "${HF_GENERATED_DIR}")
    add_dependencies(canary_${model} hf_proto)
    target_include_directories(canary_${model} SYSTEM PRIVATE "${CMOCKA_INCLUDE_DIR}")
    target_link_libraries(canary_${model} PRIVATE holdfast_canary hf_flags hf_test_warnings "${CMOCKA_LIBRARY}"
                                                  jansson sqlite3 Threads::Threads ${CMAKE_DL_LIBS} m)
    set_target_properties(canary_${model} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/canaries")
    add_dependencies(test_unit_model_canaries canary_${model})
endforeach()
target_compile_definitions(
    test_unit_model_canaries
    PRIVATE HF_CANARY_DIR="${CMAKE_CURRENT_BINARY_DIR}/canaries" HF_CANARY_LIBRARY="$<TARGET_FILE:holdfast_canary>"
            HF_PLAIN_LIBRARY="$<TARGET_FILE:holdfast_static>")
add_dependencies(test_unit_model_canaries holdfast_static holdfast_canary)
