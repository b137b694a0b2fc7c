#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/atomic_file.h"
#include "figure/canvas.h"
#include "figure/png_chunks.h"
#include "figure/svg_cleanup.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

struct SurfaceDeleter {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
using SurfacePtr = std::unique_ptr<cairo_surface_t, SurfaceDeleter>;

struct ContextDeleter {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};
using ContextPtr = std::unique_ptr<cairo_t, ContextDeleter>;

cairo_status_t append_bytes(void* closure, const unsigned char* data, unsigned int length) {
  // Called from C: an exception must not pass through it.
  try {
    static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  } catch (const std::bad_alloc&) {
    return CAIRO_STATUS_NO_MEMORY;
  }
  return CAIRO_STATUS_SUCCESS;
}

void check(cairo_status_t status, const Figure& figure) {
  require(status == CAIRO_STATUS_SUCCESS, "figure '{}' of {:.0f} x {:.0f} points: {}",
          printable(figure.title), figure.size.width, figure.size.height,
          cairo_status_to_string(status));
}

void draw_on(cairo_surface_t* surface, const Figure& figure, double pixels_per_point,
             bool has_pixels) {
  const ContextPtr context(cairo_create(surface));
  if (has_pixels) cairo_scale(context.get(), pixels_per_point, pixels_per_point);
  Canvas canvas(context.get(), pixels_per_point, has_pixels);
  // The whole surface: the last row of pixels may lie partly beyond the page.
  const Color& page = figure.background;
  cairo_set_source_rgb(context.get(), page.red, page.green, page.blue);
  cairo_paint(context.get());
  figure.draw(canvas);
  check(cairo_status(context.get()), figure);
}

std::string render_vector(const Figure& figure, Format format, double heatmap_dpi) {
  std::string bytes;
  const auto create = format == Format::kSvg ? cairo_svg_surface_create_for_stream
                                             : cairo_pdf_surface_create_for_stream;
  const SurfacePtr surface(create(append_bytes, &bytes, figure.size.width, figure.size.height));
  check(cairo_surface_status(surface.get()), figure);
  if (format == Format::kPdf) {
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE,
                                   visible_text(figure.title).c_str());
    // Cairo would write the time of day here, and two runs would never agree.
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE,
                                   "2000-01-01T00:00:00Z");
  } else {
    cairo_svg_surface_set_document_unit(surface.get(), CAIRO_SVG_UNIT_PT);
  }
  draw_on(surface.get(), figure, heatmap_dpi / 72, false);
  cairo_surface_finish(surface.get());
  check(cairo_surface_status(surface.get()), figure);
  return format == Format::kSvg ? clean_svg(bytes, visible_text(figure.title)) : bytes;
}

std::string render_png(const Figure& figure, double dpi) {
  const double scale = dpi / 72;
  // Cairo's own limit for one side of a picture.
  constexpr double kMostPixels = 32767;
  const double width = std::ceil(figure.size.width * scale);
  const double height = std::ceil(figure.size.height * scale);
  require(std::max(width, height) <= kMostPixels,
          "figure '{}' would have {:.0f} x {:.0f} pixels at {} dpi, more than {} on a side: choose "
          "at most {:.0f} dpi, or SVG or PDF",
          printable(figure.title), width, height, dpi, kMostPixels,
          std::floor(72 * kMostPixels / std::max(figure.size.width, figure.size.height)));
  const SurfacePtr surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width),
                                                      static_cast<int>(height)));
  check(cairo_surface_status(surface.get()), figure);
  draw_on(surface.get(), figure, scale, true);
  std::string bytes;
  check(cairo_surface_write_to_png_stream(surface.get(), append_bytes, &bytes), figure);
  insert_resolution(bytes, dpi);
  return bytes;
}

}  // namespace

Format format_of(const std::filesystem::path& path) {
  if (const std::optional<Format> format = find_format(path)) return *format;
  fail("cannot save a figure as '{}': end the name in .svg, .pdf or .png", path.string());
}

std::string render(const Figure& figure, Format format, const SaveOptions& options) {
  for (const double dpi : {options.dpi, options.heatmap_dpi})
    require(std::isfinite(dpi) && dpi >= 10 && dpi <= 2400,
            "figure: a resolution of {} dpi; choose 10 to 2400", dpi);
  if (format == Format::kPng) return render_png(figure, options.dpi);
  return render_vector(figure, format, options.heatmap_dpi);
}

void save(const Figure& figure, const std::filesystem::path& path, const SaveOptions& options) {
  const Format format = format_of(path);
  AtomicFile file(path);  // before the drawing: a wrong path is known at once
  file.write(render(figure, format, options));
  file.commit();
}

}  // namespace filigree::figure
