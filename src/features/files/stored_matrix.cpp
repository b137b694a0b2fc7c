#include "features/files/stored_matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {

std::string StoredTensor::label() const {
  return fmt::format("'{}': tensor '{}'", file->path().string(), printable(view.name));
}

void StoredTensor::check_shape(std::span<const std::int64_t> shape) const {
  bool fits = view.shape.size() == shape.size();
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    wanted.push_back(shape[i] < 0 ? "*" : std::to_string(shape[i]));
    fits = fits && (shape[i] < 0 || view.shape[i] == shape[i]);
  }
  if (!fits) fail("{} is {}, should be [{}]", label(), shape_text(view.shape), join(wanted, ", "));
}

void StoredTensor::check(std::span<const std::int64_t> shape) const {
  check_shape(shape);
  if (view.kind != TensorKind::kF32 && view.kind != TensorKind::kBf16 &&
      view.kind != TensorKind::kF16)
    fail("{} is {}; F32, BF16 and F16 can be read", label(), name_of(view.kind));
}

Tensor StoredTensor::read() const {
  Tensor tensor = Tensor::empty(Shape(view.shape));
  read_f32(view, {tensor.mutable_f32(), static_cast<std::size_t>(tensor.elements())});
  return tensor;
}

StoredTensor StoredTensor::part(std::int64_t index) const {
  StoredTensor part = *this;
  part.view.shape.erase(part.view.shape.begin());
  const std::size_t bytes = tensor_bytes(view.name, view.kind, part.view.shape);
  part.view.data = view.data.subspan(static_cast<std::size_t>(index) * bytes, bytes);
  return part;
}

StoredMatrix::StoredMatrix(StoredTensor tensor, std::int64_t rows, std::int64_t width,
                           bool by_column, float factor)
    : tensor_(std::move(tensor)),
      rows_(rows),
      width_(width),
      by_column_(by_column),
      factor_(factor) {}

StoredMatrix::StoredMatrix(StoredTensor integers, Tensor scales, std::int64_t rows,
                           std::int64_t width)
    : StoredMatrix(std::move(integers), rows, width) {
  scales_ = std::move(scales);
}

void StoredMatrix::read(std::int64_t first, std::int64_t count, float* to) const {
  if (scales_.defined()) {
    const auto* integers = reinterpret_cast<const std::int8_t*>(
        tensor_.view.bytes(static_cast<std::size_t>(first), static_cast<std::size_t>(count))
            .data());
    const std::int64_t stretch = tensor_.view.shape.back();
    for (std::int64_t begin = 0; begin < count;) {
      const std::int64_t number = (first + begin) / stretch;
      const std::int64_t end = std::min(count, (number + 1) * stretch - first);
      const float scale = scales_.f32()[number];
      for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(integers[i]) * scale;
      begin = end;
    }
    return;
  }
  const std::size_t bytes = bits_of(tensor_.view.kind) / 8;
  const TensorView part{{},
                        tensor_.view.kind,
                        {count},
                        tensor_.view.bytes(static_cast<std::size_t>(first) * bytes,
                                           static_cast<std::size_t>(count) * bytes),
                        {}};
  read_f32(part, {to, static_cast<std::size_t>(count)});
  if (factor_ != 1.0f)
    for (std::int64_t i = 0; i < count; ++i) to[i] *= factor_;
}

Tensor StoredMatrix::block(std::int64_t begin, std::int64_t count) const {
  if (!by_column_ && factor_ == 1.0f && tensor_.view.kind == TensorKind::kF32 &&
      tensor_.view.aligned())
    return Tensor::borrow({count, width_}, DType::kF32, tensor_.file,
                          tensor_.view
                              .bytes(static_cast<std::size_t>(begin * width_) * sizeof(float),
                                     static_cast<std::size_t>(count * width_) * sizeof(float))
                              .data());
  Tensor rows = Tensor::empty({count, width_});
  if (!by_column_) {
    read(begin * width_, count * width_, rows.mutable_f32());
    return rows;
  }
  std::vector<float> column(static_cast<std::size_t>(count));
  for (std::int64_t w = 0; w < width_; ++w) {
    read(w * rows_ + begin, count, column.data());
    for (std::int64_t r = 0; r < count; ++r)
      rows.mutable_f32()[r * width_ + w] = column[static_cast<std::size_t>(r)];
  }
  return rows;
}

void StoredMatrix::read_row(std::int64_t row, float* to) const {
  if (!by_column_) return read(row * width_, width_, to);
  for (std::int64_t w = 0; w < width_; ++w) read(w * rows_ + row, 1, to + w);
}

void StoredMatrix::release(std::int64_t begin, std::int64_t count) const {
  const std::size_t bytes = bits_of(tensor_.view.kind) / 8;
  const std::span<const std::byte> data = tensor_.view.data;
  // A block of columns lies all over the matrix, and the next one in the same pages.
  if (by_column_)
    tensor_.file->release(data);
  else
    tensor_.file->release(data.subspan(static_cast<std::size_t>(begin * width_) * bytes,
                                       static_cast<std::size_t>(count * width_) * bytes));
}

}  // namespace filigree
