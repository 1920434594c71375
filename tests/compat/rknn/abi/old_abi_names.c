/* Functions that older releases called otherwise: old binaries still ask the loader for these
 * names. */
#include "old_abi.h"

int rknn_init(old_context* context, void* model, uint32_t size, uint32_t flag,
              old_init_extend* extend);
int rknn_destroy(old_context context);
old_tensor_mem* rknn_create_mem(old_context context, uint32_t size);
int rknn_destory_mem(old_context context, old_tensor_mem* mem); /* 1.2.0 */

typedef struct {
  int32_t M, K, N;
} old_matmul_shape;
int rknn_matmul_create_dyn_shape(old_context* context, void* info, int number,
                                 old_matmul_shape* shapes, old_matmul_io_attr* io); /* 2.0.0 beta */
int rknn_matmul_destroy(old_context context);

/* Null where the library lacks it. */
#pragma weak rknn_destory_mem
#pragma weak rknn_matmul_create_dyn_shape
#pragma weak rknn_matmul_destroy

int main(void) {
  if (rknn_destory_mem == NULL || rknn_matmul_create_dyn_shape == NULL) {
    fprintf(stderr, "the library lacks rknn_destory_mem or rknn_matmul_create_dyn_shape\n");
    return 1;
  }
  message model = relu_model();
  old_context context = 0;
  CHECK(rknn_init(&context, model.bytes, (uint32_t)model.size, 0, NULL) == 0);
  old_tensor_mem* mem = rknn_create_mem(context, 4096);
  CHECK(mem != NULL);
  CHECK(rknn_destory_mem(context, mem) == 0);
  CHECK(rknn_destory_mem(context, mem) < 0);
  CHECK(rknn_destroy(context) == 0);

  union {
    old_matmul_info info;
    unsigned char bytes[64];
  } given;
  memset(&given, 0, sizeof given);
  given.info.type = 2;
  old_matmul_shape shapes[2] = {{1, 64, 32}, {8, 64, 32}};
  old_matmul_io_attr io[2];
  old_context product = 0;
  CHECK(rknn_matmul_create_dyn_shape(&product, &given, 2, shapes, io) == 0);
  CHECK(io[0].A.dims[0] == 1 && io[1].A.dims[0] == 8);
  CHECK(rknn_matmul_destroy(product) == 0);
  printf("%d checks failed\n", failures);
  return failures != 0;
}
