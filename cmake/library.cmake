# The two libraries, made of the same objects. Only what is marked HF_API leaves the shared one.

set(debian_z zlib1g-dev)
set(debian_ssl libssl-dev)
set(debian_crypto libssl-dev)
foreach(needed sqlite3 yajl zstd nghttp2 z ssl crypto)
    find_library(HF_LIB_${needed} ${needed})
    mark_as_advanced(HF_LIB_${needed})
    if(NOT debian_${needed})
        set(debian_${needed} "lib${needed}-dev")
    endif()
    if(NOT HF_LIB_${needed})
        message(FATAL_ERROR "lib${needed} was not found (Debian: ${debian_${needed}})")
    endif()
endforeach()

set(objects "")
foreach(layer IN LISTS HF_LAYERS)
    list(APPEND objects $<TARGET_OBJECTS:hf_${layer}>)
endforeach()
foreach(part IN LISTS HF_APART)
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
endforeach()
set(HF_NETWORK_LIBRARIES nghttp2 ssl crypto z)
set(HF_REMOTE_LIBRARIES "")
if(HF_WITH_REMOTE)
    set(HF_REMOTE_LIBRARIES ${HF_NETWORK_LIBRARIES})
endif()

add_library(holdfast SHARED ${objects})
add_library(holdfast_static STATIC ${objects})
add_library(Holdfast::holdfast ALIAS holdfast)
add_library(Holdfast::holdfast_static ALIAS holdfast_static)

foreach(library holdfast holdfast_static)
    set_target_properties(${library} PROPERTIES OUTPUT_NAME holdfast LINKER_LANGUAGE C)
    target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${library} PUBLIC Threads::Threads)
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
        target_compile_options(${library} INTERFACE $<INSTALL_INTERFACE:-fstack-clash-protection>) # as holdfast.pc
    endif()
    # By their bare names: an installed Holdfast must not name the folders of the machine that built it. A program that links
    # everything statically needs m for SQLite's functions. build/needed knows what the shared library may need.
    # Debian's yajl has another name as a static library.
    set(yajl $<IF:$<STREQUAL:${library},holdfast_static>,yajl_s,yajl>)
    target_link_libraries(${library} PRIVATE sqlite3 ${yajl} zstd ${HF_REMOTE_LIBRARIES} m)
endforeach()

set_target_properties(holdfast PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_link_libraries(holdfast PRIVATE $<BUILD_INTERFACE:hf_flags>)
target_link_options(holdfast PRIVATE -Wl,-Bsymbolic-functions -Wl,-z,relro,-z,now,-z,noexecstack)
if(NOT HF_SANITIZE)
    target_link_options(holdfast PRIVATE -Wl,--no-undefined) # with a sanitizer the program brings its runtime
endif()
# Calls and threads that are still inside must find the code: the library stays loaded.
target_link_options(holdfast PRIVATE -Wl,-z,nodelete)

# The server's library: what listens. Only the program links it, and what it needs beyond the library itself.
set(objects "")
foreach(part IN LISTS HF_OUTSIDE)
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
endforeach()
add_library(holdfast_server STATIC ${objects} $<TARGET_OBJECTS:hf_llhttp>)
set_target_properties(holdfast_server PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(holdfast_server PUBLIC holdfast_static PRIVATE ${HF_NETWORK_LIBRARIES})
