# cmake --install: headers, both libraries, documents, pkg-config file, CMake package, license.

include(CMakePackageConfigHelpers)

install(DIRECTORY include/holdfast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS holdfast holdfast_static EXPORT HoldfastTargets)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES docs/promises.md docs/verbs.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs) # headers name them
install(DIRECTORY docs/guide DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md")

install(EXPORT HoldfastTargets NAMESPACE Holdfast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Holdfast)
configure_package_config_file(
    cmake/HoldfastConfig.cmake.in "${PROJECT_BINARY_DIR}/HoldfastConfig.cmake"
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Holdfast)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/HoldfastConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/HoldfastConfig.cmake" "${PROJECT_BINARY_DIR}/HoldfastConfigVersion.cmake"
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Holdfast)

# The file finds itself from where it lies, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
list(TRANSFORM HF_REMOTE_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE pc_remote)
list(JOIN pc_remote " " pc_remote)
# An array in a workflow that is larger than the page below its stack must not jump over it. Older compilers for other machines do not know it.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    set(pc_flags " -fstack-clash-protection")
endif()
if(pc_remote)
    string(APPEND pc_remote " ")
endif()
configure_file(cmake/holdfast.pc.in "${PROJECT_BINARY_DIR}/holdfast.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/holdfast.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Manual pages of the functions, from the headers.
find_program(PERL perl)
file(GLOB manual_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/holdfast/*.h")
set(manual_pages "${PROJECT_BINARY_DIR}/man/man3")
add_custom_command(
    OUTPUT "${manual_pages}/holdfast.3"
    COMMAND ${CMAKE_COMMAND} -E rm -rf "${manual_pages}"
    COMMAND ${CMAKE_COMMAND} -E make_directory "${manual_pages}"
    COMMAND ${PERL} "${PROJECT_SOURCE_DIR}/tools/man3.pl" ${PROJECT_VERSION} "${manual_pages}" ${manual_headers}
    DEPENDS "${PROJECT_SOURCE_DIR}/tools/man3.pl" ${manual_headers}
    COMMENT "Writing the manual pages"
    VERBATIM)
add_custom_target(manual ALL DEPENDS "${manual_pages}/holdfast.3")
# Everything that `cmake --install` copies: ./dev up builds this, and not the tests.
add_custom_target(installed)
add_dependencies(installed holdfast holdfast_static holdfast_program holdfast_guard holdfast_guard_static manual)
install(DIRECTORY "${manual_pages}" DESTINATION ${CMAKE_INSTALL_MANDIR} FILES_MATCHING PATTERN "*.3")
