#include "ops/output_loss/output_loss.h"

#include <algorithm>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "ops/cross_entropy/targets.h"
#include "ops/elementwise/elementwise_kernels.h"
#include "ops/matmul/gemm.h"
#include "ops/output_loss/output_loss_kernels.h"
#include "ops/reduce/total.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

// Memory of the logits that live at a time. The gradient of the weight is read and written once a
// chunk, which is little beside the products when a chunk has thousands of rows.
constexpr std::int64_t kChunkBytesOnCpu = std::int64_t{256} << 20;
constexpr std::int64_t kChunkBytesOnGpu = std::int64_t{1} << 30;
constexpr std::int64_t kRowsAtOnce = 128;  // chunks are multiples of it: whole tiles of products

void check_layer(const Shape& x, const LinearWeight& output, const char* whose) {
  require(
      !output.bias.defined() || output.bias.shape() == Shape{output.outputs()},
      "output_loss: the bias {} of the {} output layer is not one number for each of {} outputs",
      output.bias.defined() ? output.bias.shape().to_string() : "", whose, output.outputs());
  require(output.weight.shape().rank() == 2 && x.rank() >= 1 && x[-1] == output.inputs(),
          "output_loss: the {} input {} does not end in the weight's {} inputs", whose,
          x.to_string(), output.inputs());
}

// Equal chunks of whole tiles, as few as the memory allows.
std::int64_t chunk_rows(std::int64_t rows, std::int64_t row_bytes, DeviceKind device) {
  const std::int64_t bytes = device == DeviceKind::kCpu ? kChunkBytesOnCpu : kChunkBytesOnGpu;
  const std::int64_t most = std::max(kRowsAtOnce, bytes / std::max<std::int64_t>(row_bytes, 1));
  const std::int64_t chunks = (rows + most - 1) / most;
  const std::int64_t even = (rows + chunks - 1) / chunks;
  return (even + kRowsAtOnce - 1) / kRowsAtOnce * kRowsAtOnce;
}

struct WeightStrides {
  std::int64_t in, out;
};
WeightStrides weight_strides(const LinearWeight& w) {
  return w.out_in ? WeightStrides{1, w.inputs()} : WeightStrides{w.weight.size(1), 1};
}

// The products of a layer take its outputs in up to two ranges: tensor cores are several times
// slower on a range that is no multiple of 8 outputs, so what is over goes by itself, first. Only a
// weight of [out, in] can be cut so: each output is a row.
struct Range {
  std::int64_t begin, end;
};
std::vector<Range> ranges(const LinearWeight& w, DeviceKind device) {
  const std::int64_t all = w.outputs(), whole = all / 8 * 8;
  if (device == DeviceKind::kCpu || !w.out_in || whole == 0 || whole == all) return {{0, all}};
  return {{whole, all}, {0, whole}};
}

// logits[rows, V] = x[rows, width] W + b.
template <typename T>
void multiply(const Tensor& x, const LinearWeight& w, std::int64_t begin, std::int64_t rows,
              Tensor& logits) {
  for (const Range& range : ranges(w, x.device())) {
    GemmArgs<T> args;
    args.M = rows, args.N = range.end - range.begin, args.K = w.inputs();
    args.A = x.data<T>() + begin * args.K, args.a_row = args.K;
    args.B = w.weight.as(x.dtype()).data<T>() + range.begin * weight_strides(w).out;
    args.b_row = weight_strides(w).in, args.b_col = weight_strides(w).out;
    args.C = logits.mutable_data<T>() + range.begin, args.c_row = logits.size(1);
    if (w.bias.defined()) args.bias = w.bias.as(x.dtype()).data<T>() + range.begin;
    gemm_on(x.device(), args);
  }
}

