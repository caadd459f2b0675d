/* A service whose process is "killed" inside a simulation: its files are copied as they are at that moment, and nothing else
 * runs meanwhile. The rest of the old process goes on as a ghost, whose results are ignored. When it has ended, the service
 * is opened again from the copies: the next era. */
#ifndef HF_TESTS_ERAS_H
#define HF_TESTS_ERAS_H

#include <holdfast/holdfast.h>

typedef struct eras {
    const char *name;    /* files are named by it, by the process and by the era */
    hf_service *service; /* of this era */
    bool is_ghost;       /* its process counts as killed */
    int number;          /* of kills so far */
} eras;

/* Opens the service; `in_memory`: it will not be killed. */
hf_status eras_open(eras *e, bool in_memory);
/* The process dies now. */
void eras_kill(eras *e);
/* When nobody uses the service of the ghost any more: it is closed, and the next one opened. */
hf_status eras_next(eras *e);
/* Closes the service and removes its files. */
hf_status eras_close(eras *e);

#endif
