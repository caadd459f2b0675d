# The program `holdfast`: src/main on the static library, with the headers of the layers that it may use: files at rest are looked at by
# inspect, and the engine is reached through open.

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/main/*.c")
add_executable(holdfast_program ${sources})
set_target_properties(holdfast_program PROPERTIES OUTPUT_NAME holdfast RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
hf_layer_of_program(holdfast_program main USES inspect open server store service history wire fiber env base PROTO)
target_link_libraries(holdfast_program PRIVATE holdfast_server holdfast_static hf_flags hf_warnings)
add_dependencies(holdfast_program hf_proto)
install(TARGETS holdfast_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
