/// Values of PrepareOptions::engine that are not the name of an engine.
#pragma once

#include <string>
#include <string_view>

namespace corelane::device {

/// Asks for the engine that prepares this image soonest and knows its output shapes as well as the
/// image does, though another one may compute it faster. Executable::engine() says which it was; an
/// empty name stands for the engine that the device would have chosen first. Devices with one
/// engine refuse it.
inline constexpr std::string_view kSoonestEngine = "soonest";

/// Prefix of an engine's name: the runtime found that engine faster, the user did not ask for it,
/// so another engine may compute runs that it would get wrong. Devices with one engine refuse it.
inline constexpr std::string_view kFasterEngine = "faster:";

/// The value that names `engine` as the one found faster.
inline std::string faster_engine(std::string_view engine) {
  return std::string(kFasterEngine) + std::string(engine);
}

/// The engine's name in such a value, or in one that is just a name.
inline std::string_view engine_of_wish(std::string_view wish) {
  if (wish.starts_with(kFasterEngine)) wish.remove_prefix(kFasterEngine.size());
  return wish;
}

}  // namespace corelane::device
