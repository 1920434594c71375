/// A wish for PrepareOptions::engine.
#pragma once

#include <string_view>

namespace corelane::device {

/// The engine that prepares this image soonest and knows the shapes of its outputs as the image
/// does, though another one may compute it faster. Executable::engine() says which it was: no name
/// stands for the engine that the device would have chosen first. Devices with one engine do not
/// take it.
inline constexpr std::string_view kSoonestEngine = "soonest";

}  // namespace corelane::device
