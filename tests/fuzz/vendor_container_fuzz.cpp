// Any bytes as a container of the vendor's compiler: an error, or a listing that lies in the file.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "cli/qaic/vendor_container.h"

namespace {

/// A broken promise is a crash that libFuzzer reports.
void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "vendor_container_fuzz: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using corelane::cli::VendorContainer;
  const auto listed = VendorContainer::read(std::as_bytes(std::span(data, size)));
  if (!listed) return 0;
  require(listed->size <= size, "it is larger than the file");
  require(listed->segments.size() <= VendorContainer::kMostSegments, "too many segments");
  for (const auto& s : listed->segments) {
    require(s.at <= listed->size && s.size <= listed->size - s.at, "a segment leaves the file");
    require(!s.name.empty() && s.name.size() <= VendorContainer::kMostName, "a name is none");
  }
  return 0;
}
