// Runs a model of LiteRT on an example, with the C API; see README.md for how to build it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/lite/c/c_api.h"

namespace {

// The file with the bytes of each input of the example, in the order of the model's inputs.
const char* const kExampleFiles[] = {@{example_files}};

// The name of each class, by its number; empty for a model without classes.
const std::vector<std::string> kLabels = {@{labels}};

[[noreturn]] void Fail(const std::string& problem) {
  std::fprintf(stderr, "%s\n", problem.c_str());
  std::exit(1);
}

std::vector<char> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Fail("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <typename T>
void Print(const TfLiteTensor* tensor) {
  const auto* values = static_cast<const T*>(TfLiteTensorData(tensor));
  const std::size_t count = TfLiteTensorByteSize(tensor) / sizeof(T);
  std::size_t best = 0;
  for (std::size_t at = 0; at < count; ++at) {
    if (at < 10) std::printf(" %g", static_cast<double>(values[at]));
    if (values[at] > values[best]) best = at;
  }
  if (count == kLabels.size() && count > 0) std::printf("  %s", kLabels[best].c_str());
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "model.tflite";
  std::unique_ptr<TfLiteModel, decltype(&TfLiteModelDelete)> model(TfLiteModelCreateFromFile(path.c_str()),
                                                                   &TfLiteModelDelete);
  if (!model) Fail("cannot load " + path);
  std::unique_ptr<TfLiteInterpreterOptions, decltype(&TfLiteInterpreterOptionsDelete)> options(
      TfLiteInterpreterOptionsCreate(), &TfLiteInterpreterOptionsDelete);
  TfLiteInterpreterOptionsSetNumThreads(options.get(), 1);
  std::unique_ptr<TfLiteInterpreter, decltype(&TfLiteInterpreterDelete)> interpreter(
      TfLiteInterpreterCreate(model.get(), options.get()), &TfLiteInterpreterDelete);
  if (!interpreter || TfLiteInterpreterAllocateTensors(interpreter.get()) != kTfLiteOk) Fail("cannot prepare " + path);
  const std::int32_t inputs = TfLiteInterpreterGetInputTensorCount(interpreter.get());
  if (inputs != static_cast<std::int32_t>(std::size(kExampleFiles))) Fail("the model has other inputs");
  for (std::int32_t at = 0; at < inputs; ++at) {
    TfLiteTensor* tensor = TfLiteInterpreterGetInputTensor(interpreter.get(), at);
    const std::vector<char> bytes = Read(kExampleFiles[at]);
    if (TfLiteTensorCopyFromBuffer(tensor, bytes.data(), bytes.size()) != kTfLiteOk) {
      Fail(std::string(kExampleFiles[at]) + " has not the size of the input " + TfLiteTensorName(tensor));
    }
  }
  if (TfLiteInterpreterInvoke(interpreter.get()) != kTfLiteOk) Fail("the model failed");
  for (std::int32_t at = 0; at < TfLiteInterpreterGetOutputTensorCount(interpreter.get()); ++at) {
    const TfLiteTensor* tensor = TfLiteInterpreterGetOutputTensor(interpreter.get(), at);
    std::printf("%s:", TfLiteTensorName(tensor));
    switch (TfLiteTensorType(tensor)) {
      case kTfLiteFloat32: Print<float>(tensor); break;
      case kTfLiteInt32: Print<std::int32_t>(tensor); break;
      case kTfLiteInt64: Print<std::int64_t>(tensor); break;
      case kTfLiteUInt8: Print<std::uint8_t>(tensor); break;
      case kTfLiteInt8: Print<std::int8_t>(tensor); break;
      default: std::printf(" %zu bytes\n", TfLiteTensorByteSize(tensor));
    }
  }
  return 0;
}
