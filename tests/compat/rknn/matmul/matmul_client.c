/* Matrix products the way programs for the board compute them: create, memory for A, B and C, set
 * it, run, read C. The argument is the core mask. Exits with 0 when every product is right. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_matmul_api.h"

enum { kM = 4, kK = 128, kN = 64 };

static rknn_core_mask core_mask = RKNN_NPU_CORE_AUTO;

typedef struct {
  rknn_matmul_ctx ctx;
  rknn_matmul_info info;
  rknn_matmul_io_attr io;
  rknn_tensor_mem *A, *B, *C;
} product;

static int failed(const char* what, int code) {
  printf("%s fail! ret=%d\n", what, code);
  return -1;
}

static int open_product(product* p, rknn_matmul_type type, int16_t b_layout) {
  memset(p, 0, sizeof *p);
  p->info.M = kM;
  p->info.K = kK;
  p->info.N = kN;
  p->info.type = type;
  p->info.B_layout = b_layout;
  p->info.AC_layout = RKNN_MM_LAYOUT_NORM;
  int ret = rknn_matmul_create(&p->ctx, &p->info, &p->io);
  if (ret < 0) return failed("rknn_matmul_create", ret);
  ret = rknn_matmul_set_core_mask(p->ctx, core_mask);
  if (ret < 0) return failed("rknn_matmul_set_core_mask", ret);
  p->A = rknn_create_mem(p->ctx, p->io.A.size);
  p->B = rknn_create_mem(p->ctx, p->io.B.size);
  p->C = rknn_create_mem(p->ctx, p->io.C.size);
  if (p->A == NULL || p->B == NULL || p->C == NULL) return failed("rknn_create_mem", 0);
  printf("%s: A %u bytes, B %u bytes in %u dims, C %u bytes\n", get_matmul_type_string(type),
         p->io.A.size, p->io.B.size, p->io.B.n_dims, p->io.C.size);
  return 0;
}

static int run_product(product* p) {
  int ret = rknn_matmul_set_io_mem(p->ctx, p->A, &p->io.A);
  if (ret < 0) return failed("rknn_matmul_set_io_mem A", ret);
  ret = rknn_matmul_set_io_mem(p->ctx, p->B, &p->io.B);
  if (ret < 0) return failed("rknn_matmul_set_io_mem B", ret);
  ret = rknn_matmul_set_io_mem(p->ctx, p->C, &p->io.C);
  if (ret < 0) return failed("rknn_matmul_set_io_mem C", ret);
  ret = rknn_matmul_run(p->ctx);
  if (ret < 0) return failed("rknn_matmul_run", ret);
  return 0;
}

static void close_product(product* p) {
  rknn_destroy_mem(p->ctx, p->A);
  rknn_destroy_mem(p->ctx, p->B);
  rknn_destroy_mem(p->ctx, p->C);
  rknn_matmul_destroy(p->ctx);
}

static int8_t random_int8(void) { return (int8_t)(rand() % 255 - 127); }

/* int8 x int8 -> int32 with B in normal or native layout, several runs with one B. */
static int int8_products(int16_t b_layout) {
  product p;
  if (open_product(&p, RKNN_INT8_MM_INT8_TO_INT32, b_layout) < 0) return -1;
  static int8_t a[kM * kK], b[kK * kN];
  for (int i = 0; i < kK * kN; ++i) b[i] = random_int8();
  if (b_layout == RKNN_MM_LAYOUT_NATIVE) {
    const int ret = rknn_B_normal_layout_to_native_layout(b, p.B->virt_addr, kK, kN, &p.info);
    if (ret < 0) return failed("rknn_B_normal_layout_to_native_layout", ret);
  } else {
    memcpy(p.B->virt_addr, b, sizeof b);
  }
  rknn_mem_sync(p.ctx, p.B, RKNN_MEMORY_SYNC_TO_DEVICE);
  int wrong = 0;
  for (int loop = 0; loop < 3; ++loop) {
    for (int i = 0; i < kM * kK; ++i) a[i] = random_int8();
    memcpy(p.A->virt_addr, a, sizeof a);
    if (loop == 0) {
      if (run_product(&p) < 0) return -1;
    } else if (rknn_matmul_run(p.ctx) < 0) {
      return failed("rknn_matmul_run", loop);
    }
    const int32_t* c = (const int32_t*)p.C->virt_addr;
    for (int m = 0; m < kM; ++m)
      for (int n = 0; n < kN; ++n) {
        int32_t sum = 0;
        for (int k = 0; k < kK; ++k) sum += (int32_t)a[m * kK + k] * b[k * kN + n];
        wrong += c[m * kN + n] != sum;
      }
  }
  close_product(&p);
  return wrong;
}