// dx[rows, width] = dlogits W^T.
template <typename T>
void multiply_back(const Tensor& dlogits, std::int64_t rows, const LinearWeight& w, T* dx) {
  bool first = true;
  for (const Range& range : ranges(w, dlogits.device())) {
    GemmArgs<T> args;
    args.M = rows, args.N = w.inputs(), args.K = range.end - range.begin;
    args.A = dlogits.data<T>() + range.begin, args.a_row = dlogits.size(1);
    args.B = w.weight.as(dlogits.dtype()).data<T>() + range.begin * weight_strides(w).out;
    args.b_row = weight_strides(w).out, args.b_col = weight_strides(w).in;
    args.C = dx, args.c_row = args.N;
    args.accumulate = !first;
    gemm_on(dlogits.device(), args);
    first = false;
  }
}

// dW [+]= X^T dlogits, in the layout of the weight.
template <typename T>
void weight_gradient(const T* x, const Tensor& dlogits, std::int64_t rows, const LinearWeight& w,
                     bool accumulate, Tensor& dw) {
  const std::int64_t width = w.inputs(), step = dlogits.size(1);
  for (const Range& range : ranges(w, dlogits.device())) {
    GemmArgs<T, float> args;
    args.K = rows;
    args.accumulate = accumulate;
    args.C = dw.mutable_data<float>() + range.begin * weight_strides(w).out;
    if (w.out_in) {
      args.M = range.end - range.begin, args.N = width, args.c_row = width;  // dW^T = dlogits^T X
      args.A = dlogits.data<T>() + range.begin, args.a_row = 1, args.a_col = step;
      args.B = x, args.b_row = width;
    } else {
      args.M = width, args.N = w.outputs(), args.c_row = w.outputs();
      args.A = x, args.a_row = 1, args.a_col = width;
      args.B = dlogits.data<T>(), args.b_row = step;
    }
    gemm_on(dlogits.device(), args);
  }
}

// db [+]= the sum over the rows of dlogits.
void bias_gradient(const Tensor& dlogits, std::int64_t rows, std::int64_t outputs, Tensor& db) {
  const NoGrad no_grad;
  const Variable all = placed(dlogits.rows(0, rows), dlogits.device(), DType::kF32);
  const Variable own = slice(sum(all, 0), 0, 0, outputs);
  db = db.defined() ? add(db, own).value() : own.value();
}

template <typename T>
void unary_on(DeviceKind device, const UnaryArgs<T>& args) {
  if constexpr (std::is_same_v<T, float>) {
    if (device == DeviceKind::kCpu) cpu::unary(args);
  }
  if constexpr (kHasCuda) {
    if (device == DeviceKind::kCuda) cuda::unary(args);
  }
}

// Caps logits where they lie and leaves tanh(logit / cap) in `tanhs`.
template <typename T>
void cap_logits(Tensor& logits, std::int64_t rows, float cap, Tensor& tanhs) {
  T *values = logits.mutable_data<T>(), *t = tanhs.mutable_data<T>();
  const std::int64_t count = rows * logits.size(1);
  unary_on<T>(logits.device(), {Unary::kScaleShift, count, 1.0f / cap, 0.0f, values, t});
  unary_on<T>(logits.device(), {Unary::kTanh, count, 1.0f, 0.0f, t, t});
  unary_on<T>(logits.device(), {Unary::kScaleShift, count, cap, 0.0f, t, values});
}

// The gradient of capped logits becomes that of what they were.
template <typename T>
void uncap_gradient(Tensor& gradient, std::int64_t rows, const Tensor& tanhs) {
  T* values = gradient.mutable_data<T>();
  const UnaryGradArgs<T> args{Unary::kTanh,    rows * gradient.size(1), 1.0f,
                              tanhs.data<T>(), tanhs.data<T>(),         values,
                              values};
  if constexpr (std::is_same_v<T, float>) {
    if (gradient.device() == DeviceKind::kCpu) cpu::unary_grad(args);
  }
  if constexpr (kHasCuda) {
    if (gradient.device() == DeviceKind::kCuda) cuda::unary_grad(args);
  }
}

