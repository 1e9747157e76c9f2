# What is installed, and packages for Debian by CPack. scripts/package makes them.

set(private_libraries lib/pmaptrain)
set(documents share/doc/pmaptrain)

set_target_properties(pmaptrain PROPERTIES INSTALL_RPATH "\$ORIGIN/../${private_libraries}")
install(TARGETS pmaptrain RUNTIME DESTINATION bin COMPONENT program)
# What scripts/bundle takes, which copies the libraries itself.
set_target_properties(pmaptrain_tests PROPERTIES INSTALL_RPATH "\$ORIGIN/../${private_libraries}")
install(TARGETS pmaptrain pmaptrain_tests RUNTIME DESTINATION bin COMPONENT bundle EXCLUDE_FROM_ALL)

# Debian 12 has no oneDNN 3: the one that scripts/bootstrap unpacked comes along, in a folder where nobody else finds it.
if(NOT PMAPTRAIN_REFERENCE_KERNELS AND dnnl_DIR MATCHES "^${CMAKE_SOURCE_DIR}/third_party/")
  set(onednn "${CMAKE_SOURCE_DIR}/third_party/onednn")
  file(REAL_PATH "${onednn}/lib/libdnnl.so.3" library)
  install(FILES "${library}" DESTINATION ${private_libraries} RENAME libdnnl.so.3 COMPONENT program)
  install(FILES "${onednn}/share/doc/onednn/LICENSE" "${onednn}/share/doc/onednn/THIRD-PARTY-PROGRAMS"
          DESTINATION ${documents}/onednn COMPONENT program)
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${private_libraries}/libdnnl.so.3\" COMMAND_ERROR_IS_FATAL ANY)"
          COMPONENT program)
endif()

install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" DESTINATION ${documents} RENAME copyright COMPONENT program)
install(FILES "${CMAKE_SOURCE_DIR}/README.md" DESTINATION ${documents} COMPONENT program)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/docs/" DESTINATION ${documents}/docs COMPONENT program)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/configs/" DESTINATION ${documents}/examples COMPONENT program)

# The manual page, and completion where Debian's shells look for it: the installed program's own.
install(CODE [[
  function(pmaptrain_print path)
    set(file "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${path}")
    message(STATUS "Installing: ${file}")
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY "${folder}")
    execute_process(COMMAND "$<TARGET_FILE:pmaptrain>" ${ARGN} OUTPUT_FILE "${file}" COMMAND_ERROR_IS_FATAL ANY)
    file(CHMOD "${file}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endfunction()
  pmaptrain_print(share/man/man1/pmaptrain.1 help --man)
  execute_process(COMMAND gzip --force --best --no-name "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/man/man1/pmaptrain.1"
                  COMMAND_ERROR_IS_FATAL ANY)
  pmaptrain_print(share/bash-completion/completions/pmaptrain completion bash)
  pmaptrain_print(share/zsh/vendor-completions/_pmaptrain completion zsh)
  pmaptrain_print(share/fish/vendor_completions.d/pmaptrain.fish completion fish)
]] COMPONENT program)

set(PMAPTRAIN_MAINTAINER "The pmaptrain maintainers <maintainers@localhost>" CACHE STRING
    "Who maintains the packages: a name and an address, for the field Maintainer")
set(PMAPTRAIN_HOMEPAGE "" CACHE STRING "The web page that packages name in their field Homepage; empty for none")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pmaptrain)
set(CPACK_PACKAGE_CONTACT "${PMAPTRAIN_MAINTAINER}")
if(PMAPTRAIN_HOMEPAGE)
  set(CPACK_PACKAGE_HOMEPAGE_URL "${PMAPTRAIN_HOMEPAGE}")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "data-parallel training over named axes, from a YAML file")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME pmaptrain)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS dataset-fashion-mnist)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "A command-line driver for data-parallel training. A YAML file describes the model, the batch, the devices and the\
 named axes of their mesh; pmaptrain checks it, compiles one program for all logical devices, and trains.")

# A package of its own, so that the program needs no MPI.
if(TARGET pmaptrain_mpi)
  install(TARGETS pmaptrain_mpi LIBRARY DESTINATION ${private_libraries} COMPONENT mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME pmaptrain-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "pmaptrain (= ${PROJECT_VERSION}), openmpi-bin")
  set(CPACK_COMPONENT_MPI_DESCRIPTION
      "The module that pmaptrain opens where mpirun or srun starts several processes of it.")
endif()

# A package of its own: NVIDIA's libraries, which the module needs, are not in Debian.
if(PMAPTRAIN_CUDA)
  install(TARGETS pmaptrain_cuda LIBRARY DESTINATION ${private_libraries} COMPONENT cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME pmaptrain-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "pmaptrain (= ${PROJECT_VERSION})")
  set(CPACK_COMPONENT_CUDA_DESCRIPTION
      "The module that pmaptrain opens for the backend cuda. It needs NVIDIA's driver, and\
 the libraries of CUDA 13, cuDNN 9 and NCCL 2.")
endif()
include(CPack)
