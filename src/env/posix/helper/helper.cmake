# The helper program of env/posix, as bytes inside the library.
#
#   hf_posix_helper(<target>)                                builds it for the target's machine, embeds it in <target>
#   hf_posix_helper_image(<compiler> <folder> <ret_source>)  the same for another compiler: `ret_source` is the file to
#                                                            assemble, `ret_source`_PROGRAM what it depends on
#
# The program is freestanding, so it gets no flags of ours: no sanitizer, no PIC, no stack protector, no C library. The
# file that embeds it is written into the build tree, because it names the program by its path there.

set(HF_HELPER_DIR "${CMAKE_CURRENT_LIST_DIR}")
get_filename_component(HF_HELPER_INCLUDE "${HF_HELPER_DIR}/../../.." ABSOLUTE)

function(hf_posix_helper_image compiler folder ret_source)
    set(program "${folder}/helper")
    set(source "${folder}/helper_image.S")
    file(MAKE_DIRECTORY "${folder}")
    file(GLOB parts CONFIGURE_DEPENDS "${HF_HELPER_DIR}/*.c")
    file(GLOB headers CONFIGURE_DEPENDS "${HF_HELPER_DIR}/*.h")
    add_custom_command(
        OUTPUT "${program}"
        COMMAND ${compiler} -std=c17 -D_GNU_SOURCE -Os -ffreestanding -fno-pic -fno-pie -fno-stack-protector
                -fno-asynchronous-unwind-tables -fomit-frame-pointer -U_FORTIFY_SOURCE -Wall -Wextra
                "-I${HF_HELPER_INCLUDE}" -nostdlib -static -Wl,--build-id=none -Wl,-z,noexecstack
                -Wl,-z,noseparate-code -s -o "${program}" ${parts}
        DEPENDS ${parts} ${headers}
        COMMENT "Building the helper program"
        VERBATIM)
    file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT [[
        .section .rodata
        .balign 16
        .globl hf_posix_helper_image
        .globl hf_posix_helper_image_len
        .hidden hf_posix_helper_image
        .hidden hf_posix_helper_image_len
hf_posix_helper_image:
        .incbin "@program@"
1:
        .balign 8
hf_posix_helper_image_len:
        .quad 1b - hf_posix_helper_image
        .section .note.GNU-stack,"",%progbits
]])
    set(${ret_source} "${source}" PARENT_SCOPE)
    set(${ret_source}_PROGRAM "${program}" PARENT_SCOPE)
endfunction()

function(hf_posix_helper target)
    hf_posix_helper_image("${CMAKE_C_COMPILER}" "${CMAKE_CURRENT_BINARY_DIR}/${target}_helper" source)
    set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS "${source_PROGRAM}")
    target_sources(${target} PRIVATE "${source}")
endfunction()
