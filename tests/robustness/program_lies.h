/// Program files put together from parts without any check, so that each part may lie.
#pragma once

#include <string>
#include <vector>

#include "corelane/program/program_file.h"
#include "mutator.h"
#include "program/testing/random_program.h"

namespace corelane::robustness {

struct Parts {
  ProgramDescription description;
  std::vector<ProgramDescription> others;  ///< Of the networks after the first.
  std::vector<SegmentInfo> segments;
  std::vector<ByteVector> contents;

  /// A valid program.
  static Parts random(testing::RandomProgram& random);
  /// A valid file of two or three networks with names.
  static Parts random_networks(testing::RandomProgram& random);
  /// Gives the segments the places and checksums that fit their contents.
  void place();
  /// The file, with right checksums of header and description; contents lie where place() would
  /// have them, whatever the table says.
  ByteVector assemble() const;
  /// `description` and `others`.
  std::vector<ProgramDescription> descriptions() const;
};

/// Changes one thing for the worse and says which.
std::string tell_lie(Parts& parts, Mutator& mutator);

}  // namespace corelane::robustness
