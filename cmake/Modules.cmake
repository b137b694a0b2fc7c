# filigree_module(NAME [DEPENDS module...] [LINK target...] [PRIVATE_LINK target...] [EXCLUDE pattern])
#
# Makes the library filigree_NAME of all sources below src/NAME and, of the *_test.cpp files that sit
# beside them, the test program NAME_tests, registered test by test under the CTest label "unit".
# CUDA sources (*.cu, files named *_cuda.*, folders named cuda/) take part with FILIGREE_CUDA only,
# and the tests among them have the label "cuda" instead. Sources that fit the pattern are left out.
# LINK is for libraries whose headers those of the module include, PRIVATE_LINK for all others.
function(filigree_module name)
  cmake_parse_arguments(ARG "" "EXCLUDE" "DEPENDS;LINK;PRIVATE_LINK" ${ARGN})
  set(root ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/*.cpp ${root}/*.cu)
  # Matched below src only, so that a checkout below a folder named "cuda" is not mistaken.
  list(TRANSFORM sources REPLACE "^${PROJECT_SOURCE_DIR}/" "")
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  set(cuda_pattern "/cuda/|_cuda(_test)?\\.|\\.cu$")
  set(cuda_tests ${sources})
  list(FILTER cuda_tests INCLUDE REGEX "_test\\.(cpp|cu)$")
  list(FILTER cuda_tests INCLUDE REGEX "${cuda_pattern}")
  if(NOT FILIGREE_CUDA)
    list(FILTER sources EXCLUDE REGEX "${cuda_pattern}")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests EXCLUDE REGEX "${cuda_pattern}")
  list(FILTER sources EXCLUDE REGEX "_test\\.(cpp|cu)$")
  foreach(files IN ITEMS sources tests cuda_tests)
    list(TRANSFORM ${files} PREPEND ${PROJECT_SOURCE_DIR}/)
  endforeach()

  list(TRANSFORM ARG_DEPENDS PREPEND filigree_)
  if(sources)
    add_library(filigree_${name} STATIC ${sources})
    target_link_libraries(filigree_${name} PUBLIC filigree_headers ${ARG_DEPENDS} ${ARG_LINK}
      PRIVATE filigree_options ${ARG_PRIVATE_LINK})
    set_property(GLOBAL APPEND PROPERTY filigree_modules filigree_${name})
    filigree_precompile(filigree_${name} libraries)
  else()
    add_library(filigree_${name} INTERFACE)
    target_link_libraries(filigree_${name} INTERFACE filigree_headers ${ARG_DEPENDS} ${ARG_LINK})
  endif()
  set_property(GLOBAL APPEND PROPERTY filigree_linked ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY filigree_linked_inside ${ARG_PRIVATE_LINK})
  if(FILIGREE_TESTS AND tests)
    filigree_test_program(${name}_tests LABEL unit SOURCES ${tests}
      LINK filigree_${name} ${ARG_PRIVATE_LINK})
  endif()
  if(FILIGREE_TESTS AND FILIGREE_CUDA AND cuda_tests)
    filigree_test_program(${name}_cuda_tests LABEL cuda SOURCES ${cuda_tests}
      LINK filigree_${name} ${ARG_PRIVATE_LINK})
  endif()
endfunction()

# The program and the tests that need a GPU: shows that the CUDA side compiles and links where there
# is none.
add_custom_target(cuda_side)

# filigree_precompile(TARGET KIND)
#
# Takes the large headers of libraries from a precompiled header, cmake/precompiled/KIND.h, instead of
# parsing them in every file: half the time of a build from nothing. All targets of a kind share one,
# which the compiler takes only when it was made with their own options. With FILIGREE_FAST_BUILD only.
function(filigree_precompile target kind)
  if(NOT FILIGREE_FAST_BUILD)
    return()
  endif()
  set(owner filigree_precompiled_${kind})
  if(NOT TARGET ${owner})
    set(source ${PROJECT_BINARY_DIR}/generated/precompiled_${kind}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "// Has nothing but its precompiled header.\n")
    add_library(${owner} OBJECT ${source})
    target_link_libraries(${owner} PRIVATE filigree_headers filigree_options fmt::fmt
      nlohmann_json::nlohmann_json)
    target_precompile_headers(${owner} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled/${kind}.h)
    if("${kind}" STREQUAL "tests")
      target_link_libraries(${owner} PRIVATE GTest::gtest GTest::gmock)
      # As executables are compiled.
      set_target_properties(${owner} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${owner} PRIVATE -fPIE $<$<CONFIG:Release>:-Og>)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  # Precompiled, a library's header is no longer told apart as one whose warnings are not ours;
  # GCC 12 has false ones about std::string.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endfunction()

# filigree_compile_together(TARGET [APART pattern])
#
# Compiles files of a target together, two dozen at a time, a third of the work where every file spends
# most of it on the same library's templates. Names in the files' unnamed namespaces must then differ;
# sources that fit APART are compiled alone. With FILIGREE_FAST_BUILD only.
function(filigree_compile_together target)
  cmake_parse_arguments(ARG "" "APART" "" ${ARGN})
  if(NOT FILIGREE_FAST_BUILD)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  if(ARG_APART)
    get_target_property(apart ${target} SOURCES)
    list(FILTER apart INCLUDE REGEX "${ARG_APART}")
    set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# filigree_test_program(NAME LABEL label SOURCES file... LINK target...)
function(filigree_test_program name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE filigree_options ${ARG_LINK} GTest::gtest_main GTest::gmock)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # A third less time to compile; what tests measure is in the libraries.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
  target_compile_definitions(${name} PRIVATE
    FILIGREE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" FILIGREE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  filigree_precompile(${name} tests)
  if(ARG_LABEL STREQUAL cuda)
    add_dependencies(cuda_side ${name})
  endif()
  include(GoogleTest)
  # Parameterised tests keep the names that the test gives its parameters.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 300)
endfunction()
