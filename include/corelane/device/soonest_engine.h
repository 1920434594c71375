/// Wishes for PrepareOptions::engine that are no engine's name.
#pragma once

#include <string>
#include <string_view>

namespace corelane::device {

/// The engine that prepares this image soonest and knows the shapes of its outputs as the image
/// does, though another one may compute it faster. Executable::engine() says which it was: no name
/// stands for the engine that the device would have chosen first. Devices with one engine do not
/// take it.
inline constexpr std::string_view kSoonestEngine = "soonest";

/// Before the name of an engine that was found faster while nobody asked for it: a run whose values
/// it would get wrong may be another engine's. Devices with one engine do not take it.
inline constexpr std::string_view kFasterEngine = "faster:";

/// The wish for `engine`, found faster.
inline std::string faster_engine(std::string_view engine) {
  return std::string(kFasterEngine) + std::string(engine);
}

/// The name in a wish that names an engine.
inline std::string_view engine_of_wish(std::string_view wish) {
  if (wish.starts_with(kFasterEngine)) wish.remove_prefix(kFasterEngine.size());
  return wish;
}

}  // namespace corelane::device
