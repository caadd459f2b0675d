/* The gRPC names of methods, for a server and for a client. A method's messages are in the package of its gRPC service, so the
 * package says which service it is: there is no table of methods here. */
#ifndef HF_SERVICE_GRPC_PATH_H
#define HF_SERVICE_GRPC_PATH_H

#include "service/service.h"

#define HF_GRPC_WORKFLOW_SERVICE "temporal.api.workflowservice.v1.WorkflowService"
#define HF_GRPC_OPERATOR_SERVICE "temporal.api.operatorservice.v1.OperatorService"
#define HF_GRPC_TEST_SERVICE "temporal.api.testservice.v1.TestService"
#define HF_GRPC_HOLDFAST_SERVICE "holdfast.api.v1.Holdfast" /* methods that Temporal does not have */

/* "temporal.api.workflowservice.v1.WorkflowService". NULL: the method is not for callers from outside. */
const char *hf_method_grpc_service(hf_method method);

/* Finds a text of a request, or bytes, by the name of the field. False: its type has no such field. */
bool hf_request_text(const hf_pb_type *type, const void *request, const char *name, hf_str *ret_text);

#endif
