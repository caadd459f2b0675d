# The program `holdfast`: src/main on the static library, with the headers of the layers that it may use: files at rest are looked at by
# inspect, and the engine is reached through open.
#
# The whole library is inside, and its public functions are exported under the shared library's name: a plugin that needs
# libholdfast.so finds this program instead of a second Holdfast (docs/adr/0029).

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/main/*.c")
add_executable(holdfast_program ${sources})
set_target_properties(holdfast_program PROPERTIES OUTPUT_NAME holdfast RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
hf_layer_of_program(holdfast_program main USES trial worker client inspect open server depot store service history wire fiber env base PROTO)
target_link_libraries(holdfast_program PRIVATE holdfast_server -Wl,--whole-archive holdfast_static -Wl,--no-whole-archive
                      ${CMAKE_DL_LIBS} hf_flags hf_warnings)
set_target_properties(holdfast_program PROPERTIES ENABLE_EXPORTS ON)
target_link_options(holdfast_program PRIVATE -Wl,-soname,libholdfast.so.${PROJECT_VERSION_MAJOR})
add_dependencies(holdfast_program hf_proto)
target_compile_definitions(holdfast_program PRIVATE HF_LIBDIR="${CMAKE_INSTALL_LIBDIR}")

# The determinism guard (holdfast/guard.h): an object to preload, and an archive to link before the static library. Not a part of the library.
add_library(holdfast_guard SHARED "${PROJECT_SOURCE_DIR}/src/guard/guard.c")
add_library(holdfast_guard_static STATIC "${PROJECT_SOURCE_DIR}/src/guard/guard.c")
set_target_properties(holdfast_guard_static PROPERTIES OUTPUT_NAME holdfast_guard)
foreach(guard holdfast_guard holdfast_guard_static)
    target_include_directories(${guard} PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(${guard} PRIVATE hf_warnings ${CMAKE_DL_LIBS})
    # Its functions are those of libc: the compiler must not make one of another.
    target_compile_options(${guard} PRIVATE -O2 -g -fPIC -fno-builtin -U_FORTIFY_SOURCE -fno-sanitize=all)
endforeach()
add_dependencies(holdfast_program holdfast_guard)
install(TARGETS holdfast_guard holdfast_guard_static)
# gdb loads it by itself with the library (tools/gdb/holdfast.py).
# It is found by the path that the library has once it is installed, so the prefix is the one of the installation.
install(CODE "file(INSTALL \"${PROJECT_SOURCE_DIR}/tools/gdb/holdfast.py\" TYPE FILE
    DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/gdb/auto-load\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\"
    RENAME \"libholdfast.so.${PROJECT_VERSION}-gdb.py\")")
install(FILES ${PROJECT_SOURCE_DIR}/tools/gdb/holdfast.py DESTINATION ${CMAKE_INSTALL_DATADIR}/holdfast/gdb)
install(TARGETS holdfast_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Its manual has a list of the commands, which the program writes itself.
if(NOT CMAKE_CROSSCOMPILING AND NOT HF_SANITIZE)
    add_custom_command(TARGET holdfast_program POST_BUILD
                       COMMAND "${PROJECT_SOURCE_DIR}/tools/man.sh" $<TARGET_FILE:holdfast_program>
                               "${PROJECT_SOURCE_DIR}/docs/man/holdfast.1.in" "${PROJECT_BINARY_DIR}/man/holdfast.1")
    install(FILES "${PROJECT_BINARY_DIR}/man/holdfast.1" DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    # So are its completions; zsh uses those of bash.
    add_custom_command(TARGET holdfast_program POST_BUILD
                       COMMAND $<TARGET_FILE:holdfast_program> completion >"${PROJECT_BINARY_DIR}/holdfast.bash")
    install(FILES "${PROJECT_BINARY_DIR}/holdfast.bash" DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME holdfast)
    install(FILES contrib/_holdfast DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
install(FILES docs/man/holdfast.conf.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES contrib/holdfast.service contrib/holdfast.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/contrib)

# The program with everything inside but glibc: plugins are loaded, so that one stays shared. A plugin must not find the program's
# SQLite or OpenSSL in place of its own: the symbols of these libraries are not exported. `ninja holdfast_standalone`, ./dev package --standalone.
add_executable(holdfast_standalone EXCLUDE_FROM_ALL $<TARGET_OBJECTS:holdfast_program>)
set_target_properties(holdfast_standalone PROPERTIES OUTPUT_NAME holdfast LINKER_LANGUAGE C ENABLE_EXPORTS ON
                                                     RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/standalone")
add_dependencies(holdfast_standalone holdfast_program holdfast_server holdfast_static)
set(standalone_archives sqlite3 yajl_s zstd nghttp2 ssl crypto z)
list(TRANSFORM standalone_archives PREPEND "-l" OUTPUT_VARIABLE standalone_libraries)
list(TRANSFORM standalone_archives REPLACE "(.+)" "lib\\1.a" OUTPUT_VARIABLE standalone_hidden)
list(JOIN standalone_hidden ":" standalone_hidden)
target_link_libraries(
    holdfast_standalone PRIVATE $<TARGET_FILE:holdfast_server> -Wl,--whole-archive $<TARGET_FILE:holdfast_static> -Wl,--no-whole-archive
                                -Wl,-Bstatic ${standalone_libraries} -Wl,-Bdynamic -lm ${CMAKE_DL_LIBS} -pthread hf_flags)
target_link_options(holdfast_standalone PRIVATE -Wl,-soname,libholdfast.so.${PROJECT_VERSION_MAJOR} -static-libgcc
                    -Wl,--exclude-libs,${standalone_hidden})
set_target_properties(holdfast_standalone PROPERTIES LINK_DEPENDS "$<TARGET_FILE:holdfast_server>;$<TARGET_FILE:holdfast_static>")
