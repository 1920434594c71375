/* Programs of releases 1.5.0 and 1.6.0: their description of a matrix product has 24 bytes, today's
 * has 64. The first members mean the same, and whatever follows them has no effect, even when
 * nothing that can be read follows. */
#include <sys/mman.h>
#include <unistd.h>

#include "old_abi.h"

int rknn_matmul_create(old_context* context, old_matmul_info* info, old_matmul_io_attr* io);
int rknn_matmul_set_io_mem(old_context context, old_tensor_mem* mem, old_matmul_tensor_attr* attr);
int rknn_matmul_run(old_context context);
int rknn_matmul_destroy(old_context context);
old_tensor_mem* rknn_create_mem(old_context context, uint32_t size);
int rknn_destroy_mem(old_context context, old_tensor_mem* mem);

enum { kM = 3, kK = 64, kN = 32, kTensorInt8 = 2, kInt8ToInt32 = 2, kParamInvalid = -5 };

typedef union {
  old_matmul_info info;
  unsigned char bytes[64];
} room;

static room product(uint32_t type, unsigned char behind) {
  room given;
  memset(&given, behind, sizeof given);
  given.info.M = kM;
  given.info.K = kK;
  given.info.N = kN;
  given.info.type = type;
  given.info.b_layout = 0;
  given.info.ac_layout = 0;
  return given;
}

static void computes(old_matmul_info* info) {
  old_matmul_io_attr io;
  memset(&io, 0xA5, sizeof io);
  old_context context = 0;
  CHECK(rknn_matmul_create(&context, info, &io) == 0);
  if (context == 0) return;
  CHECK(strcmp(io.A.name, "A") == 0 && io.A.n_dims == 2 && io.A.dims[0] == kM);
  CHECK(io.A.size == kM * kK && io.B.size == kK * kN && io.C.size == kM * kN * 4);
  old_tensor_mem* a = rknn_create_mem(context, io.A.size);
  old_tensor_mem* b = rknn_create_mem(context, io.B.size);
  old_tensor_mem* c = rknn_create_mem(context, io.C.size);
  CHECK(a != NULL && b != NULL && c != NULL);
  if (a == NULL || b == NULL || c == NULL) return;
  int8_t* left = (int8_t*)a->virt_addr;
  int8_t* right = (int8_t*)b->virt_addr;
  for (int i = 0; i < kM * kK; ++i) left[i] = (int8_t)(i % 251 - 125);
  for (int i = 0; i < kK * kN; ++i) right[i] = (int8_t)(i % 239 - 119);
  CHECK(rknn_matmul_set_io_mem(context, a, &io.A) == 0);
  CHECK(rknn_matmul_set_io_mem(context, b, &io.B) == 0);
  CHECK(rknn_matmul_set_io_mem(context, c, &io.C) == 0);
  CHECK(rknn_matmul_run(context) == 0);
  const int32_t* got = (const int32_t*)c->virt_addr;
  for (int m = 0; m < kM; ++m) {
    for (int n = 0; n < kN; ++n) {
      int32_t sum = 0;
      for (int k = 0; k < kK; ++k) sum += left[m * kK + k] * right[k * kN + n];
      CHECK(got[m * kN + n] == sum);
    }
  }
  CHECK(rknn_destroy_mem(context, a) == 0);
  CHECK(rknn_destroy_mem(context, b) == 0);
  CHECK(rknn_destroy_mem(context, c) == 0);
  CHECK(rknn_matmul_destroy(context) == 0);
}

static void what_follows_has_no_effect(uint32_t type) {
  static const unsigned char behind[] = {0, 0xA5, 0xFF};
  for (unsigned i = 0; i < sizeof behind; ++i) {
    room given = product(type, behind[i]);
    computes(&given.info);
  }
}

static void nothing_need_follow(uint32_t type) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char* pages = (unsigned char*)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
  const room given = product(type, 0);
  unsigned char* last = pages + page - sizeof(old_matmul_info);
  memcpy(last, &given, sizeof(old_matmul_info));
  computes((old_matmul_info*)(void*)last);
  munmap(pages, 2 * page);
}

/* What only a program of today can mean is read as one of today: bytes that make no sense are
 * refused.
 */
static void todays_products_are_read_whole(void) {
  enum { kInt8ToFloat = 9 };
  room given = product(kInt8ToFloat, 0xA5);
  old_matmul_io_attr io;
  old_context context = 7;
  CHECK(rknn_matmul_create(&context, &given.info, &io) == kParamInvalid);
}

/* Null where the library lacks it. */
#pragma weak rknn_matmul_create
#pragma weak rknn_matmul_set_io_mem
#pragma weak rknn_matmul_run
#pragma weak rknn_matmul_destroy

int main(void) {
  if (rknn_matmul_create == NULL) {
    fprintf(stderr, "the library lacks rknn_matmul_create\n");
    return 1;
  }
  what_follows_has_no_effect(kTensorInt8);  /* 1.5.0: the type of A and B. */
  what_follows_has_no_effect(kInt8ToInt32); /* 1.6.0: the type of the product, the same number. */
  nothing_need_follow(kInt8ToInt32);
  todays_products_are_read_whole();
  printf("%d checks failed\n", failures);
  return failures != 0;
}
