/* What the server offers, as descriptors. Files of messages are made by tools/protogen; the file of a service is made from the method
 * table when it is asked for, so that it always is what the door serves. */
#ifndef HF_SERVER_REFLECT_H
#define HF_SERVER_REFLECT_H

#include "base/buf.h"
#include "base/str.h"

/* A .proto file as the bytes of a FileDescriptorProto. */
typedef struct hf_proto_file {
    const char *name; /* "temporal/api/common/v1/message.proto" */
    const unsigned char *bytes;
    size_t len;
} hf_proto_file;
extern const hf_proto_file hf_proto_files[];
extern const size_t hf_proto_file_count;

/* A message or an enum. */
typedef struct hf_proto_symbol {
    const char *name; /* "temporal.api.common.v1.Payload" */
    size_t file;      /* index in hf_proto_files */
} hf_proto_symbol;
extern const hf_proto_symbol hf_proto_symbols[];
extern const size_t hf_proto_symbol_count;

/* Appends the FileDescriptorProto of a file, or of the file with a symbol: a message, an enum, a service or a method. `has_tests`: there
 * is a TestService, too. False: there is none. The status is the buffer's. */
bool hf_reflect_file(hf_str name, bool has_tests, hf_buf *out);
bool hf_reflect_symbol(hf_str symbol, bool has_tests, hf_buf *out);

#endif
