#include "app/options/streams.h"

#include "app/display/terminal.h"
#include "core/base/wrap.h"

namespace pmaptrain::app {

std::string for_reader(std::string_view text, const Streams& streams) {
  return wrapped(text, display::text_columns(streams.out_fd));
}

}  // namespace pmaptrain::app
