/* Small files that the program reads and writes whole: keys, certificates. */
#ifndef HF_MAIN_FILES_H
#define HF_MAIN_FILES_H

#include "base/buf.h"
#include "base/op.h"
#include "base/str.h"

/* Appends the content. Fails: HF_ERR_NOT_FOUND, HF_ERR_TOO_BIG (the buffer's limit), HF_ERR_IO and others. */
hf_status hf_file_text(hf_op *op, const char *path, hf_buf *text);
/* Replaces the file by a new one with this content that only its owner may read: at every moment there is the old or the new one. */
hf_status hf_file_replace(hf_op *op, const char *path, hf_str text);

#endif
