// Products by cuBLASLt. It thinks in columns: a row-major C is the column-major C^T = B^T A^T, so B
// is its first factor, A its second, and our bias along the columns is its bias along the rows.
//
// Finding an algorithm costs more than a small product, so each kind of call is planned once and
// the plan kept. The plan, and with it every bit of the result, depends on the call's extents,
// strides, types and alignment alone.

#include <cublasLt.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

#include "filigree/device.h"
#include "filigree/runtime.h"
#include "ops/matmul/epilogue_cuda.h"
#include "ops/matmul/gemm.h"
#include "runtime/cuda/check_cuda.h"
#include "runtime/cuda/launch_cuda.h"

namespace filigree::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // what NVIDIA advises for Hopper

void check_blas(cublasStatus_t code, const char* what) {
  if (code == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  fail("cuda: cannot {}: cuBLASLt answered {} ({})", what, cublasLtGetStatusName(code),
       cublasLtGetStatusString(code));
}

struct DeleteDescription {
  void operator()(cublasLtMatmulDesc_t description) const {
    cublasLtMatmulDescDestroy(description);
  }
};
struct DeleteLayout {
  void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
};
struct DeletePreference {
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};
using Description = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, DeleteDescription>;
using Layout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, DeleteLayout>;
using Preference =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, DeletePreference>;

// A factor as cuBLASLt stores it: column-major, `transposed` when the product wants it the other
// way round.
struct Stored {
  std::int64_t rows = 0, cols = 0, leading = 0;
  bool transposed = false;
};

// The matrix of `rows` x `cols` at strides (row, col), of which one must be 1.
Stored stored(std::int64_t rows, std::int64_t cols, std::int64_t row, std::int64_t col) {
  if (row == 1 && (col >= rows || cols == 1)) return {rows, cols, std::max(col, rows), false};
  require(col == 1 && (row >= cols || rows == 1),
          "gemm: a factor of {} x {} with the strides {} and {} has no stride of 1", rows, cols,
          row, col);
  return {cols, rows, std::max(row, cols), true};
}

struct Call {
  std::int64_t M = 0, N = 0, K = 0;
  Stored first, second;  // B and A
  std::int64_t c_row = 0;
  GemmBatch batch = {};
  DType in = DType::kF32, out = DType::kF32;
  bool accumulate = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int64_t first_alignment = 0, second_alignment = 0, result_alignment = 0;

  auto key() const {
    return std::array<std::int64_t, 22>{M,
                                        N,
                                        K,
                                        first.leading,
                                        first.transposed,
                                        second.leading,
                                        second.transposed,
                                        c_row,
                                        batch.count,
                                        batch.a_step,
                                        batch.b_step,
                                        batch.c_step,
                                        static_cast<std::int64_t>(in),
                                        static_cast<std::int64_t>(out),
                                        accumulate,
                                        static_cast<std::int64_t>(epilogue),
                                        first_alignment,
                                        second_alignment,
                                        result_alignment,
                                        first.rows,
                                        second.rows,
                                        0};
  }
};

cudaDataType_t data_type(DType dtype) { return dtype == DType::kBf16 ? CUDA_R_16BF : CUDA_R_32F; }

Layout make_layout(const Stored& matrix, DType dtype, std::int64_t count, std::int64_t step) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_blas(
      cublasLtMatrixLayoutCreate(&layout, data_type(dtype), static_cast<std::uint64_t>(matrix.rows),
                                 static_cast<std::uint64_t>(matrix.cols), matrix.leading),
      "describe a matrix");
  Layout owned(layout);
  if (count > 1) {
    const auto batch = static_cast<std::int32_t>(count);
    check_blas(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                sizeof(batch)),
               "describe a matrix");
    check_blas(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &step, sizeof(step)),
               "describe a matrix");
  }
  return owned;
}

template <typename Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
         const Value& value) {
  check_blas(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
             "describe a product");
}

struct Plan {
  Description description;
  Layout first, second, result;
  cublasLtMatmulAlgo_t algorithm = {};
  bool found = false;
};

class Blas {
 public:
  Blas() : workspace_(Buffer::allocate(kWorkspaceBytes, DeviceKind::kCuda)) {
    check_blas(cublasLtCreate(&handle_), "start cuBLASLt");
  }

  // Never destroyed, as the stream it works on.
  static Blas& instance() {
    static Blas* blas = new Blas;
    return *blas;
  }

