/* A program with a Holdfast that was built without temporal://. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

static hf_status body(void *arg)
{
    (void)arg;
    hf_service *service = NULL;
    hf_status status = hf_open("temporal://127.0.0.1:7233", &service);
    if (status != HF_ERR_UNSUPPORTED || strstr(hf_error_text(), "without temporal://") == NULL) {
        (void)fprintf(stderr, "FAILED: temporal:// gives %d: %s\n", (int)status, hf_error_text());
        return HF_ERR_FAILED;
    }
    HF_TRY(hf_open("memory:", &service));
    return hf_close(service);
}

int main(void)
{
    return hf_run(body, NULL) == HF_OK ? 0 : 1;
}
