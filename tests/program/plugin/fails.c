/* A plugin whose block fails. */
#include <holdfast/holdfast.h>

HF_PLUGIN(worker)
{
    return hf_worker_add_workflow(worker, "", NULL);
}
