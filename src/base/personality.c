/* The border between fiber bodies and the scheduler. An unwinder that reaches the frame of hf_call_guarded, looking for a
 * handler of a C++ exception or in a forced unwind (pthread_exit), asks this personality; it stops the program with a
 * message, because no frame above can handle the exception. */
#include "base/current.h"

#include <unwind.h>

/* Only assembly names it: a compiler that sees the whole program at once must keep it. */
_Unwind_Reason_Code hf_body_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class exception_class,
                                        struct _Unwind_Exception *exception, struct _Unwind_Context *context)
    __attribute__((used));

_Unwind_Reason_Code hf_body_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class exception_class,
                                        struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version;
    (void)exception_class;
    (void)exception;
    (void)context;
    hf_halt((actions & _UA_FORCE_UNWIND) != 0
                ? "holdfast: a forced unwind (pthread_exit or pthread_cancel) left the body of a fiber; "
                  "return from the body instead"
                : "holdfast: an exception left the body of a fiber; catch it inside the body and return a status");
}
