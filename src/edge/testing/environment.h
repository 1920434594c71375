/// Variables of the environment, in tests.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace corelane::edge::testing {

/// A variable for the length of a test; without a value it is not set meanwhile.
class Environment {
 public:
  Environment(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    put(value);
  }
  ~Environment() { put(old_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void put(const std::optional<std::string>& value) const {
    value ? setenv(name_, value->c_str(), 1) : unsetenv(name_);
  }

  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace corelane::edge::testing
