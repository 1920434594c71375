/// A user of the installed object runtime: C++17, headers by their bare names, the library opened
/// when the program runs (LINKED: linked). With a folder with a container of y = Relu(x), float
/// (4), runs it; without, only meets the library. Returns 0 when the answers are right.
#include <QAicApi.hpp>
#include <QAicOpenRtApi.hpp>

namespace {

int failed(const std::string& what) {
  std::cerr << "qaic_consumer: " << what << std::endl;
  return 1;
}

int run_relu(const std::string& folder) {
  const auto context = qaic::rt::Context::Factory();
  const auto qpc = qaic::rt::Qpc::Factory(folder);
  const auto set = qaic::rt::InferenceSet::Factory(context, qpc);
  float given[4] = {-1, 2, -3, 4};
  float found[4] = {};
  qaic::rt::shInferenceHandle handle;
  if (set->getAvailable(handle) != QS_SUCCESS) return failed("getAvailable");
  const std::vector<QBuffer> buffers{{sizeof given, reinterpret_cast<uint8_t*>(given)},
                                     {sizeof found, reinterpret_cast<uint8_t*>(found)}};
  if (handle->setBuffers(buffers) != QS_SUCCESS) return failed("setBuffers");
  if (set->submit(handle, 1) != QS_SUCCESS) return failed("submit");
  if (set->getCompletedId(handle, 1) != QS_SUCCESS) return failed(handle->getErrorText());
  if (set->putCompleted(handle) != QS_SUCCESS) return failed("putCompleted");
  const float expected[4] = {0, 2, 0, 4};
  return std::equal(found, found + 4, expected) ? 0 : failed("the output is wrong");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    uint16_t major = 0;
    uint16_t minor = 0;
    std::string patch;
    std::string variant;
    if (qaic::openrt::Util::getAicVersion(major, minor, patch, variant) != QS_SUCCESS)
      return failed("getAicVersion");
#ifdef LINKED
    if (qaicCloseQpc(nullptr) != QS_INVAL) return failed("qaicCloseQpc");
#endif
    std::cout << major << "." << minor << "." << patch << ": right" << std::endl;
    return argc > 1 ? run_relu(argv[1]) : 0;
  } catch (const qaic::Exception& e) {
    return failed(e.what());
  }
}
