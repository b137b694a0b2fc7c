// What comes from the network when a model is fetched, and the names that models are fetched by:
// listings, indices of shards, heads of answers, addresses that they redirect to.
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

#include "filigree/error.h"
#include "fuzz_target.h"
#include "hub/address.h"
#include "hub/cache.h"
#include "hub/hub_name.h"
#include "hub/listing.h"
#include "hub/response_head.h"

namespace filigree {
namespace {

// Whether a name leads to a place below the folder that it is put behind.
bool stays_inside(const std::string& name) {
  const std::filesystem::path folder = "/cache/folder";
  const std::filesystem::path path = (folder / name).lexically_normal();
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
             folder.end() &&
         path != folder;
}

void read_name(std::string_view text) {
  fuzz::attempt([&] {
    const hub::HubName name = hub::parse_hub_name(text);
    const hub::HubName again = hub::parse_hub_name(name.text());
    fuzz::expect(again.repository == name.repository && again.revision == name.revision &&
                     again.file == name.file,
                 "a name is read as it is written");
    fuzz::expect(hub::folder_of_repository(name.repository).find('/') == std::string::npos,
                 "a repository is one folder");
    fuzz::expect(stays_inside(name.revision), "a revision stays in its folder");
    fuzz::expect(name.file.empty() || stays_inside(name.file), "a file stays in its folder");
  });
}

void read_address(std::string_view text) {
  const auto same_again = [](const hub::Address& address) {
    const hub::Address again = hub::parse_address(address.text(), "again");
    fuzz::expect(again.same_origin(address) && again.rest == address.rest,
                 "an address is read as it is written");
    fuzz::expect(address.text().find_first_of(" \r\n\t") == std::string::npos,
                 "an address is one word");
  };
  fuzz::attempt([&] { same_again(hub::parse_address(text, "an address")); });
  const hub::Address base = hub::parse_address("https://hub.example.org:8443/a/b?c", "base");
  fuzz::attempt([&] {
    const hub::Address next = hub::redirected(base, text);
    same_again(next);
    const bool names_a_host = text.starts_with("//") || text.find("://") != std::string_view::npos;
    fuzz::expect(names_a_host || next.same_origin(base), "a path stays with its host");
  });
}

void read_head(std::string_view text) {
  fuzz::attempt([&] {
    hub::ResponseHead head;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      head.add_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    fuzz::expect(!head.is_redirect() || head.header("location"), "a redirect leads somewhere");
    head.bytes();
    head.number("retry-after");
    if (const auto range = head.header("content-range"))
      if (const auto parsed = hub::parse_content_range(*range))
        fuzz::expect(!parsed->satisfied || parsed->first <= parsed->last, "a range has an order");
    if (const auto etag = head.etag())
      fuzz::expect(stays_inside(*etag) && etag->find('/') == std::string::npos,
                   "an ETag is a plain name");
  });
}

void read_listing(std::string_view text) {
  fuzz::attempt([&] {
    const hub::Listing listing = hub::parse_listing(text, "input");
    fuzz::expect(hub::is_commit(listing.commit), "a listing is of a commit");
    for (const hub::ListedFile& file : listing.files) {
      fuzz::expect(stays_inside(file.name), "a file stays in its folder");
      fuzz::expect(listing.find(file.name) == &file, "a file is found");
      fuzz::attempt([&] { hub::needed_files(listing, file.name, "org/name"); });
    }
    const hub::NeededFiles needed = hub::needed_files(listing, "", "org/name");
    for (const std::string& file : needed.files)
      fuzz::expect(listing.find(file) != nullptr, "what is needed is there");
    fuzz::expect(!needed.files.empty(), "a model needs something");
  });
  fuzz::attempt([&] {
    static const hub::Listing listing = hub::parse_listing(
        R"({"sha":"0123456789abcdef0123456789abcdef01234567","siblings":[{"rfilename":"a"}]})",
        "listing");
    for (const std::string& shard : hub::shards_of_index(text, "input", listing))
      fuzz::expect(shard == "a", "shards are listed");
  });
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  filigree::read_name(text);
  filigree::read_address(text);
  filigree::read_head(text);
  filigree::read_listing(text);
  return 0;
}
