# The simulator of the engine: a library for the tests sim/engine_sim and sim/engine_crash, and the programs behind ./dev sim and
# ./dev campaign.

file(GLOB engine_sim_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/sim/engine/*.c")
list(FILTER engine_sim_sources EXCLUDE REGEX "/(main|campaign)\\.c$")
add_library(hf_engine_sim STATIC ${engine_sim_sources})
target_link_libraries(hf_engine_sim PUBLIC hf_test_support)
target_compile_definitions(hf_engine_sim PUBLIC HF_ZONES="${CMAKE_CURRENT_SOURCE_DIR}/fixtures/zoneinfo"
                                                HF_FIXTURES="${CMAKE_CURRENT_SOURCE_DIR}/fixtures")
foreach(test engine_sim engine_crash)
    target_link_libraries(test_sim_${test} PRIVATE hf_engine_sim)
endforeach()

add_executable(hf_sim EXCLUDE_FROM_ALL sim/engine/main.c)
target_link_libraries(hf_sim PRIVATE hf_engine_sim)
add_executable(hf_campaign EXCLUDE_FROM_ALL sim/engine/campaign.c)
target_link_libraries(hf_campaign PRIVATE hf_engine_sim)
