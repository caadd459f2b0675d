# The library once more, with seeded bugs that sleep until a test wakes one (src/base/canary.h), and the model tests linked with it; the
# models of the engine, of the store and of the worker are the simulator, its images of power cuts, and the two storms. unit/model/canaries runs them. Plain builds only.

set(objects "") # of all layers: those that have seeded bugs are compiled again
foreach(layer IN LISTS HF_LAYERS)
    if(layer MATCHES "^(fiber|store|depot|run|ledger|engine|worker|remote)$")
        get_target_property(includes hf_${layer} INCLUDE_DIRECTORIES)
        add_library(hf_${layer}_canary OBJECT ${HF_SOURCES_${layer}})
        target_include_directories(hf_${layer}_canary PRIVATE ${includes})
        target_compile_definitions(hf_${layer}_canary PRIVATE HF_CANARIES=1)
        target_link_libraries(hf_${layer}_canary PRIVATE hf_flags hf_warnings Threads::Threads)
        add_dependencies(hf_${layer}_canary hf_proto)
        list(APPEND objects $<TARGET_OBJECTS:hf_${layer}_canary>)
    else()
        list(APPEND objects $<TARGET_OBJECTS:hf_${layer}>)
    endif()
endforeach()
foreach(part IN LISTS HF_APART)
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
endforeach()
hf_store_schema(hf_store_canary)
add_library(holdfast_canary STATIC ${objects})
set_target_properties(holdfast_canary PROPERTIES LINKER_LANGUAGE C)

set(canary_models scope chan keylock flight cache depot life crew hung blocks engine images storm charges)
if(HF_WITH_REMOTE)
    list(APPEND canary_models remote)
endif()
foreach(model IN LISTS canary_models)
    set(model_sources unit/model/${model}_model_test.c)
    if(model STREQUAL engine)
        file(GLOB disk CONFIGURE_DEPENDS support/vfs*.c)
        set(model_sources sim/engine_sim_test.c ${engine_sim_sources} ${disk})
    elseif(model STREQUAL depot)
        file(GLOB disk CONFIGURE_DEPENDS support/vfs*.c)
        list(APPEND model_sources ${disk})
    elseif(model STREQUAL images)
        set(model_sources sim/engine_crash_test.c ${engine_sim_sources} ${disk})
    elseif(model STREQUAL storm)
        set(model_sources sim/worker_storm_test.c support/storm.c support/storm_run.c support/storm_own.c support/eras.c)
    elseif(model STREQUAL remote)
        set(model_sources sim/remote_sim_test.c $<TARGET_OBJECTS:hf_llhttp>)
        foreach(part IN LISTS HF_OUTSIDE) # the door
            list(APPEND model_sources $<TARGET_OBJECTS:${part}>)
        endforeach()
    elseif(model STREQUAL charges)
        set(model_sources sim/worker_charges_test.c support/till.c support/eras.c)
    endif()
    add_executable(canary_${model} ${model_sources} support/support.c)
    target_compile_definitions(canary_${model} PRIVATE HF_CANARIES=1
                                                       HF_ZONES="${CMAKE_CURRENT_SOURCE_DIR}/fixtures/zoneinfo"
                                                       HF_FIXTURES="${CMAKE_CURRENT_SOURCE_DIR}/fixtures")
    target_include_directories(canary_${model} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
                                                       "${CMAKE_CURRENT_SOURCE_DIR}" "${HF_GENERATED_DIR}")
    add_dependencies(canary_${model} hf_proto)
    target_include_directories(canary_${model} SYSTEM PRIVATE "${CMOCKA_INCLUDE_DIR}")
    target_link_libraries(canary_${model} PRIVATE holdfast_canary hf_flags hf_test_warnings "${CMOCKA_LIBRARY}"
                                                  sqlite3 yajl zstd ${HF_REMOTE_LIBRARIES} Threads::Threads ${CMAKE_DL_LIBS} m)
    set_target_properties(canary_${model} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/canaries")
    add_dependencies(test_unit_model_canaries canary_${model})
endforeach()
target_compile_definitions(
    test_unit_model_canaries
    PRIVATE HF_CANARY_DIR="${CMAKE_CURRENT_BINARY_DIR}/canaries" HF_CANARY_LIBRARY="$<TARGET_FILE:holdfast_canary>"
            HF_PLAIN_LIBRARY="$<TARGET_FILE:holdfast_static>")
add_dependencies(test_unit_model_canaries holdfast_static holdfast_canary)
