# Headers that most sources include are compiled once for all sources of equal options: parsing them takes a fifth of
# the time of a unit. Only with unity builds: the preset debug shows what a source forgets to include. Only with GCC:
# ccache hashes where Clang's precompiled headers lie, so clones would not share objects.
set(PMAPTRAIN_PRECOMPILED OFF)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(PMAPTRAIN_PRECOMPILED ON)
endif()

# pmaptrain_precompiled(<name> OPTIONS <option>... LIBRARIES <lib>... HEADERS <header>...)
function(pmaptrain_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIONS;LIBRARIES;HEADERS")
  if(NOT PMAPTRAIN_PRECOMPILED)
    return()
  endif()
  set(source "${CMAKE_BINARY_DIR}/generated/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// Only its precompiled headers are used.\n")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${source}")
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# The target's sources begin with the headers of `name`. One whose options differ from the target's says
# SKIP_PRECOMPILE_HEADERS.
function(pmaptrain_use_precompiled target name)
  if(PMAPTRAIN_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM ${name})
    # A macro on which precompiled headers depend must be the same where it is used.
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
  endif()
endfunction()

set(PMAPTRAIN_COMMON_HEADERS
    <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdint> <cstring> <filesystem> <functional> <limits>
    <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <thread> <tuple>
    <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
pmaptrain_precompiled(precompiled OPTIONS ${PMAPTRAIN_COVERAGE_OPTIONS} LIBRARIES fmt::fmt
                      HEADERS ${PMAPTRAIN_COMMON_HEADERS})
pmaptrain_precompiled(precompiled_cold OPTIONS ${PMAPTRAIN_COVERAGE_OPTIONS} ${PMAPTRAIN_COLD_OPTIONS}
                      LIBRARIES fmt::fmt HEADERS ${PMAPTRAIN_COMMON_HEADERS})
