#include "hub/download/curl_library.h"

#include <dlfcn.h>

#include "filigree/error.h"

namespace filigree::hub {
namespace {

// The flavours of Debian, all of the same interface.
constexpr const char* kFlavours[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

template <typename Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  require(function != nullptr, "libcurl has no {}; install a newer one", name);
}

CurlLibrary load_curl() {
  void* library = nullptr;
  for (const char* flavour : kFlavours)
    if (library == nullptr) library = ::dlopen(flavour, RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr,
          "downloads need libcurl, which is not installed (Debian: apt install libcurl4)");
  CurlLibrary curl;
  find_function(library, "curl_easy_init", curl.easy_init);
  find_function(library, "curl_easy_setopt", curl.easy_setopt);
  find_function(library, "curl_easy_perform", curl.easy_perform);
  find_function(library, "curl_easy_cleanup", curl.easy_cleanup);
  find_function(library, "curl_easy_reset", curl.easy_reset);
  find_function(library, "curl_easy_strerror", curl.easy_strerror);
  find_function(library, "curl_slist_append", curl.slist_append);
  find_function(library, "curl_slist_free_all", curl.slist_free_all);
  decltype(&::curl_global_init) global_init = nullptr;
  find_function(library, "curl_global_init", global_init);
  require(global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl cannot be initialised");
  return curl;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary curl = load_curl();
  return curl;
}

}  // namespace filigree::hub
