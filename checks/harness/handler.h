#include <dlfcn.h>
// Whether the object of operator new uses the C++ library of the program, which keeps its new-handler. Some carry their own.
static bool knows_handler() {
    Dl_info where;
    bool is_found = dladdr(dlsym(RTLD_DEFAULT, "_Znwm"), &where);
    void *object = is_found ? dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    return object && dlsym(object, "_ZSt15get_new_handlerv");
}
