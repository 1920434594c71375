/* What a test sees of the stub vendor library: how often each function was called, and with what.
 */
#ifndef STUB_VENDOR_H
#define STUB_VENDOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t inits;
  uint32_t dups;
  uint32_t destroys;
  uint32_t inputs_sets;
  uint32_t refused_inputs;
  uint32_t runs;
  uint32_t outputs_gets;
  uint32_t outputs_releases;
  uint32_t core_masks;
  uint32_t last_mask;
  uint32_t shape_sets;
  uint32_t model_size; /* Of the last rknn_init. */
  uint64_t model_sum;  /* FNV-1a of its bytes. */
} stub_counts;

void stub_look(stub_counts* counts);
/* The calls since stub_forget() in their order, a letter each, as many as fit: I rknn_init, D
 * rknn_dup_context, M rknn_set_core_mask, R rknn_run, X rknn_destroy. */
void stub_order(char* text, uint32_t size);
void stub_forget(void);

#ifdef __cplusplus
}
#endif

#endif