  // False when cuBLASLt has nothing for such a call, as for some epilogues.
  bool run(const Call& call, const void* first, const void* second, void* result, const void* bias,
           void* pre) {
    const std::lock_guard lock(mutex_);
    const auto [place, fresh] = plans_.try_emplace(call.key());
    Plan& plan = place->second;
    if (fresh) describe(call, plan);
    // Before an algorithm is looked for: which ones fit depends on where these point to.
    if (bias != nullptr) set(plan.description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (pre != nullptr) set(plan.description.get(), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pre);
    if (fresh) choose_algorithm(call, plan);
    if (!plan.found) return false;
    const float alpha = 1.0f, beta = call.accumulate ? 1.0f : 0.0f;
    check_blas(cublasLtMatmul(handle_, plan.description.get(), &alpha, first, plan.first.get(),
                              second, plan.second.get(), &beta, result, plan.result.get(), result,
                              plan.result.get(), &plan.algorithm, workspace_->mutable_data(),
                              kWorkspaceBytes, stream()),
               "multiply matrices");
    return true;
  }

 private:
  static void describe(const Call& call, Plan& plan) {
    cublasLtMatmulDesc_t description = nullptr;
    // Full f32 for f32 factors: no tf32.
    check_blas(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "describe a product");
    plan.description.reset(description);
    set(description, CUBLASLT_MATMUL_DESC_TRANSA,
        call.first.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(description, CUBLASLT_MATMUL_DESC_TRANSB,
        call.second.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, call.epilogue);
    if (call.epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
        call.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
        call.epilogue == CUBLASLT_EPILOGUE_DGELU)
      set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, call.c_row);
    const GemmBatch& batch = call.batch;
    plan.first = make_layout(call.first, call.in, batch.count, batch.b_step);
    plan.second = make_layout(call.second, call.in, batch.count, batch.a_step);
    plan.result =
        make_layout({call.N, call.M, call.c_row, false}, call.out, batch.count, batch.c_step);
  }

  void choose_algorithm(const Call& call, Plan& plan) const {
    cublasLtMatmulPreference_t raw = nullptr;
    check_blas(cublasLtMatmulPreferenceCreate(&raw), "plan a product");
    const Preference preference(raw);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check_blas(cublasLtMatmulPreferenceSetAttribute(raw, attribute, &value, sizeof(value)),
                 "plan a product");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
           static_cast<std::uint32_t>(call.first_alignment));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
           static_cast<std::uint32_t>(call.second_alignment));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
           static_cast<std::uint32_t>(call.result_alignment));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
           static_cast<std::uint32_t>(call.result_alignment));
    cublasLtMatmulHeuristicResult_t best = {};
    int count = 0;
    const cublasStatus_t code = cublasLtMatmulAlgoGetHeuristic(
        handle_, plan.description.get(), plan.first.get(), plan.second.get(), plan.result.get(),
        plan.result.get(), raw, 1, &best, &count);
    plan.found = code == CUBLAS_STATUS_SUCCESS && count > 0;
    plan.algorithm = best.algo;
  }

  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  std::shared_ptr<Buffer> workspace_;
  std::map<decltype(Call().key()), Plan> plans_;
};

// The largest power of two, up to 256, that an address and the steps from it are multiples of.
std::int64_t alignment(const void* data, std::int64_t step, std::size_t size) {
  const auto bits = reinterpret_cast<std::uintptr_t>(data) |
                    (static_cast<std::uintptr_t>(step) * size) | std::uintptr_t{256};
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

cublasLtEpilogue_t epilogue_of(GemmEpilogue epilogue, bool bias, bool pre) {
  if (epilogue == GemmEpilogue::kActivationGrad) return CUBLASLT_EPILOGUE_DGELU;
  if (epilogue == GemmEpilogue::kNone)
    return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  if (pre) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

}  // namespace

template <typename T, typename Out>
void gemm(const GemmArgs<T, Out>& args, const GemmBatch& batch) {
  if (args.M == 0 || args.N == 0 || batch.count == 0) return;
  require(args.K > 0, "gemm: the inner dimension is 0");
  require(args.epilogue != GemmEpilogue::kActivationGrad ||
              (args.pre != nullptr && args.bias == nullptr && !args.accumulate),
          "gemm: the epilogue f' goes with the values before f alone");
  Call call;
  call.M = args.M, call.N = args.N, call.K = args.K;
  call.first = stored(args.N, args.K, args.b_col, args.b_row);
  call.second = stored(args.K, args.M, args.a_col, args.a_row);
  call.c_row = args.c_row;
  call.batch = batch;
  call.in = kDTypeOf<T>, call.out = kDTypeOf<Out>;
  call.accumulate = args.accumulate;
  call.first_alignment = alignment(args.B, batch.count > 1 ? batch.b_step : 0, sizeof(T));
  call.second_alignment = alignment(args.A, batch.count > 1 ? batch.a_step : 0, sizeof(T));
  call.result_alignment = alignment(args.C, batch.count > 1 ? batch.c_step : 0, sizeof(Out));

  Blas& blas = Blas::instance();
  const bool active = args.epilogue != GemmEpilogue::kNone;
  const bool plain = args.bias == nullptr && !active;
  // cuBLASLt wants its epilogue's operands aligned. Of the activations it has GPT-2's GELU with the
  // values before it, too coarse for f32.
  const bool aligned = args.N % 8 == 0 && args.c_row % 8 == 0 && batch.count == 1 &&
                       alignment(args.bias, 0, sizeof(T)) >= 16 &&
                       alignment(args.pre, 0, sizeof(Out)) >= 16;
  const bool fusible =
      !plain && aligned && std::is_same_v<T, Out> &&
      (!active || (args.activation == Activation::kGeluNew && std::is_same_v<T, Bf16>));
  if (fusible) {
    call.epilogue = epilogue_of(args.epilogue, args.bias != nullptr, args.pre != nullptr);
    if (blas.run(call, args.B, args.A, args.C, args.bias, active ? args.pre : nullptr)) return;
    call.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  }
  if (!blas.run(call, args.B, args.A, args.C, nullptr, nullptr))
    fail("gemm: cuBLASLt has no way to multiply {} x {} by {} x {} ({} to {})", args.M, args.K,
         args.K, args.N, name_of(call.in), name_of(call.out));
  if (plain) return;
  if constexpr (std::is_same_v<T, Out>) {
    require(batch.count == 1, "gemm: a batch of products has no epilogue");
    finish_product(args.M, args.N, args.c_row, args.bias, args.epilogue, args.activation,
                   active ? args.pre : nullptr, args.C);
  } else {
    fail("gemm: a product of {} into {} has no epilogue", name_of(call.in), name_of(call.out));
  }
}

template void gemm(const GemmArgs<float, float>&, const GemmBatch&);
template void gemm(const GemmArgs<Bf16, Bf16>&, const GemmBatch&);
template void gemm(const GemmArgs<Bf16, float>&, const GemmBatch&);

}  // namespace filigree::cuda
