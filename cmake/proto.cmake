# proto/**/*.proto becomes one header and one source in the build tree: generated/proto/pb.h, generated/proto/pb.c. A third file,
# generated/proto/files.c, has the descriptors for the server's reflection.
#
#   hf_proto_sources(<target>)   compiles the source into a target, once for the whole library
#
# A layer that includes "proto/pb.h" says so: hf_layer(engine USES wire ... PROTO). protogen runs on the machine that
# builds, so it gets no flags of the library: no sanitizer, no hardening.

set(HF_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
set(HF_PROTO_HEADER "${HF_GENERATED_DIR}/proto/pb.h")
set(HF_PROTO_SOURCE "${HF_GENERATED_DIR}/proto/pb.c")
set(HF_PROTO_FILES "${HF_GENERATED_DIR}/proto/files.c")
file(MAKE_DIRECTORY "${HF_GENERATED_DIR}/proto")

add_executable(protogen EXCLUDE_FROM_ALL tools/protogen/protogen.c tools/protogen/read.c tools/protogen/write.c
               tools/protogen/describe.c)
target_compile_definitions(protogen PRIVATE _GNU_SOURCE)
target_include_directories(protogen PRIVATE tools)
target_link_libraries(protogen PRIVATE hf_warnings)

file(GLOB_RECURSE protos CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/proto/*.proto")
list(SORT protos)
add_custom_command(
    OUTPUT "${HF_PROTO_HEADER}" "${HF_PROTO_SOURCE}" "${HF_PROTO_FILES}"
    COMMAND protogen "${HF_GENERATED_DIR}" ${protos}
    DEPENDS protogen ${protos}
    COMMENT "Generating C from proto/"
    VERBATIM)
add_custom_target(hf_proto DEPENDS "${HF_PROTO_HEADER}" "${HF_PROTO_SOURCE}")

function(hf_proto_sources target)
    target_sources(${target} PRIVATE "${HF_PROTO_SOURCE}")
endfunction()
