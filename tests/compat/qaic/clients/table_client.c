/* The function table in C11: the library is opened by hand, and nothing of it is linked. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "QAicApi.h"

enum { kInferences = 4, kPath = 4096 };

static const QAicApiFunctionTable* api;

static void need(QStatus status, const char* what) {
  if (status == QS_SUCCESS) return;
  fprintf(stderr, "%s: status %d: %s\n", what, (int)status, api->qaicGetLastErrorText());
  exit(1);
}

static FILE* open_file(const char* folder, const char* kind, unsigned inference, unsigned number,
                       const char* mode) {
  char path[kPath];
  snprintf(path, sizeof path, "%s/%s-%u-%u.bin", folder, kind, inference, number);
  FILE* file = fopen(path, mode);
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  return file;
}

/* Memory for each buffer; inputs from files. */
static void fill(QBuffer* buffers, const QAicIoBufferInfo* info, const char* folder,
                 unsigned inference) {
  unsigned inputs = 0;
  for (uint32_t i = 0; i < info->numBufferMappings; ++i) {
    memset(&buffers[i], 0, sizeof buffers[i]);
    buffers[i].type = QBUFFER_TYPE_HEAP;
    buffers[i].size = info->bufferMappings[i].size;
    buffers[i].buf = calloc(1, buffers[i].size);
    if (info->bufferMappings[i].ioType != BUFFER_IO_TYPE_INPUT) continue;
    FILE* file = open_file(folder, "in", inference, inputs++, "rb");
    if (fread(buffers[i].buf, 1, buffers[i].size, file) != buffers[i].size) exit(1);
    fclose(file);
  }
}

static void keep(QBuffer* buffers, const QAicIoBufferInfo* info, const char* folder,
                 unsigned inference) {
  unsigned outputs = 0;
  for (uint32_t i = 0; i < info->numBufferMappings; ++i) {
    if (info->bufferMappings[i].ioType == BUFFER_IO_TYPE_OUTPUT) {
      FILE* file = open_file(folder, "out", inference, outputs++, "wb");
      fwrite(buffers[i].buf, 1, buffers[i].size, file);
      fclose(file);
    }
    free(buffers[i].buf);
  }
}

static void open_api(void) {
  const char* path = getenv("QAIC_LIB");
  void* library = dlopen(path != NULL ? path : "libQAic.so", RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  const QAicApiFunctionTable* (*get)(void);
  *(void**)&get = dlsym(library, "qaicGetFunctionTable");
  api = get();
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  open_api();
  uint16_t major = 0, minor = 0;
  const char *patch = NULL, *variant = NULL;
  need(api->qaicGetAicVersion(&major, &minor, &patch, &variant), "version");
  if (major != LRT_LIB_MAJOR_VERSION || minor < LRT_LIB_MINOR_VERSION) return 1;

  QAicContext* context = NULL;
  const QID device = 0;
  need(api->qaicCreateContext(&context, NULL, 1, &device, NULL, NULL, NULL, NULL), "context");
  char path[kPath];
  snprintf(path, sizeof path, "%s/programqpc.bin", argv[1]);
  QAicQpcObj* qpc = NULL;
  need(api->qaicOpenQpcFile(&qpc, path), "container");
  QAicProgram* program = NULL;
  need(api->qaicCreateProgram(context, &program, NULL, device, "table", qpc), "program");
  QAicIoBufferInfo* info = NULL;
  need(api->qaicProgramGetIoBufferInfo(program, &info), "buffers");
  QAicExecObj* object = NULL;
  need(api->qaicCreateExecObj(context, &object, NULL, program, NULL, NULL, NULL), "object");
  QAicQueue* queue = NULL;
  need(api->qaicCreateQueue(context, &queue, NULL, device), "queue");
  QBuffer* buffers = calloc(info->numBufferMappings, sizeof *buffers);
  for (unsigned n = 0; n < kInferences; ++n) {
    fill(buffers, info, argv[1], n);
    need(api->qaicExecObjSetData(object, info->numBufferMappings, buffers), "data");
    need(api->qaicEnqueueExecObj(queue, object, NULL), "enqueue");
    need(api->qaicExecObjWaitForCompletion(object, 60000000), "wait");
    keep(buffers, info, argv[2], n);
  }
  free(buffers);
  if (api->qaicEnqueueExecObj(queue, NULL, NULL) != QS_INVAL) return 1;
  need(api->qaicReleaseExecObj(object), "release object");
  need(api->qaicReleaseProgram(program), "release program");
  if (api->qaicLoadProgram(program) != QS_INVAL) return 1;
  need(api->qaicCloseQpc(qpc), "close");
  need(api->qaicReleaseQueue(queue), "release queue");
  need(api->qaicReleaseContext(context), "release context");
  return 0;
}
