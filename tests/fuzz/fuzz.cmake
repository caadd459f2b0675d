# The fuzz targets: tests/fuzz/<name>.c each. The preset `fuzz` makes fuzz_<name> with libFuzzer, which ./dev runs. Every other build
# makes fuzz_replay_<name>, and a test fuzz/<name> that gives it the inputs of corpus/<name> and of crashes/<name>.

set(fuzz_dir "${CMAKE_CURRENT_SOURCE_DIR}/fuzz")
set(fuzz_names codec store token admin text cron zone json where http2 grpc)
if(HF_WITH_REMOTE)
    list(APPEND fuzz_names remote)
endif()
set(fuzz_programs "") # lines "<name>\t<program>", for ./dev

# Inputs are fields of a message: mutate.c changes them. The others are text, or a file.
set(fuzz_of_fields codec store token admin)
set(fuzz_store_with fuzz/drive.c fuzz/rows.c)

foreach(name IN LISTS fuzz_names)
    set(target fuzz_replay_${name})
    set(sources fuzz/${name}.c ${fuzz_${name}_with} fuzz/replay.c)
    if(HF_FUZZ)
        set(target fuzz_${name})
        set(sources fuzz/${name}.c ${fuzz_${name}_with})
        if(name IN_LIST fuzz_of_fields)
            list(APPEND sources fuzz/mutate.c)
        endif()
        string(APPEND fuzz_programs "${name}\t$<TARGET_FILE:${target}>\n")
    endif()
    add_executable(${target} ${sources})
    target_link_libraries(${target} PRIVATE hf_test_support)
    if(HF_FUZZ)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
        hf_labels_fit("" fit)
        if(fit)
            hf_test(fuzz/${name} TIMEOUT 300 COMMAND ${target} ${fuzz_dir}/corpus/${name} ${fuzz_dir}/crashes/${name})
        else()
            set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
        endif()
    endif()
endforeach()
if(HF_FUZZ)
    file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/fuzz_programs.txt" CONTENT "${fuzz_programs}")
endif()

# The inputs that all of this began with.
add_executable(fuzz_seeds EXCLUDE_FROM_ALL fuzz/seeds.c)
target_link_libraries(fuzz_seeds PRIVATE hf_test_support)
