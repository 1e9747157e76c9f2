// The files that a report contains, embedded by cmake/report_page.cmake.
#pragma once

#include <string_view>

namespace pmaptrain::report {

std::string_view page_style();     // page.css
std::string_view page_script();    // page.js
std::string_view chart_library();  // Chart.js

}  // namespace pmaptrain::report
