# The library as others link it: all modules in one static archive, the target filigree::filigree,
# and with FILIGREE_INSTALL the packages for find_package(filigree) and for pkg-config.
#
# It is static because its interface is C++ templates, inline functions and structs that still change
# from version to version: a shared library would promise a binary interface that there is not, and a
# program would have to be compiled anew all the same. The code is position-independent, so that
# bindings for other languages can take it into a shared library of their own.
get_property(modules GLOBAL PROPERTY filigree_modules)
get_property(linked GLOBAL PROPERTY filigree_linked)
get_property(linked_inside GLOBAL PROPERTY filigree_linked_inside)
list(REMOVE_DUPLICATES linked)
list(REMOVE_DUPLICATES linked_inside)
list(TRANSFORM modules REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
list(TRANSFORM linked_inside REPLACE "(.+)" "$<LINK_ONLY:\\1>")

add_library(filigree_library STATIC ${objects})
add_library(filigree::filigree ALIAS filigree_library)
set_target_properties(filigree_library PROPERTIES OUTPUT_NAME filigree EXPORT_NAME filigree
  LINKER_LANGUAGE CXX)
target_link_libraries(filigree_library INTERFACE filigree_headers ${linked} ${linked_inside})
if(FILIGREE_SANITIZE)
  target_link_options(filigree_library INTERFACE -fsanitize=${FILIGREE_SANITIZE})
endif()

# Where models are found by name (filigree/study.h): in the place they are installed to, and,
# by programs of this build folder alone, in the source tree.
set(FILIGREE_MODELS_FOLDER ${CMAKE_INSTALL_DATADIR}/filigree/models)
cmake_path(ABSOLUTE_PATH FILIGREE_MODELS_FOLDER BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
  OUTPUT_VARIABLE installed_models)
set_source_files_properties(src/study/model_places.cpp PROPERTIES COMPILE_DEFINITIONS
  "FILIGREE_INSTALLED_MODELS=\"${installed_models}\";FILIGREE_SOURCE_MODELS=\"${PROJECT_SOURCE_DIR}/models\";FILIGREE_BUILD_FOLDER=\"${CMAKE_BINARY_DIR}\"")

if(NOT FILIGREE_INSTALL)
  return()
endif()

install(DIRECTORY include/filigree DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
  FILES_MATCHING PATTERN "*.h")

# find_package(filigree)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/filigree)
install(TARGETS filigree_library filigree_headers EXPORT filigree
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(EXPORT filigree NAMESPACE filigree:: FILE filigree-targets.cmake
  DESTINATION ${package_folder} COMPONENT library)
configure_package_config_file(cmake/filigree-config.cmake.in
  ${PROJECT_BINARY_DIR}/generated/filigree-config.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS FILIGREE_MODELS_FOLDER)
# Before 1.0 a new minor version may change any name.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/filigree-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/filigree-config.cmake
  ${PROJECT_BINARY_DIR}/generated/filigree-config-version.cmake
  DESTINATION ${package_folder} COMPONENT library)

# pkg-config --cflags --libs filigree. There is no shared library that knew what it needs, so nothing
# is "private". The prefix is where the file lies, so that the folder can be moved.
list(REMOVE_DUPLICATES FILIGREE_PKGCONFIG)
list(TRANSFORM FILIGREE_PKGCONFIG REPLACE "([<>=]+)" " \\1 ")
list(JOIN FILIGREE_PKGCONFIG ", " pkgconfig_requires)
list(JOIN FILIGREE_LINK_FLAGS " " pkgconfig_libraries)
get_target_property(definitions filigree_headers INTERFACE_COMPILE_DEFINITIONS)
set(pkgconfig_flags -std=c++20)
foreach(definition IN LISTS definitions)
  if(definition)
    string(APPEND pkgconfig_flags " -D${definition}")
  endif()
endforeach()
if(FILIGREE_SANITIZE)
  string(APPEND pkgconfig_libraries " -fsanitize=${FILIGREE_SANITIZE}")
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pkgconfig_prefix)
configure_file(cmake/filigree.pc.in generated/filigree.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/filigree.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
