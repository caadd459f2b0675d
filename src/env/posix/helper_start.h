/* Starting the helper program, which helper/helper.c describes. */
#ifndef HF_ENV_POSIX_HELPER_START_H
#define HF_ENV_POSIX_HELPER_START_H

#include "base/env.h"

#include <sys/types.h>

/* Where the program's file is put for execution, tried in this order. */
typedef enum hf_image_place {
    HF_IMAGE_MEMORY, /* a file in memory, which some systems forbid to execute */
    HF_IMAGE_TMPDIR, /* unlinked files, in the first directory that may hold programs */
    HF_IMAGE_TMP,
    HF_IMAGE_VAR_TMP,
    HF_IMAGE_SHM,
    HF_IMAGE_PLACE_COUNT
} hf_image_place;

typedef struct hf_helper_start {
    int socket_fd; /* in: the helper's end of the socket; stays the caller's */
    pid_t pid;     /* out: of the helper */
    int pid_fd;    /* out: the same as a descriptor; -1 on a kernel without them */
} hf_helper_start;

/* Starts the helper, with the program in `first` or a later place. It is not a child of this process, so neither
 * SIGCHLD nor a wait() of the host meets it. */
hf_status hf_posix_helper_start(hf_op *op, hf_image_place first, hf_helper_start *start);

/* helper_open from a given place on. Here for its test. */
hf_status hf_posix_helper_open_from(hf_env *env, hf_op *op, hf_image_place first, hf_helper **ret_helper, int *ret_fd);

#endif
