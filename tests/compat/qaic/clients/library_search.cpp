/// What a program meets where the library is missing or is another one: the argument names the
/// case.
#include "QAicApi.hpp"
#include "client_support.h"

namespace {

std::string refusal() {
  try {
    qaic::rt::Util::checkLibraryVersion();
  } catch (const qaic::ExceptionInit& e) {
    return e.what();
  }
  return "";
}

}  // namespace

/// argv: a library without a function table, and one that works.
int main(int, char** argv) {
  setenv("QAIC_LIB", "/no/such/libQAic.so", 1);
  const std::string missing = refusal();
  client::need(missing.find("/no/such/libQAic.so") != std::string::npos &&
                   missing.find("set QAIC_LIB") != std::string::npos,
               "what was tried, and what to do");
  try {
    qaic::rt::Context::Factory(nullptr, {0});
    return 1;
  } catch (const qaic::rt::CoreExceptionInit& e) {
    client::need(e.status() == QS_ERROR, "the status");
  }
  setenv("QAIC_LIB", argv[1], 1);
  client::need(refusal().find("no function table") != std::string::npos, "another library");
  setenv("QAIC_LIB", argv[2], 1);
  client::need(refusal().empty(), "the library");
  setenv("QAIC_LIB", "/no/such/libQAic.so", 1);
  client::need(refusal().empty(), "found once for the process");
  return 0;
}
