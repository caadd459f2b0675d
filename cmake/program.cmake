# The program `holdfast`: src/main on the static library, with the headers of all layers.

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/main/*.c")
add_executable(holdfast_program ${sources})
set_target_properties(holdfast_program PROPERTIES OUTPUT_NAME holdfast RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
target_include_directories(holdfast_program PRIVATE "${PROJECT_SOURCE_DIR}/src" "${HF_GENERATED_DIR}")
target_link_libraries(holdfast_program PRIVATE holdfast_static hf_flags hf_warnings)
add_dependencies(holdfast_program hf_proto)
install(TARGETS holdfast_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
