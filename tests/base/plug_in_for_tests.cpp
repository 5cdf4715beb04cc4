// What plug_in_test.cpp opens.
extern "C" __attribute__((visibility("default"))) const int the_answer = 42;
