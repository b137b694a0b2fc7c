# The version and the commit, compiled into the small library filigree_version that base/version.cpp
# reads. Run as a script (cmake -P) before every build, it writes the source file again only when
# its text changed: a new commit recompiles this one file and relinks, nothing more.
if(CMAKE_SCRIPT_MODE_FILE)
  set(commit "")
  if(EXISTS ${SOURCE_DIR}/.git)
    # Fails quietly without git, without any commit, or in a checkout of another user.
    execute_process(COMMAND git describe --always --exclude=* --abbrev=9 --dirty=.modified
      WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
      ERROR_QUIET)
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Written by cmake/Version.cmake.
namespace filigree::build_info {
extern const char* const kVersion;
extern const char* const kCommit;
extern const char* const kBuildType;
extern const char* const kOptions;
const char* const kVersion = "@VERSION@";
const char* const kCommit = "@commit@";
const char* const kBuildType = "@BUILD_TYPE@";
const char* const kOptions = "@OPTIONS@";
}  // namespace filigree::build_info
]])
  return()
endif()

if(FILIGREE_CUDA)
  set(FILIGREE_BUILD_OPTIONS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}")
else()
  set(FILIGREE_BUILD_OPTIONS "without CUDA")
endif()
if(FILIGREE_SANITIZE)
  string(APPEND FILIGREE_BUILD_OPTIONS ", sanitizers ${FILIGREE_SANITIZE}")
endif()

set(version_source ${PROJECT_BINARY_DIR}/generated/version_info.cpp)
set(version_command ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${version_source}
  -DVERSION=${PROJECT_VERSION} -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
  -DOPTIONS=${FILIGREE_BUILD_OPTIONS} -P ${CMAKE_CURRENT_LIST_FILE})
add_custom_target(filigree_version_source
  COMMAND ${version_command} BYPRODUCTS ${version_source} COMMENT "Version" VERBATIM)
add_library(filigree_version STATIC ${version_source})
add_dependencies(filigree_version filigree_version_source)
target_link_libraries(filigree_version PRIVATE filigree_options)
set_property(GLOBAL APPEND PROPERTY filigree_modules filigree_version)