// What one pass over the chunks leaves behind.
struct Work {
  Tensor cross, divergence, teacher_cross;  // [rows]
  Tensor dx, dw;                            // undefined where not wanted
  bool wants_db = false;
  Tensor db;
};

template <typename T>
void run_chunks(const Variable& x, const LinearWeight& w, const Tensor& targets,
                const OutputLossOptions& options, float factor, std::int64_t chunk, Work& work) {
  const DeviceKind device = x.value().device();
  const std::int64_t width = w.inputs(), V = w.outputs(), rows = targets.elements();
  // Rows of 16 bytes' multiples on the GPU, whose tensor cores are slow on others.
  const std::int64_t step = device == DeviceKind::kCpu ? V : (V + 63) / 64 * 64;
  Tensor logits = x.value().like({std::min(chunk, rows), step});
  const Teacher* teacher = options.teacher;
  Tensor taught = teacher != nullptr ? logits.like(logits.shape()) : Tensor();
  const bool caps = options.soft_cap > 0.0f || (teacher != nullptr && teacher->soft_cap > 0.0f);
  Tensor tanhs = caps ? logits.like(logits.shape()) : Tensor();
  for (std::int64_t begin = 0; begin < rows; begin += chunk) {
    const std::int64_t count = std::min(chunk, rows - begin);
    multiply<T>(x.value(), w, begin, count, logits);
    if (teacher != nullptr) multiply<T>(teacher->x, teacher->output, begin, count, taught);
    if (teacher != nullptr && teacher->soft_cap > 0.0f)
      cap_logits<T>(taught, count, teacher->soft_cap, tanhs);
    if (options.soft_cap > 0.0f) cap_logits<T>(logits, count, options.soft_cap, tanhs);
    LossRowsArgs<T> args;
    args.rows = count, args.width = V, args.step = step;
    args.logits = logits.mutable_data<T>();
    args.teacher = teacher != nullptr ? taught.mutable_data<T>() : nullptr;
    args.targets = targets.data<std::int32_t>() + begin;
    args.distillation = options.distillation;
    args.gradient = work.dx.defined() || work.dw.defined() || work.wants_db;
    args.factor = factor;
    args.cross_entropy = work.cross.mutable_data<float>() + begin;
    if (teacher != nullptr) {
      args.divergence = work.divergence.mutable_data<float>() + begin;
      args.teacher_cross_entropy = work.teacher_cross.mutable_data<float>() + begin;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (device == DeviceKind::kCpu) cpu::loss_rows(args);
    }
    if constexpr (kHasCuda) {
      if (device == DeviceKind::kCuda) cuda::loss_rows(args);
    }
    if (options.soft_cap > 0.0f && args.gradient) uncap_gradient<T>(logits, count, tanhs);
    if (work.dx.defined())
      multiply_back<T>(logits, count, w, work.dx.mutable_data<T>() + begin * width);
    if (work.dw.defined())
      weight_gradient<T>(x.value().data<T>() + begin * width, logits, count, w, begin > 0, work.dw);
    if (work.wants_db) bias_gradient(logits, count, V, work.db);
  }
}

// x *= factor, a tensor of one number on the same device.
void scale_in_place(Tensor& x, const Tensor& factor) {
  dispatch(
      "output_loss", x,
      [&] {
        const float by = factor.item();
        float* values = x.mutable_f32();
        if (by == 1.0f) return;
        for (std::int64_t i = 0; i < x.elements(); ++i) values[i] *= by;
      },
      [&](auto type) {
        using T = decltype(type);
        cuda::scale_by(x.mutable_data<T>(), x.elements(), factor.data<float>());
      });
}

}  // namespace

std::int64_t output_loss_bytes(std::int64_t rows, std::int64_t vocabulary, DType dtype,
                               DeviceKind device, bool taught, bool capped) {
  const std::int64_t row = vocabulary * static_cast<std::int64_t>(size_of(dtype));
  return std::min(rows, chunk_rows(rows, row, device)) * row *
         (1 + (taught ? 1 : 0) + (capped ? 1 : 0));
}

