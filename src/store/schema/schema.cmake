# hf_store_schema(<target>): embeds each schema/NNNN_*.sql into the target as a NUL-terminated text, hf_schema_NNNN, and each
# schema/depot_NNNN_*.sql as hf_schema_depot_NNNN.
#
# The file that does so is written into the build tree, because it names the scripts by their paths.

set(HF_SCHEMA_DIR "${CMAKE_CURRENT_LIST_DIR}")

function(hf_store_schema target)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}_schema.S")
    file(GLOB scripts CONFIGURE_DEPENDS "${HF_SCHEMA_DIR}/*.sql")
    set(content "        .section .rodata\n")
    foreach(script IN LISTS scripts)
        cmake_path(GET script FILENAME name)
        string(REGEX REPLACE "^((depot_)?[0-9][0-9][0-9][0-9])_.*" "\\1" number "${name}")
        string(APPEND content "        .globl hf_schema_${number}\n        .hidden hf_schema_${number}\n"
                              "hf_schema_${number}:\n        .incbin \"${script}\"\n        .byte 0\n")
    endforeach()
    string(APPEND content "        .section .note.GNU-stack,\"\",%progbits\n")
    file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT "${content}")
    set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS "${scripts}")
    target_sources(${target} PRIVATE "${source}")
endfunction()
