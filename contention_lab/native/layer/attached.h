/* Whether somebody records, and who. */
#ifndef CL_LAYER_ATTACHED_H
#define CL_LAYER_ATTACHED_H

#include "table.h"

#define CL_PUBLIC __attribute__((visibility("default")))

static const cl_layer_table *cl_attached_table;

/* acquire: whoever sees the table sees what is in it */
static inline const cl_layer_table *
cl_attached(void)
{
    return __atomic_load_n(&cl_attached_table, __ATOMIC_ACQUIRE);
}

/* What a recorder compares with its own before it attaches. */
CL_PUBLIC extern const uint32_t contention_lab_layer_abi;
CL_PUBLIC const uint32_t contention_lab_layer_abi = CL_LAYER_ABI;

CL_PUBLIC int contention_lab_layer_attach(const cl_layer_table *table);

CL_PUBLIC int
contention_lab_layer_attach(const cl_layer_table *table)
{
    if (table != NULL && table->abi != CL_LAYER_ABI) {
        return -1;
    }
    __atomic_store_n(&cl_attached_table, table, __ATOMIC_RELEASE);
    return 0;
}

#endif
