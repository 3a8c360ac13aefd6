/* contention_lab.native._layer: a shared object to be preloaded, of functions that stand before the C library's.
 *
 * It is no Python module and knows nothing of Python: built once, it serves every version. Until a recorder
 * attaches (table.h) each function passes its call on, and so it does for whatever is of no interest. Nothing
 * here allocates, and no call is changed: same arguments, same result, same errno.
 *
 * Where the dynamic linker is not glibc's it is empty, and `record` goes without it.
 */
#if defined(__linux__)
#  ifndef _GNU_SOURCE
#    define _GNU_SOURCE 1
#  endif
#  include <features.h>
#endif

#if defined(__linux__) && defined(__GLIBC__)

#  include "environment.h"
#  include "exec.h"
#  include "joins.h"
#  include "kernel_waits.h"
#  include "locks.h"
#  include "semaphores.h"
#  include "world.h"
#  if __GLIBC_PREREQ(2, 28)
#    include "c11.h"
#  endif

__attribute__((constructor)) static void
cl_layer_begin(int count, char **arguments, char **environment)
{
    (void)count;
    (void)arguments;
    cl_real_late();
#  if __GLIBC_PREREQ(2, 28)
    cl_c11_begin();
#  endif
    cl_environment_restore(environment);
    cl_program_begin(environment);
}

#else

typedef int cl_layer_is_empty;

#endif
