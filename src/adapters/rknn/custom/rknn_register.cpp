/// How custom operators reach a context: rknn_register_custom_ops, and plug-ins, which are shared
/// objects that export get_rknn_custom_op.
#include <dlfcn.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/custom/rknn_custom.h"
#include "adapters/rknn/model/rknn_model.h"
#include "base/trust/secure_environment.h"

namespace corelane::rknn {
namespace {

Status load_plugin(const std::string& path,
                   const std::function<Status(const rknn_custom_op*)>& add) {
  // Never closed: what a callback points to must outlive the contexts. Opening it again only adds a
  // reference.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return error(Code::kNotFound, "cannot be opened: {}",
                 why == nullptr ? "no reason is known" : why);
  }
  const auto entry = reinterpret_cast<get_custom_op_func>(dlsym(library, "get_rknn_custom_op"));
  if (entry == nullptr)
    return error(
        Code::kNotFound,
        "does not export get_rknn_custom_op; declare it with RKNN_CUSTOM_OP_EXPORT and, in "
        "C++, extern \"C\"");
  const rknn_custom_op* const op = entry();
  if (op == nullptr) return error(Code::kInvalidArgument, "get_rknn_custom_op gave null");
  return add(op);
}

/// Gives `add` the operator of each plug-in that `CORELANE_RKNN_PLUGINS` lists (paths, separated by
/// colons); one that fails is a warning, whatever the level: runs fail for its lack.
void load_plugins(const std::function<Status(const rknn_custom_op*)>& add) {
  const char* const list = environment("CORELANE_RKNN_PLUGINS");
  if (list == nullptr) return;
  const std::string paths(list);
  for (std::size_t at = 0; at <= paths.size();) {
    const std::size_t end = std::min(paths.find(':', at), paths.size());
    const std::string path = paths.substr(at, end - at);
    at = end + 1;
    if (path.empty()) continue;
    const Status status = load_plugin(path, add);
    if (!status.ok())
      log::write(log::Level::kWarn,
                 fmt::format("rknn_init: plug-in {} of CORELANE_RKNN_PLUGINS is not used: {}", path,
                             status.to_string()));
    else
      log::line(log::Level::kInfo, "rknn_init: plug-in {} registered", path);
  }
}

/// Whatever the level: the results are not those that the caller's operator would give.
void warn_of_standard(std::string_view type, const std::vector<NetworkNode>& nodes,
                      const std::vector<CustomOperatorDecl>& declared) {
  if (std::ranges::find(nodes, type, &NetworkNode::type) == nodes.end() ||
      std::ranges::find(declared, type, &CustomOperatorDecl::type) != declared.end())
    return;
  log::write(log::Level::kWarn,
             fmt::format("rknn_register_custom_ops: the operator '{}' will not be called: in this "
                         "model that type is one of the ONNX standard, which the library computes "
                         "itself; export the nodes with a type of your own",
                         type));
}

}  // namespace

Status ModelContext::join_custom_ops() {
  const bool first = custom_ops_ == nullptr;
  if (first) custom_ops_ = std::make_shared<CustomOps>();
  CORELANE_ASSIGN(custom_share_, custom_ops_->join());
  if (first) load_plugins([this](const rknn_custom_op* op) { return add_custom_ops(op, 1); });
  return {};
}

Status ModelContext::add_custom_ops(const rknn_custom_op* ops, std::uint32_t count) {
  std::vector<NetworkNode> nodes;
  if (auto known = queries_.program().nodes()) nodes = *std::move(known);
  CORELANE_TRY(custom_ops_->add(ops, count, nodes, *facts_.operators));
  for (std::uint32_t i = 0; i < count; ++i)
    warn_of_standard(ops[i].op_type, nodes, facts_.description->custom_operators);
  return {};
}

Outcome ModelContext::register_custom_ops(const rknn_custom_op* ops, std::uint32_t count) {
  const ContextLock lock(runs_.mutex());
  if (!lock.ok()) return lock.refused();
  if (facts_.has(RKNN_FLAG_COLLECT_MODEL_INFO_ONLY)) return runs_.ready();
  return add_custom_ops(ops, count);
}

}  // namespace corelane::rknn
