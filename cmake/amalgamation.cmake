# The library as one file: `./dev amalgamate`, or the target `amalgamation`. It writes amalgamation/holdfast.c, holdfast.h and holdfast.hpp
# into the build tree (tools/amalgamate.pl, docs/adr/0032). The file has the helper program for each processor, so a cross compiler is
# needed; without one the file serves this machine's processor only.

find_program(PERL perl)
find_path(HF_XXHASH_INCLUDE xxhash.h)
mark_as_advanced(PERL HF_XXHASH_INCLUDE)
set(HF_AMALGAMATION_DIR "${PROJECT_BINARY_DIR}/amalgamation")


function(hf_amalgamation)
    set(lines "version\t${PROJECT_VERSION}\n")
    foreach(root "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${HF_GENERATED_DIR}")
        string(APPEND lines "root\t${root}\n")
    endforeach()
    string(APPEND lines "inside\txxhash.h\t${HF_XXHASH_INCLUDE}/xxhash.h\n")
    set(needed "${HF_XXHASH_INCLUDE}/xxhash.h")

    file(GLOB scripts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/store/schema/*.sql")
    foreach(script IN LISTS scripts)
        cmake_path(GET script FILENAME name)
        string(REGEX REPLACE "^((depot_)?[0-9][0-9][0-9][0-9])_.*" "\\1" number "${name}") # as in schema.cmake
        string(APPEND lines "schema\thf_schema_${number}\t${script}\n")
        list(APPEND needed "${script}")
    endforeach()

    set(processors "")
    foreach(processor x86_64 aarch64)
        if(CMAKE_SYSTEM_PROCESSOR STREQUAL processor)
            set(compiler "${CMAKE_C_COMPILER}")
        else()
            find_program(HF_CC_${processor} ${processor}-linux-gnu-gcc)
            mark_as_advanced(HF_CC_${processor})
            set(compiler "${HF_CC_${processor}}")
        endif()
        if(compiler)
            hf_posix_helper_image("${compiler}" "${PROJECT_BINARY_DIR}/amalgamation_helper/${processor}" image)
            string(APPEND lines "image\t${processor}\t${image_PROGRAM}\n")
            list(APPEND needed "${image_PROGRAM}")
            list(APPEND processors ${processor})
        endif()
    endforeach()

    # What HF_WITH_REMOTE=OFF leaves out of the library has a define here, whatever this build is.
    file(GLOB_RECURSE remote CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/remote/*.c")
    set(remote ${remote} "${PROJECT_SOURCE_DIR}/src/wire/http2.c" "${PROJECT_SOURCE_DIR}/src/wire/gzip.c" "${PROJECT_SOURCE_DIR}/src/wire/tls.c")
    set(zstd "${PROJECT_SOURCE_DIR}/src/client/zstd.c")
    string(APPEND lines "unit\t-\t${HF_PROTO_SOURCE}\n")
    foreach(layer IN LISTS HF_LAYERS)
        if("${layer}" STREQUAL "remote")
            continue()
        endif()
        foreach(source IN LISTS HF_SOURCES_${layer})
            set(define "-")
            if(source IN_LIST zstd)
                set(define HF_WITH_ZSTD)
            endif()
            string(APPEND lines "unit\t${define}\t${source}\n")
            list(APPEND needed "${source}")
        endforeach()
    endforeach()
    foreach(source IN LISTS remote)
        string(APPEND lines "unit\tHF_WITH_REMOTE\t${source}\n")
        list(APPEND needed "${source}")
    endforeach()
    file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/amalgamation.txt" CONTENT "${lines}")

    file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.h" "${PROJECT_SOURCE_DIR}/src/*.def"
         "${PROJECT_SOURCE_DIR}/include/holdfast/*.h" "${PROJECT_SOURCE_DIR}/include/holdfast/*.hpp")
    file(MAKE_DIRECTORY "${HF_AMALGAMATION_DIR}")
    add_custom_command(
        OUTPUT "${HF_AMALGAMATION_DIR}/holdfast.c" "${HF_AMALGAMATION_DIR}/holdfast.h" "${HF_AMALGAMATION_DIR}/holdfast.hpp"
        COMMAND ${PERL} "${PROJECT_SOURCE_DIR}/tools/amalgamate.pl" "${PROJECT_BINARY_DIR}/amalgamation.txt" "${HF_AMALGAMATION_DIR}"
        DEPENDS "${PROJECT_SOURCE_DIR}/tools/amalgamate.pl" "${PROJECT_BINARY_DIR}/amalgamation.txt" "${HF_PROTO_SOURCE}" "${HF_PROTO_HEADER}"
                ${needed} ${headers}
        COMMENT "Writing the library as one file"
        VERBATIM)
    add_custom_target(amalgamation DEPENDS "${HF_AMALGAMATION_DIR}/holdfast.c")
    add_dependencies(amalgamation hf_proto)
    set(HF_AMALGAMATION_PROCESSORS ${processors} PARENT_SCOPE)
endfunction()
hf_amalgamation()
