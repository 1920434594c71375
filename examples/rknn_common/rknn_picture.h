/// Pictures and files for the RKNN examples: what stb_image, libpng or OpenCV do in a program of
/// your own. Nothing here knows the API.
#ifndef RKNN_PICTURE_H
#define RKNN_PICTURE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Rows of RGB pixels, one byte a channel, without gaps. `pixels` comes from malloc.
typedef struct picture {
  int width;
  int height;
  unsigned char* pixels;
} picture;

/// Reads a PNG of any kind as RGB. 0, or -1 with a line on stderr; `out` is empty then.
int picture_read(const char* path, picture* out);
/// Scales by area on the way down and linearly on the way up. 0, or -1 without memory.
int picture_resize(const picture* in, int width, int height, picture* out);
/// RGB to BGR and back, in place.
void picture_swap_red_blue(picture* p);
/// Frees the pixels; fine for an empty picture.
void picture_free(picture* p);

/// All bytes of a file in memory from malloc; NULL with a line on stderr.
unsigned char* file_read(const char* path, size_t* size);
/// 0, or -1 with a line on stderr.
int file_write(const char* path, const void* data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
