/// From the codes of a Status to those of a foreign API: one table for each adapter, complete or it
/// does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>

#include "base/code_names.h"

namespace corelane::edge {

/// What the API says for a code.
template <class Foreign>
struct CodeRow {
  Code code;
  Foreign foreign;
};

/// A row for each Code. A table that lacks a code, or has one twice, does not compile.
template <class Foreign>
class CodeTable {
 public:
  consteval explicit CodeTable(const CodeRow<Foreign> (&rows)[std::size(kCodeNames)]) {
    for (std::size_t i = 0; i < std::size(kCodeNames); ++i) {
      if (rows[i].code != kCodeNames[i].code)
        throw "rows go in the order of kCodeNames, one for each";
      foreign_[i] = rows[i].foreign;
    }
  }

  constexpr Foreign operator[](Code code) const noexcept {
    for (std::size_t i = 0; i + 1 < std::size(kCodeNames); ++i)
      if (kCodeNames[i].code == code) return foreign_[i];
    return foreign_.back();
  }

 private:
  std::array<Foreign, std::size(kCodeNames)> foreign_{};
};

}  // namespace corelane::edge
