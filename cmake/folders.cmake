# One static library per folder of sources. A folder without any .cpp becomes an interface library, so that a folder
# of headers is linked like every other.

# Sources are compiled several at a time, which halves a build: two of a folder must not give the same name to different
# things. Not so those that include themselves once for each set of vector instructions.
function(pmaptrain_compile_apart)
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" includes_itself REGEX "hwy/foreach_target.h" LIMIT_COUNT 1)
    if(includes_itself)
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON
                                  COMPILE_OPTIONS "${PMAPTRAIN_SIMD_OPTIONS}")
    endif()
  endforeach()
endfunction()

# pmaptrain_library(<target> DIRECTORY <dir> [COLD] [COLD_SOURCES <regex>] [EXCLUDE <file>...]
#                   [PUBLIC <lib>...] [PRIVATE <lib>...])
# PUBLIC: what its headers include; PRIVATE: what only its .cpp files use. COLD: no loop over elements, rows or bytes of
# data is in it, so it is optimised less. COLD_SOURCES: nor in those of its files whose paths match.
function(pmaptrain_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COLD" "DIRECTORY;COLD_SOURCES" "EXCLUDE;PUBLIC;PRIVATE")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}"
       "${CMAKE_SOURCE_DIR}/${arg_DIRECTORY}/*.cpp")
  if(arg_EXCLUDE)
    list(REMOVE_ITEM sources ${arg_EXCLUDE})
  endif()
  if(sources)
    if(arg_COLD_SOURCES)
      set(cold_sources ${sources})
      list(FILTER cold_sources INCLUDE REGEX "${arg_COLD_SOURCES}")
      list(REMOVE_ITEM sources ${cold_sources})
      add_library(${target}_cold OBJECT ${cold_sources})
      target_compile_options(${target}_cold PRIVATE ${PMAPTRAIN_COVERAGE_OPTIONS} ${PMAPTRAIN_COLD_OPTIONS})
      target_link_libraries(${target}_cold PRIVATE ${arg_PUBLIC} ${arg_PRIVATE})
      pmaptrain_use_precompiled(${target}_cold precompiled_cold)
    endif()
    add_library(${target} STATIC ${sources})
    if(arg_COLD_SOURCES)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_cold>)
    endif()
    set_property(GLOBAL APPEND PROPERTY PMAPTRAIN_LIBRARY_FILES "$<TARGET_FILE:${target}>")
    pmaptrain_compile_apart(${sources})
    target_compile_options(${target} PRIVATE ${PMAPTRAIN_COVERAGE_OPTIONS} $<$<BOOL:${arg_COLD}>:${PMAPTRAIN_COLD_OPTIONS}>)
    target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    set(precompiled precompiled)
    if(arg_COLD)
      set(precompiled precompiled_cold)
    endif()
    pmaptrain_use_precompiled(${target} ${precompiled})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_PUBLIC})
  endif()
endfunction()

# core/<name> as the library core_<name>
function(pmaptrain_folder name)
  pmaptrain_library(core_${name} DIRECTORY core/${name} ${ARGN})
endfunction()
