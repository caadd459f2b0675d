# hf_layer(<name> [USES <layer>...] [WITHOUT <folder>...] [APART <file>...] [LISTENS <file>...] [OUTSIDE] [PROTO]): the sources under src/<name> as one
# object library, hf_<name>, but for the folders that hold programs of their own. PROTO: it includes "proto/pb.h" (cmake/proto.cmake).
# Files that are APART need libraries that a program with Holdfast inside does not link if HF_WITH_REMOTE is off: they are another
# object library, hf_<name>_apart, which belongs to the library if it is on and to the server's library if it is off. Files of
# LISTENS (hf_<name>_listens), and a layer that is OUTSIDE, are not part of the library at all, but of the server's.
#
# Its include path is include/ and one folder of the build tree, layers/<name>, with a link for each layer that it may
# use and one for itself. There is nothing else to find, so a layer cannot include what it does not name under USES.

set(HF_LAYERS "")
set(HF_OUTSIDE "") # object libraries of the server's library
set(HF_APART "") # object libraries of the library, beside those of its layers
set(HF_LAYER_TABLE "") # lines "<name>\t<layers it may include, itself too>", for the tools that check them

# The folder for layer `name`, and its line in the table; sets `farm`.
macro(hf_layer_farm)
    set(farm "${PROJECT_BINARY_DIR}/layers/${name}")
    set(seen ${arg_USES} ${name})
    if(arg_PROTO)
        list(APPEND seen proto)
    endif()

    file(MAKE_DIRECTORY "${farm}")
    file(GLOB links LIST_DIRECTORIES true RELATIVE "${farm}" "${farm}/*")
    foreach(link IN LISTS links)
        if(NOT link IN_LIST seen AND IS_SYMLINK "${farm}/${link}")
            file(REMOVE "${farm}/${link}") # a layer that is no longer used
        endif()
    endforeach()
    foreach(layer IN LISTS seen)
        set(folder "${PROJECT_SOURCE_DIR}/src/${layer}")
        if(layer STREQUAL proto)
            set(folder "${HF_GENERATED_DIR}/proto")
        endif()
        if(NOT EXISTS "${farm}/${layer}")
            file(CREATE_LINK "${folder}" "${farm}/${layer}" SYMBOLIC)
        endif()
    endforeach()

    list(JOIN seen " " seen_text)
    set(HF_LAYER_TABLE "${HF_LAYER_TABLE}${name}\t${seen_text}\n" PARENT_SCOPE)
endmacro()

# hf_layer_of_program(<target> <name> USES ... [PROTO]): the same include path for a program under src/<name>.
function(hf_layer_of_program target name)
    cmake_parse_arguments(PARSE_ARGV 2 arg "PROTO" "" "USES")
    hf_layer_farm()
    target_include_directories(${target} PRIVATE "${farm}" "${PROJECT_SOURCE_DIR}/include")
endfunction()

function(hf_layer name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "PROTO;OUTSIDE" "" "USES;WITHOUT;APART;LISTENS")
    hf_layer_farm()

    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.c"
         "${PROJECT_SOURCE_DIR}/src/${name}/*.S")
    foreach(folder IN LISTS arg_WITHOUT)
        list(FILTER sources EXCLUDE REGEX "/src/${name}/${folder}/")
    endforeach()
    if(NOT sources)
        message(STATUS "layer ${name} has no sources yet")
        return()
    endif()
    set(apart "")
    foreach(file IN LISTS arg_APART)
        list(APPEND apart "${PROJECT_SOURCE_DIR}/src/${name}/${file}")
        list(REMOVE_ITEM sources "${PROJECT_SOURCE_DIR}/src/${name}/${file}")
    endforeach()
    set(listens "")
    foreach(file IN LISTS arg_LISTENS)
        list(APPEND listens "${PROJECT_SOURCE_DIR}/src/${name}/${file}")
        list(REMOVE_ITEM sources "${PROJECT_SOURCE_DIR}/src/${name}/${file}")
    endforeach()
    set(libraries hf_${name})
    add_library(hf_${name} OBJECT ${sources})
    if(listens)
        add_library(hf_${name}_listens OBJECT ${listens})
        list(APPEND libraries hf_${name}_listens)
        list(APPEND HF_OUTSIDE hf_${name}_listens)
        set(HF_OUTSIDE ${HF_OUTSIDE} PARENT_SCOPE)
    endif()
    if(apart)
        add_library(hf_${name}_apart OBJECT ${apart})
        list(APPEND libraries hf_${name}_apart)
    endif()
    foreach(library IN LISTS libraries)
        target_include_directories(${library} PRIVATE "${farm}" "${PROJECT_SOURCE_DIR}/include")
        target_link_libraries(${library} PRIVATE hf_flags hf_warnings Threads::Threads)
        if(arg_PROTO)
            add_dependencies(${library} hf_proto)
        endif()
    endforeach()
    set(HF_SOURCES_${name} ${sources} PARENT_SCOPE)
    if(arg_OUTSIDE)
        set(HF_OUTSIDE ${HF_OUTSIDE} hf_${name} PARENT_SCOPE)
        return()
    endif()
    set(HF_LAYERS ${HF_LAYERS} ${name} PARENT_SCOPE)
    if(apart AND HF_WITH_REMOTE)
        set(HF_APART ${HF_APART} hf_${name}_apart PARENT_SCOPE)
    elseif(apart)
        set(HF_OUTSIDE ${HF_OUTSIDE} hf_${name}_apart PARENT_SCOPE)
    endif()
endfunction()
