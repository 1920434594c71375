/// Runs all functions: `client CONTAINERS SCRATCH`. With --list it writes their names.
#include "statements.h"

namespace statements {

namespace {

std::string containers_folder;
std::string scratch_folder;

// In the order of the enumeration Device.
constexpr const char* kDevices =
    "virtual:aic100;null:generic:4?fail=2&name=failing;null:generic:16?a=3600s&name=slow;"
    "null:generic:4?a=40ms&name=late;null:generic:2?log=1&name=logging;"
    "null:generic:1?name=left;null:generic:1?name=right;"
    "null:generic:1?name=losing;virtual:aic100?name=second";

bool run(const std::string& name, Function function) {
  std::cout << "run " << name << std::endl;
  try {
    function();
    return true;
  } catch (const Failure& failure) {
    std::cout << "failed " << name << ": " << failure.text << std::endl;
  } catch (const std::exception& e) {
    std::cout << "failed " << name << ": " << e.what() << std::endl;
  }
  return false;
}

int run_all(const std::string& part) {
  int failed = 0;
  for (const auto& [name, function] : all())
    if (name.find(part) != std::string::npos && !run(name, function)) ++failed;
  return failed;
}

}  // namespace

std::vector<std::pair<std::string, Function>>& all() {
  static std::vector<std::pair<std::string, Function>> functions;
  return functions;
}

std::string container(const std::string& name) { return containers_folder + "/" + name; }
const std::string& scratch() { return scratch_folder; }

SetBench::SetBench(QID device, uint32_t size, uint32_t activations,
                   const InferenceSetProperties& properties)
    : context(Context::Factory(nullptr, {device})), qpc(Qpc::Factory(container("pair"))) {
  for (uint32_t i = 0; i < size * activations; ++i)
    pairs.push_back(std::make_unique<Pair>(static_cast<float>(i)));
  set = InferenceSet::Factory(context, qpc, device, size, activations, properties);
}

shInferenceHandle SetBench::take() const {
  shInferenceHandle handle;
  CORELANE_GIVES(QS_SUCCESS, set->getAvailable(handle, 0s));
  CORELANE_GIVES(QS_SUCCESS, handle->setBuffers(memory(handle).buffers()));
  return handle;
}

}  // namespace statements

/// A third argument runs the functions alone whose names have it.
int main(int count, char** argv) {
  std::sort(statements::all().begin(), statements::all().end());
  if (count == 2 && std::string(argv[1]) == "--list") {
    for (const auto& entry : statements::all()) std::cout << entry.first << "\n";
    return 0;
  }
  if (count < 3) return 2;
  statements::containers_folder = argv[1];
  statements::scratch_folder = argv[2];
  setenv("CORELANE_QAIC_DEVICES", statements::kDevices, 1);
  setenv("CORELANE_LOG", "warn", 1);
  return statements::run_all(count > 3 ? argv[3] : "") == 0 ? 0 : 1;
}
