#include "core/data/arrays/cifar10.h"
#include "core/data/arrays/idx_source.h"
#include "core/data/arrays/npz_source.h"
#include "core/data/arrays/values.h"
#include "core/data/images/folder.h"
#include "core/data/images/masks.h"
#include "core/data/opening.h"
#include "core/data/synthetic/synthetic.h"
#include "core/data/tables/csv_source.h"
#include "core/data/tables/libsvm.h"
#include "core/data/texts/text_source.h"

namespace pmaptrain::data {

// In the order of help.
const std::vector<declare::AnyKind>& family(declare::Tag<SourceKind>) {
  static const auto all =
      declare::kinds_of<SourceKind, FashionMnist, Idx, Npz, Csv, Libsvm, ImageFolder, ImageMasks, Cifar10, TextFiles,
                        SyntheticLinear, SyntheticImages, SyntheticMasks, SyntheticVolumes, SyntheticSignals, Values>();
  return all;
}

}  // namespace pmaptrain::data