OutputLoss output_loss(const Variable& x, const LinearWeight& output, const Tensor& targets,
                       const OutputLossOptions& options) {
  check_layer(x.shape(), output, "model's");
  require_same_device("output_loss", x.value(), output.weight.value());
  const Teacher* teacher = options.teacher;
  require(options.distillation >= 0.0f && options.distillation <= 1.0f,
          "output_loss: the distillation weight {} is not between 0 and 1", options.distillation);
  require(teacher != nullptr || options.distillation == 0.0f,
          "output_loss: distillation needs a teacher");
  const std::int64_t V = output.outputs(), rows = x.shape().elements() / output.inputs();
  if (teacher != nullptr) {
    check_layer(teacher->x.shape(), teacher->output, "teacher's");
    require_same_device("output_loss", x.value(), teacher->x);
    require(teacher->output.outputs() == V && teacher->x.dtype() == x.value().dtype() &&
                teacher->x.elements() / teacher->output.inputs() == rows,
            "output_loss: the teacher's input {} ({}) and weight {} do not fit the model's {} ({}) "
            "and {}",
            teacher->x.shape().to_string(), name_of(teacher->x.dtype()),
            teacher->output.weight.shape().to_string(), x.shape().to_string(),
            name_of(x.value().dtype()), output.weight.shape().to_string());
  }
  const std::int64_t counted = count_targets("output_loss", targets, rows, V);
  const DeviceKind device = x.value().device();
  const Tensor places = targets.to(device);
  const bool recorded = needs_grad({&x, &output.weight, &output.bias});
  Work work;
  work.cross = Tensor::empty({rows}, DType::kF32, device);
  if (teacher != nullptr)
    work.divergence = work.cross.like({rows}), work.teacher_cross = work.cross.like({rows});
  if (recorded && x.requires_grad()) work.dx = x.value().like(x.shape());
  if (recorded && output.weight.requires_grad())
    work.dw = output.weight.value().like(output.weight.shape());
  work.wants_db = recorded && output.bias.defined() && output.bias.requires_grad();
  const std::int64_t row_bytes = V * static_cast<std::int64_t>(size_of(x.value().dtype()));
  const std::int64_t chunk =
      options.chunk_rows > 0 ? options.chunk_rows : chunk_rows(rows, row_bytes, device);
  const float factor = 1.0f / static_cast<float>(counted);
  const auto run = [&](auto type) {
    run_chunks<decltype(type)>(x, output, places, options, factor, chunk, work);
  };
  dispatch(
      "output_loss", x.value(), [&] { run(float()); }, run);

  OutputLoss result;
  const double mean = 1.0 / static_cast<double>(counted);
  result.cross_entropy = total(work.cross, mean);
  Tensor loss = result.cross_entropy;
  if (teacher != nullptr) {
    result.divergence = total(work.divergence, mean);
    result.teacher_cross_entropy = total(work.teacher_cross, mean);
    const auto kd = static_cast<double>(options.distillation);
    if (kd > 0.0) {
      Tensor both = work.cross.like({2});
      both.rows(0, 1).copy_from(total(work.cross, mean * (1.0 - kd)).reshape({1}));
      both.rows(1, 2).copy_from(total(work.divergence, mean * kd).reshape({1}));
      loss = total(both, 1.0);
    }
  }
  Tensor dx = work.dx, dw = work.dw, db = work.db;
  work = Work();
  result.loss = make_result(loss, {&x, &output.weight, &output.bias},
                            [x, output, dx, dw, db](const Tensor& grad) mutable {
                              if (dx.defined()) {
                                scale_in_place(dx, grad);
                                x.accumulate_grad(std::move(dx));
                              }
                              if (dw.defined()) {
                                scale_in_place(dw, grad);
                                output.weight.accumulate_grad(std::move(dw));
                              }
                              if (db.defined()) {
                                scale_in_place(db, grad);
                                output.bias.accumulate_grad(std::move(db));
                              }
                            });
  return result;
}

}  // namespace filigree
