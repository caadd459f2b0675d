/* Holdfast: durable workflows, and below them fibers with structured concurrency. This header includes all others.
 * To read them, start with workflow.h, worker.h and service.h, or with scope.h for fibers alone. The documents that
 * headers name, such as docs/verbs.md, are installed in share/doc/Holdfast. */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include <holdfast/activity.h>
#include <holdfast/answer.h>
#include <holdfast/base.h>
#include <holdfast/batch.h>
#include <holdfast/chan.h>
#include <holdfast/child.h>
#include <holdfast/depot.h>
#include <holdfast/dispatch.h>
#include <holdfast/error.h>
#include <holdfast/flow.h>
#include <holdfast/guard.h>
#include <holdfast/handler.h>
#include <holdfast/header.h>
#include <holdfast/io.h>
#include <holdfast/json.h>
#include <holdfast/keyed.h>
#include <holdfast/list.h>
#include <holdfast/local.h>
#include <holdfast/memo.h>
#include <holdfast/pages.h>
#include <holdfast/payload.h>
#include <holdfast/plugin.h>
#include <holdfast/process.h>
#include <holdfast/run.h>
#include <holdfast/runtime.h>
#include <holdfast/saga.h>
#include <holdfast/scope.h>
#include <holdfast/service.h>
#include <holdfast/sim.h>
#include <holdfast/status.h>
#include <holdfast/stream.h>
#include <holdfast/sync.h>
#include <holdfast/testenv.h>
#include <holdfast/time.h>
#include <holdfast/wait.h>
#include <holdfast/worker.h>
#include <holdfast/workflow.h>

#endif
