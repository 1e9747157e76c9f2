// A module and the library that it needs, which is removed.
#ifdef PMAPTRAIN_GONE
int of_a_library_that_is_gone() { return 0; }
#else
int of_a_library_that_is_gone();
extern "C" int pmaptrain_cuda() { return of_a_library_that_is_gone(); }
#endif
