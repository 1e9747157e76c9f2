# core/base/version.h and what defines its commit, generated into the build tree.

set(PMAPTRAIN_COMPILER "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
string(TOLOWER "${CMAKE_BUILD_TYPE}" PMAPTRAIN_BUILD_TYPE)
set(PMAPTRAIN_KERNEL_LIBRARY "reference kernels")
if(NOT PMAPTRAIN_REFERENCE_KERNELS)
  set(PMAPTRAIN_KERNEL_LIBRARY "oneDNN ${dnnl_VERSION}")
endif()

# Git's log of HEAD grows with each commit and checkout, after which this is configured anew.
set(PMAPTRAIN_COMMIT "")
set(PMAPTRAIN_COMMIT_DATE "")
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(COMMAND "${GIT_EXECUTABLE}" rev-parse --short=12 HEAD WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
                  OUTPUT_VARIABLE PMAPTRAIN_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND "${GIT_EXECUTABLE}" log -1 --format=%cs WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
                  OUTPUT_VARIABLE PMAPTRAIN_COMMIT_DATE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND "${GIT_EXECUTABLE}" rev-parse --path-format=absolute --git-path logs/HEAD
                  WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
                  OUTPUT_VARIABLE log_of_head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(EXISTS "${log_of_head}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${log_of_head}")
  endif()
endif()

set(generated "${CMAKE_BINARY_DIR}/generated")
configure_file("${CMAKE_SOURCE_DIR}/cmake/version.h.in" "${generated}/core/base/version.h" @ONLY)
# Apart from the header, so that a commit compiles one source again.
configure_file("${CMAKE_SOURCE_DIR}/cmake/version.cpp.in" "${generated}/version.cpp" @ONLY)

add_library(pmaptrain_version STATIC "${generated}/version.cpp")
set_target_properties(pmaptrain_version PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(pmaptrain_version PUBLIC "${generated}")
