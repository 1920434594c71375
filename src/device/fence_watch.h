/// The thread that watches imported fences, as those see it that it signals.
#pragma once

namespace corelane::device {

/// True in the one thread of the process that signals imported fences. What runs there must not
/// wait for a fence, nor take long: the others stand still meanwhile.
bool watches_fences() noexcept;

}  // namespace corelane::device
