# `make package`: two Debian packages, made by CPack in packages/ of the build folder.
#
#   filigree          the program, the bundled models, what they need to run
#   libfiligree-dev   the library, its headers, what programs that link it need to compile
if(NOT FILIGREE_PROGRAM OR NOT FILIGREE_INSTALL OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

set(FILIGREE_MAINTAINER "Filigree maintainers <maintainers@filigree.invalid>" CACHE STRING
  "Who answers for the Debian packages: name and address")

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libfiligree-dev RENAME copyright
  COMPONENT library)

# The packages of libraries that tools/packages.txt names for the build, less those of the program and
# of the tests.
file(STRINGS tools/packages.txt lines REGEX "^build +[^ ]+-dev ")
set(libraries "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^build +([^ ]+) .*" "\\1" package "${line}")
  if(NOT package MATCHES "cli11|gtest|gmock|httplib|curl")
    list(APPEND libraries ${package})
  endif()
endforeach()
list(JOIN libraries ", " libraries)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME filigree)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR Filigree)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${FILIGREE_MAINTAINER})
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Attention maps and circuits of dense and sparse transformers
 Filigree makes the attention of a transformer sparse by post-training and
 shows what the sparsity reveals: attention maps of every head, head roles,
 statistics and circuits, as figures, tables and one offline page. Two small
 models and their transcoders are part of the package; 'filigree demo'
 compares the models.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME filigree)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# Figures are the same everywhere because these fonts are; libcurl is not linked but loaded.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS
  "fonts-noto-core, fonts-wqy-microhei, libcurl4 | libcurl3-gnutls")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "openmpi-bin")  # mpirun, for several processes
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Library of Filigree: models, taps, attention, circuits
 The static library, its headers, and its packages for CMake
 (find_package(filigree)) and pkg-config.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libfiligree-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS
  "filigree (= ${PROJECT_VERSION}), pkg-config, ${libraries}")
include(CPack)
