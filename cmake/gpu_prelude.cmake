# What the text of generated GPU kernels begins with, as core/ops/fused/gpu_source.h has it, embedded into <target>: the
# headers that define an element's work, without what they include.
function(pmaptrain_embed_gpu_prelude target)
  set(PMAPTRAIN_GPU_PRELUDE "")
  foreach(file IN ITEMS core/ops/fused/prelude.cuh core/base/bf16.h core/ops/support/arithmetic.h
                        core/ops/elementwise/functors.h core/ops/cast/convert.h core/ops/reduce/reducers.h
                        core/ops/reduce/parts.cuh core/ops/fused_columns/shifted.cuh core/ops/fused_rows/softmax.cuh
                        core/ops/fused_rows/rows.cuh core/ops/fused/elements.cuh)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${file}")
    file(READ "${CMAKE_SOURCE_DIR}/${file}" text)
    if(file MATCHES "\\.h$")
      string(REGEX REPLACE "#(pragma once|include [<\"][^>\"]*[>\"])\n" "" text "${text}")
    endif()
    string(APPEND PMAPTRAIN_GPU_PRELUDE "${text}\n")
  endforeach()
  configure_file("${CMAKE_SOURCE_DIR}/cmake/gpu_prelude.cpp.in" "${CMAKE_BINARY_DIR}/generated/gpu_prelude.cpp" @ONLY)
  target_sources(${target} PRIVATE "${CMAKE_BINARY_DIR}/generated/gpu_prelude.cpp")
endfunction()
