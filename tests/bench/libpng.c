/* Encodes one RGB picture with libpng at level 1 and says how long it took.
 *
 * usage: libpng-level1 WIDTH HEIGHT ROUNDS < RGB
 * prints: processor milliseconds per picture (the fastest round), bytes of the PNG
 */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sink {
    unsigned char *data;
    size_t length, room;
};

static void write_bytes(png_structp png, png_bytep bytes, png_size_t count)
{
    struct sink *sink = png_get_io_ptr(png);
    if (sink->length + count > sink->room)
        png_error(png, "the PNG is larger than the picture");
    memcpy(sink->data + sink->length, bytes, count);
    sink->length += count;
}

static void flush_bytes(png_structp png)
{
    (void)png;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void encode(const unsigned char *rgb, unsigned width, unsigned height, struct sink *sink)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    sink->length = 0;
    png_set_write_fn(png, sink, write_bytes, flush_bytes);
    png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    png_set_compression_level(png, 1);
    /* The filter with which libpng is fastest; choosing one per row takes it nearly twice as long. */
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
    png_write_info(png, info);
    for (unsigned y = 0; y < height; y++)
        png_write_row(png, rgb + (size_t)y * width * 3);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    unsigned width = (unsigned)atoi(argv[1]), height = (unsigned)atoi(argv[2]);
    int rounds = atoi(argv[3]);
    size_t bytes = (size_t)width * height * 3;
    unsigned char *rgb = malloc(bytes);
    struct sink sink = {malloc(2 * bytes + 4096), 0, 2 * bytes + 4096};
    if (!rgb || !sink.data || fread(rgb, 1, bytes, stdin) != bytes)
        return 1;
    double best = 1e9;
    for (int round = 0; round < rounds; round++) {
        double start = now_ms();
        encode(rgb, width, height, &sink);
        double took = now_ms() - start;
        if (took < best)
            best = took;
    }
    printf("%.4f %zu\n", best, sink.length);
    return 0;
}
