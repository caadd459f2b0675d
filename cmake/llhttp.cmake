# llhttp, the reader of HTTP/1.1: three C files that Debian ships beside node's packages. In strict mode a lone CR does not end a field.
#
#   hf_llhttp(<target>)   the target includes <llhttp.h>; the objects are those of hf_llhttp

find_path(HF_LLHTTP_SOURCE api.c PATHS /usr/share/llhttp /usr/local/share/llhttp NO_DEFAULT_PATH)
find_path(HF_LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp /usr/include/llhttp /usr/local/include /usr/include NO_DEFAULT_PATH)
mark_as_advanced(HF_LLHTTP_SOURCE HF_LLHTTP_INCLUDE)
if(NOT HF_LLHTTP_SOURCE OR NOT HF_LLHTTP_INCLUDE)
    message(FATAL_ERROR "llhttp was not found (Debian: node-llhttp)")
endif()
add_library(hf_llhttp OBJECT "${HF_LLHTTP_SOURCE}/api.c" "${HF_LLHTTP_SOURCE}/http.c" "${HF_LLHTTP_SOURCE}/llhttp.c")
target_include_directories(hf_llhttp SYSTEM PRIVATE "${HF_LLHTTP_INCLUDE}")
target_compile_definitions(hf_llhttp PRIVATE LLHTTP_STRICT_MODE=1)
target_compile_options(hf_llhttp PRIVATE -w)
target_link_libraries(hf_llhttp PRIVATE hf_flags)

function(hf_llhttp target)
    target_include_directories(${target} SYSTEM PRIVATE "${HF_LLHTTP_INCLUDE}")
endfunction()
