#include "rknn_picture.h"

#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int picture_read(const char* path, picture* out) {
  memset(out, 0, sizeof *out);
  png_image image;
  memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_file(&image, path)) {
    fprintf(stderr, "%s: %s\n", path, image.message);
    return -1;
  }
  // Values of 16 bits are meant as those of 8 bits are; libpng takes them for linear light.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.format = PNG_FORMAT_RGB;
  if (image.width == 0 || image.height == 0 || image.width > 32768 || image.height > 32768) {
    fprintf(stderr, "%s: %u x %u pixels; sides of 1 to 32768 are read\n", path, image.width,
            image.height);
    png_image_free(&image);
    return -1;
  }
  unsigned char* pixels = malloc(PNG_IMAGE_SIZE(image));
  const png_color white = {255, 255, 255};
  if (pixels == NULL || !png_image_finish_read(&image, &white, pixels, 0, NULL)) {
    fprintf(stderr, "%s: %s\n", path, pixels == NULL ? "out of memory" : image.message);
    png_image_free(&image);
    free(pixels);
    return -1;
  }
  out->width = (int)image.width;
  out->height = (int)image.height;
  out->pixels = pixels;
  return 0;
}

/// The pixels of a row or column that one pixel of the result is made of, and how much of each.
typedef struct span {
  int first, count;
  const float* weights;
} span;

/// A triangle as wide as the larger of the two pixels: linear on the way up, area on the way down.
static int spans_make(int from, int to, span** spans, float** weights) {
  const double step = (double)from / to;
  const double reach = step > 1 ? step : 1;
  const int most = (int)(2 * reach) + 3;
  *spans = malloc(sizeof **spans * (size_t)to);
  *weights = malloc(sizeof **weights * (size_t)to * (size_t)most);
  if (*spans == NULL || *weights == NULL) return -1;
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * step;
    int first = (int)(centre - reach);
    int last = (int)(centre + reach);
    if (first < 0) first = 0;
    if (last > from - 1) last = from - 1;
    float* const mine = *weights + (size_t)i * (size_t)most;
    double total = 0;
    for (int k = first; k <= last; ++k) {
      const double away = (k + 0.5 - centre) / reach;
      const double weight = away < 0 ? 1 + away : 1 - away;
      mine[k - first] = weight > 0 ? (float)weight : 0.0f;
      total += (double)mine[k - first];
    }
    for (int k = first; k <= last; ++k) mine[k - first] = (float)((double)mine[k - first] / total);
    (*spans)[i] = (span){first, last - first + 1, mine};
  }
  return 0;
}

static void resize_rows(const picture* in, const span* columns, int width, float* out) {
  for (int y = 0; y < in->height; ++y) {
    const unsigned char* const row = in->pixels + (size_t)y * (size_t)in->width * 3;
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        float sum = 0;
        for (int k = 0; k < columns[x].count; ++k)
          sum += columns[x].weights[k] * (float)row[(columns[x].first + k) * 3 + c];
        *out++ = sum;
      }
  }
}

static void resize_columns(const float* in, const span* rows, int width, int height,
                           unsigned char* out) {
  const size_t pitch = (size_t)width * 3;
  for (int y = 0; y < height; ++y)
    for (size_t x = 0; x < pitch; ++x) {
      float sum = 0.5f;
      for (int k = 0; k < rows[y].count; ++k)
        sum += rows[y].weights[k] * in[(size_t)(rows[y].first + k) * pitch + x];
      *out++ = sum > 255 ? 255 : (unsigned char)sum;
    }
}

int picture_resize(const picture* in, int width, int height, picture* out) {
  memset(out, 0, sizeof *out);
  if (in->pixels == NULL || width <= 0 || height <= 0) return -1;
  span *columns = NULL, *rows = NULL;
  float *column_weights = NULL, *row_weights = NULL;
  float* const half = malloc(sizeof(float) * (size_t)width * (size_t)in->height * 3);
  unsigned char* const pixels = malloc((size_t)width * (size_t)height * 3);
  int result = -1;
  if (half != NULL && pixels != NULL &&
      spans_make(in->width, width, &columns, &column_weights) == 0 &&
      spans_make(in->height, height, &rows, &row_weights) == 0) {
    resize_rows(in, columns, width, half);
    resize_columns(half, rows, width, height, pixels);
    *out = (picture){width, height, pixels};
    result = 0;
  } else {
    free(pixels);
  }
  free(half);
  free(columns);
  free(column_weights);
  free(rows);
  free(row_weights);
  return result;
}

void picture_swap_red_blue(picture* p) {
  const size_t size = (size_t)p->width * (size_t)p->height * 3;
  for (size_t i = 0; i + 2 < size; i += 3) {
    const unsigned char red = p->pixels[i];
    p->pixels[i] = p->pixels[i + 2];
    p->pixels[i + 2] = red;
  }
}

void picture_free(picture* p) {
  free(p->pixels);
  memset(p, 0, sizeof *p);
}

unsigned char* file_read(const char* path, size_t* size) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return NULL;
  }
  unsigned char* data = NULL;
  const long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (length > 0 && fseek(file, 0, SEEK_SET) == 0) data = malloc((size_t)length);
  if (data == NULL || fread(data, 1, (size_t)length, file) != (size_t)length) {
    fprintf(stderr, "%s: cannot be read\n", path);
    free(data);
    data = NULL;
  }
  fclose(file);
  *size = data == NULL ? 0 : (size_t)length;
  return data;
}

int file_write(const char* path, const void* data, size_t size) {
  FILE* const file = fopen(path, "wb");
  const int good = file != NULL && fwrite(data, 1, size, file) == size;
  const int closed = file != NULL && fclose(file) == 0;
  if (good && closed) return 0;
  fprintf(stderr, "%s: %s\n", path, strerror(errno));
  return -1;
}