/* Small whole numbers as float16: -7 to 7. */
static uint16_t half_of(int value) {
  static const uint16_t halves[] = {0x0000, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
  return (uint16_t)(value < 0 ? 0x8000 | halves[-value] : halves[value]);
}

/* float16 x float16 -> float32. */
static int float16_product(void) {
  product p;
  if (open_product(&p, RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, RKNN_MM_LAYOUT_NORM) < 0) return -1;
  static int a[kM * kK], b[kK * kN];
  for (int i = 0; i < kM * kK; ++i) {
    a[i] = rand() % 15 - 7;
    ((uint16_t*)p.A->virt_addr)[i] = half_of(a[i]);
  }
  for (int i = 0; i < kK * kN; ++i) {
    b[i] = rand() % 15 - 7;
    ((uint16_t*)p.B->virt_addr)[i] = half_of(b[i]);
  }
  if (run_product(&p) < 0) return -1;
  int wrong = 0;
  const float* c = (const float*)p.C->virt_addr;
  for (int m = 0; m < kM; ++m)
    for (int n = 0; n < kN; ++n) {
      int sum = 0;
      for (int k = 0; k < kK; ++k) sum += a[m * kK + k] * b[k * kN + n];
      wrong += c[m * kN + n] != (float)sum;
    }
  close_product(&p);
  return wrong;
}

/* int8 x int8 -> float32 with a scale for each channel of B. */
static int channel_product(void) {
  product p;
  memset(&p, 0, sizeof p);
  p.info.M = 1;
  p.info.K = kK;
  p.info.N = kN;
  p.info.type = RKNN_INT8_MM_INT8_TO_FLOAT32;
  p.info.B_quant_type = RKNN_QUANT_TYPE_PER_CHANNEL_SYM;
  int ret = rknn_matmul_create(&p.ctx, &p.info, &p.io);
  if (ret < 0) return failed("rknn_matmul_create", ret);
  static float scales[kN];
  for (int n = 0; n < kN; ++n) scales[n] = 1.0f / (float)(1 << n % 8);
  rknn_quant_params params;
  memset(&params, 0, sizeof params);
  strcpy(params.name, "B");
  params.scale = scales;
  params.scale_len = kN;
  ret = rknn_matmul_set_quant_params(p.ctx, &params);
  if (ret < 0) return failed("rknn_matmul_set_quant_params", ret);
  p.A = rknn_create_mem(p.ctx, p.io.A.size);
  p.B = rknn_create_mem(p.ctx, p.io.B.size);
  p.C = rknn_create_mem(p.ctx, p.io.C.size);
  memset(p.A->virt_addr, 1, p.io.A.size);
  memset(p.B->virt_addr, 2, p.io.B.size);
  if (run_product(&p) < 0) return -1;
  int wrong = 0;
  for (int n = 0; n < kN; ++n) wrong += ((float*)p.C->virt_addr)[n] != 2 * kK * scales[n];
  close_product(&p);
  return wrong;
}

/* One product of several M. */
static int dynamic_products(void) {
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_info info;
  memset(&info, 0, sizeof info);
  info.type = RKNN_INT8_MM_INT8_TO_INT32;
  info.B_layout = RKNN_MM_LAYOUT_NATIVE;
  rknn_matmul_shape shapes[] = {{1, kK, kN}, {4, kK, kN}, {16, kK, kN}};
  rknn_matmul_io_attr io[3];
  int ret = rknn_matmul_create_dynamic_shape(&ctx, &info, 3, shapes, io);
  if (ret < 0) return failed("rknn_matmul_create_dynamic_shape", ret);
  rknn_tensor_mem* A = rknn_create_mem(ctx, io[2].A.size);
  rknn_tensor_mem* B = rknn_create_mem(ctx, io[2].B.size);
  rknn_tensor_mem* C = rknn_create_mem(ctx, io[2].C.size);
  memset(A->virt_addr, 3, io[2].A.size);
  memset(B->virt_addr, 1, io[2].B.size);
  int wrong = 0;
  for (int i = 0; i < 3; ++i) {
    ret = rknn_matmul_set_dynamic_shape(ctx, &shapes[i]);
    if (ret < 0) return failed("rknn_matmul_set_dynamic_shape", ret);
    rknn_matmul_set_io_mem(ctx, A, &io[i].A);
    if (i == 0) rknn_matmul_set_io_mem(ctx, B, &io[i].B);
    rknn_matmul_set_io_mem(ctx, C, &io[i].C);
    memset(C->virt_addr, 0, io[2].C.size);
    ret = rknn_matmul_run(ctx);
    if (ret < 0) return failed("rknn_matmul_run", ret);
    for (int j = 0; j < 16 * kN; ++j)
      wrong += ((int32_t*)C->virt_addr)[j] != (j < shapes[i].M * kN ? 3 * kK : 0);
  }
  rknn_destroy_mem(ctx, A);
  rknn_destroy_mem(ctx, B);
  rknn_destroy_mem(ctx, C);
  rknn_matmul_destroy(ctx);
  return wrong;
}

int main(int argc, char** argv) {
  if (argc > 1) core_mask = (rknn_core_mask)atoi(argv[1]);
  const int wrong[] = {int8_products(RKNN_MM_LAYOUT_NORM), int8_products(RKNN_MM_LAYOUT_NATIVE),
                       float16_product(), channel_product(), dynamic_products()};
  int sum = 0;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    if (wrong[i] != 0) printf("product %zu: %d elements are wrong\n", i, wrong[i]);
    sum |= wrong[i];
  }
  printf("%s\n", sum == 0 ? "all products are right" : "FAILED");
  return sum != 0;
}
