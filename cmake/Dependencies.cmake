# Every library comes from a Debian package (tools/packages.txt names them); nothing is vendored and
# nothing is downloaded. What the library needs wherever it is linked is found through the two macros
# below, which note it for the installed package (cmake/Package.cmake).
set(FILIGREE_NEEDS "")      # lines of the CMake package that find the libraries again
set(FILIGREE_PKGCONFIG "")  # modules of pkg-config
set(FILIGREE_LINK_FLAGS "")  # what pkg-config has no module for
# Seen by a project that takes this one in, too.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(PkgConfig REQUIRED)

# filigree_find(PACKAGE MODULE [COMPONENTS ...]): through find_package; MODULE is its name in
# pkg-config, or empty.
macro(filigree_find package module)
  find_package(${package} REQUIRED ${ARGN})
  string(REPLACE ";" " " find_arguments "${package};${ARGN}")
  string(APPEND FILIGREE_NEEDS "find_dependency(${find_arguments})\n")
  list(APPEND FILIGREE_PKGCONFIG ${module})
endmacro()
# filigree_pkg_config(NAME [REQUIRED] MODULE...): through pkg-config, as PkgConfig::FILIGREE_NAME;
# the result is FILIGREE_NAME_FOUND.
macro(filigree_pkg_config name)
  set(find_modules ${ARGN})
  set(find_required ${ARGN})
  list(FILTER find_required INCLUDE REGEX "^REQUIRED$")
  list(REMOVE_ITEM find_modules REQUIRED)
  pkg_check_modules(FILIGREE_${name} ${find_required} IMPORTED_TARGET GLOBAL ${find_modules})
  if(FILIGREE_${name}_FOUND)
    string(REPLACE ";" " " find_arguments "${find_modules}")
    string(APPEND FILIGREE_NEEDS "filigree_find_modules(FILIGREE_${name} ${find_arguments})\n")
    list(APPEND FILIGREE_PKGCONFIG ${find_modules})
  endif()
endmacro()

filigree_find(Threads "")
list(APPEND FILIGREE_LINK_FLAGS -pthread)
filigree_find(fmt fmt)
filigree_find(nlohmann_json nlohmann_json)
filigree_find(ZLIB zlib)
filigree_pkg_config(PCRE2 REQUIRED libpcre2-8)
filigree_pkg_config(GLIB REQUIRED glib-2.0)
filigree_pkg_config(COMPRESSION REQUIRED liblzma libzstd)
filigree_pkg_config(XXHASH REQUIRED libxxhash)
filigree_pkg_config(CRYPTO REQUIRED libcrypto)
find_path(FILIGREE_CURL_HEADERS curl/curl.h REQUIRED DOC "Folder of curl/curl.h")
mark_as_advanced(FILIGREE_CURL_HEADERS)
filigree_pkg_config(LAPACK REQUIRED lapack)
filigree_pkg_config(YAML REQUIRED yaml-cpp)
filigree_pkg_config(CAIRO REQUIRED cairo cairo-pdf cairo-svg cairo-png pangocairo>=1.50 pangoft2 fontconfig zlib)
filigree_pkg_config(HTTPLIB REQUIRED cpp-httplib)
if(FILIGREE_PROGRAM)
  find_package(CLI11 REQUIRED)
endif()
if(FILIGREE_TESTS)
  find_package(GTest REQUIRED)
endif()

# A compiler cache is used where there is one; nobody needs it.
find_program(FILIGREE_CCACHE ccache DOC "Compiler cache, used when found")
mark_as_advanced(FILIGREE_CCACHE)
# A cache does not go together with precompiled headers.
if(FILIGREE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT FILIGREE_FAST_BUILD)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FILIGREE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${FILIGREE_CCACHE})
endif()

# Warnings are errors, except under sanitizers: their instrumentation makes GCC report variables as
# uninitialised that are not.
if(FILIGREE_WERROR AND NOT FILIGREE_SANITIZE)
  set(warnings_are_errors -Werror)
endif()
# GCC 12 takes std::string's insert and replace for overlapping copies (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(false_warnings -Wno-restrict)
endif()

# GCC's -Wconversion leaves changes of sign out in C++.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(false_warnings -Wno-sign-conversion)
endif()

# What a user of the library is compiled with too: where the headers are, the language, and the
# definitions that headers read (FILIGREE_HAS_...).
add_library(filigree_headers INTERFACE)
add_library(filigree::headers ALIAS filigree_headers)
set_target_properties(filigree_headers PROPERTIES EXPORT_NAME headers)
target_include_directories(filigree_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(filigree_headers INTERFACE cxx_std_20)

# GCC collects garbage whenever it holds more than some 128 MB. Units of two dozen files hold more all
# the time, and a tenth of a build goes into looking for what could be freed; from 512 MB on it hardly
# happens. -O2 alone vectorises almost no loop whose length is not known; with this cost model it does.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(gcc_options --param=ggc-min-heapsize=524288 -fvect-cost-model=dynamic)
endif()

# What every target here is compiled with besides, and nobody else's: internal headers are included
# from src/, as "MODULE/file.h".
add_library(filigree_options INTERFACE)
target_include_directories(filigree_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(filigree_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>"
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings_are_errors};${false_warnings};${gcc_options}>"
  # Fused multiply-add where the target has it, "omp simd" loops without the OpenMP run time, and
  # no errno or floating-point traps, which nothing here reads: loops vectorise better without.
  # None of these changes what NaN and infinities do.
  "$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=fast;-fopenmp-simd;-fno-math-errno;-fno-trapping-math>"
  # Cairo's headers ask for it, and all who share a precompiled header must define the same.
  "$<$<COMPILE_LANGUAGE:CXX>:-pthread>")
if(FILIGREE_SANITIZE)
  target_compile_options(filigree_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${FILIGREE_SANITIZE}>"
    "$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  target_link_options(filigree_options INTERFACE -fsanitize=${FILIGREE_SANITIZE})
endif()
if(FILIGREE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(filigree_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()

include(Cuda)
include(Processes)
include(Version)
