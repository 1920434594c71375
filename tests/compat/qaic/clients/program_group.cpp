/// Two programs of a group that share the cores of a device, one inference of each in turn.
#include <array>

#include "QAicApi.hpp"
#include "client_support.h"

namespace {

using namespace qaic::rt;  // NOLINT(google-build-using-namespace)

void run(const std::string& folder, const std::string& results) {
  const shContext context = Context::Factory(nullptr, {0});
  const shQpc qpc = Qpc::Factory(folder);
  QAicProgramGroupProperties_t properties;
  ProgramGroup::initProperties(properties);
  properties.enableOversubscription = QAIC_PROGRAM_GROUP_PROPERTIES_OVERSUBSCRIPTION_ENABLED;
  properties.protocolSelect = QAIC_PROGRAM_GROUP_PROTOCOL_DATA_PATH;
  shProgramGroup group = ProgramGroup::Factory(context, 0, "shared", &properties);
  const std::array<shProgram, 2> programs{group->addProgram(qpc), group->addProgram(qpc)};
  QAicProgramGroupTurn turn;
  turn.weight = 2;
  client::need(group->setTurn(programs[1], turn), "setTurn");
  client::need(programs[0]->activate() == QS_INVAL, "only the group activates");
  client::need(group->enable(), "enable");
  client::need(programs[0]->isActivated() && programs[1]->isActivated(), "both are active");
  client::need(group->setTurn(programs[1], turn) == QS_BUSY, "setTurn while it is enabled");

  std::vector<client::Buffers> buffers;
  std::vector<shExecObj> objects;
  for (unsigned n = 0; n < client::kInferences; ++n) {
    buffers.emplace_back(qpc->getBufferMappings(), folder, n);
    objects.push_back(ExecObj::Factory(context, programs[n % 2], buffers[n].all()));
    client::need(group->getQueue()->enqueue(objects[n]), "enqueue");
  }
  for (unsigned n = 0; n < client::kInferences; ++n) {
    client::need(objects[n]->waitForCompletion(), "waitForCompletion");
    buffers[n].write(results, n);
  }
  for (const shProgram& program : programs) {
    QAicProgramTurnFigures figures;
    client::need(group->getTurnFigures(program, figures), "getTurnFigures");
    client::need(figures.turns > 0 && figures.servedNs > 0, "it had a turn");
  }
  client::need(group->disable(true, std::chrono::seconds(60)), "disable");
  client::need(objects[0]->run() == QS_INVAL, "a group that is not enabled runs nothing");
  client::need(group->enable(), "enable again");
  client::need(group->disable(false, 0), "disable without waiting");
  group.reset();  // Its programs keep it.
  client::need(!programs[0]->isActivated(), "isActivated");
}

}  // namespace

int main(int, char** argv) {
  try {
    run(argv[1], argv[2]);
  } catch (const qaic::Exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
  return 0;
}
