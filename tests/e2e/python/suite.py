"""The scenarios of the list with the Python SDK, each with a cache and without, 5 copies at once, result and events checked.
    python suite.py <holdfast program> <scratch folder>"""

import asyncio
import logging
import re
import subprocess
import sys
import tempfile
import time

from temporalio import activity
from temporalio.api.enums.v1 import EventType, IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import (
    Client, WithStartWorkflowOperation, WorkflowFailureError, WorkflowQueryFailedError, WorkflowUpdateFailedError, WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TerminatedError, WorkflowAlreadyStartedError
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

import workflows

program, scratch = sys.argv[1:3]
COPIES = 5
tokens, begun, attempts = {}, set(), {}

# ---- Activities


@activity.defn
async def greet(who) -> str:
    return f"hello {who}"


@activity.defn
async def add(a: int, b: int) -> int:
    return a + b


@activity.defn
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slow"


@activity.defn
async def fail_twice() -> str:
    if activity.info().attempt < 3:
        raise RuntimeError("not yet")
    return f"attempt {activity.info().attempt}"


@activity.defn
async def fail_for_good(why: str) -> None:
    raise ApplicationError(why, {"code": 7}, type="CardError", non_retryable=True)


@activity.defn
async def beat() -> None:
    begun.add(activity.info().workflow_id)
    while True:
        activity.heartbeat("alive")
        await asyncio.sleep(0.05)


@activity.defn
async def complete(id: str) -> str:
    tokens[id] = activity.info().task_token
    activity.raise_complete_async()


@activity.defn
async def count_attempts(id: str) -> int:
    attempts[id] = attempts.get(id, 0) + 1
    return attempts[id]


# ---- Helpers

START, END = "WorkflowExecutionStarted", "WorkflowExecutionCompleted"
SIGNAL = "WorkflowExecutionSignaled"
ACTIVITY = ["ActivityTaskScheduled", "ActivityTaskStarted", "ActivityTaskCompleted"]
TIMER = ["TimerStarted", "TimerFired"]
CHILD = ["StartChildWorkflowExecutionInitiated", "ChildWorkflowExecutionStarted"]
UPDATE = ["WorkflowExecutionUpdateAccepted", "WorkflowExecutionUpdateCompleted"]


async def until(what, ask):
    for _ in range(6000):
        if await ask():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("never: " + what)


async def fails(awaitable, kind):
    try:
        await awaitable
    except kind as e:
        return e
    raise AssertionError(kind.__name__ + " expected")


def code_is(e, code):
    assert e.status == code, e


def equal(a, b):
    assert a == b, f"{a!r} is not {b!r}"


def types_of(history):
    names = []
    for event in history.events:
        words = EventType.Name(event.event_type).replace("EVENT_TYPE_", "").lower().split("_")
        names.append("".join(w.capitalize() for w in words))
    return names


class Context:
    def __init__(self, client, queue, id):
        self.client, self.queue, self.id = client, queue, id

    async def begin(self, type, *args, **more):
        return await self.client.start_workflow(type, args=list(args), id=more.pop("id", self.id), task_queue=self.queue, **more)

    async def run(self, type, *args):
        return await (await self.begin(type, *args)).result()

    async def types(self, id=None):
        return types_of(await self.client.get_workflow_handle(id or self.id).fetch_history())


# ---- Scenarios: a function and its events


async def hello(c):
    equal(await c.run("hello", "world"), "hello world")


async def retry(c):
    equal(await c.run("retries"), "attempt 3")


async def chain(c):
    e = await fails(c.run("failure_chain"), WorkflowFailureError)
    assert isinstance(e.cause, ActivityError) and isinstance(e.cause.cause, ApplicationError)
    equal((e.cause.cause.message, e.cause.cause.type, list(e.cause.cause.details)), ("no such card", "CardError", [{"code": 7}]))


async def local_activity(c):
    equal(await c.run("local_activity", "x"), "hello hello x")


async def long_local_activity(c):
    equal(await c.run("long_local_activity", 12.0), "slow")


async def timer(c):
    equal(await c.run("timer", 0.03), "slept")


async def timer_cancel(c):
    equal(await c.run("timer_cancel"), "canceled")


async def signal(c):
    handle = await c.begin("signals", 3)
    for x in [1, 2, 3]:
        await handle.signal("put", x)
    equal(await handle.result(), [1, 2, 3])


async def signal_with_start(c):
    await c.begin("signals", 2, start_signal="put", start_signal_args=["a"])
    handle = await c.begin("signals", 2, start_signal="put", start_signal_args=["b"])
    equal(await handle.result(), ["a", "b"])


async def query(c):
    handle = await c.begin("signals", 1)
    equal(await handle.query("get"), [])
    await fails(handle.query("nobody"), WorkflowQueryFailedError)
    await handle.signal("put", "x")
    await handle.result()
    equal(await handle.query("get"), ["x"])


async def update(c):
    handle = await c.begin("updates")
    equal(await handle.execute_update("add", 3), 3)
    e = await fails(handle.execute_update("add", -1), WorkflowUpdateFailedError)
    equal(e.cause.message, "negative")
    equal(await handle.execute_update("add", 4), 7)
    await handle.signal("done")
    equal(await handle.result(), 7)


async def update_accepted(c):
    handle = await c.begin("updates")
    one = await handle.start_update("slow", 0.04, wait_for_stage=WorkflowUpdateStage.ACCEPTED, id="u")
    equal(await one.result(), "slow")
    equal(await handle.get_update_handle("u").result(), "slow")
    equal(await handle.execute_update("slow", 9.0, id="u"), "slow")
    await handle.signal("done")
    equal(await handle.result(), 0)


async def update_with_start(c):
    def operation():
        return WithStartWorkflowOperation("updates", id=c.id, task_queue=c.queue, id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)

    equal(await c.client.execute_update_with_start_workflow("add", 5, start_workflow_operation=operation()), 5)
    last = operation()
    equal(await c.client.execute_update_with_start_workflow("add", 1, start_workflow_operation=last), 6)
    handle = await last.workflow_handle()
    await handle.signal("done")
    equal(await handle.result(), 6)


async def cancel(c):
    handle = await c.begin("cancelable")

    async def has_timer():
        return "TimerStarted" in await c.types()

    await until("the timer", has_timer)
    await handle.cancel()
    e = await fails(handle.result(), WorkflowFailureError)
    assert isinstance(e.cause, CancelledError)
    await handle.cancel()


async def activity_cancel(c):
    handle = await c.begin("cancels_activity")

    async def has_begun():
        return c.id in begun

    await until("it has begun", has_begun)
    await handle.signal("done")
    equal(await handle.result(), "canceled")


async def terminate(c):
    handle = await c.begin("forever")
    await handle.terminate("because", reason="enough")
    e = await fails(handle.result(), WorkflowFailureError)
    assert isinstance(e.cause, TerminatedError)
    code_is(await fails(handle.terminate(), RPCError), RPCStatusCode.NOT_FOUND)
    code_is(await fails(handle.signal("put", 1), RPCError), RPCStatusCode.NOT_FOUND)


async def child(c):
    equal(await c.run("parent", "kid"), "hello kid")


async def child_fails(c):
    equal(await c.run("parent_of_failing"), ["ChildWorkflowError", "ActivityError", "ApplicationError", "no such card"])


async def continue_as_new(c):
    equal(await c.run("again", 2), "last")


async def patch(c):
    handle = await c.begin("patched", memo={"note": "first"})
    equal(await handle.result(), ["new", "new", "blue"])
    equal(await (await handle.describe()).memo(), {"note": "new"})


async def failing_task(c):
    equal(await c.run("recovers"), "recovered")


async def external_signal(c):
    other = await c.begin("signals", 1, id=c.id + "/other")
    equal(await c.run("signals_another", c.id + "/other"), "sent")
    equal(await other.result(), [c.id])


async def external_cancel(c):
    other = await c.begin("forever", id=c.id + "/other")
    equal(await c.run("cancels_another", c.id + "/other"), "asked")
    assert isinstance((await fails(other.result(), WorkflowFailureError)).cause, CancelledError)


async def duplicate_id(c):
    handle = await c.begin("forever")
    await fails(c.begin("forever"), WorkflowAlreadyStartedError)
    same = await c.begin("forever", id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)
    equal(same.result_run_id, handle.result_run_id)
    following = await c.begin("timer", 0.001, id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
    equal(await following.result(), "slept")
    await fails(c.begin("timer", 0.001, id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE), WorkflowAlreadyStartedError)


async def not_found(c):
    handle = c.client.get_workflow_handle(c.id)
    for call in [handle.describe(), handle.signal("put", 1), handle.query("get"), handle.cancel(), handle.terminate(), handle.result()]:
        code_is(await fails(call, RPCError), RPCStatusCode.NOT_FOUND)


async def async_completion(c):
    handle = await c.begin("asynchronous")

    async def has_token():
        return c.id in tokens

    await until("the token", has_token)
    outside = c.client.get_async_activity_handle(task_token=tokens[c.id])
    await outside.heartbeat("half")
    await outside.complete("from outside")
    equal(await handle.result(), "from outside")


async def describe_and_list(c):
    handle = await c.begin("forever", memo={"k": "v"})
    d = await handle.describe()
    equal((d.status.name, d.workflow_type, d.task_queue, d.id), ("RUNNING", "forever", c.queue, c.id))
    await handle.terminate()

    async def is_listed():
        return [w.id async for w in c.client.list_workflows(f"WorkflowId = '{c.id}' AND ExecutionStatus = 'Terminated'")] == [c.id]

    await until("it is listed", is_listed)
    equal((await c.client.count_workflows(f"WorkflowId = '{c.id}'")).count, 1)


SCENARIOS = [
    (hello, [START, *ACTIVITY, END]),
    (retry, [START, *ACTIVITY, END]),
    (chain, [START, "ActivityTaskScheduled", "ActivityTaskStarted", "ActivityTaskFailed", "WorkflowExecutionFailed"]),
    (local_activity, [START, "MarkerRecorded", "MarkerRecorded", END]),
    (long_local_activity, [START, "MarkerRecorded", END]),
    (timer, [START, *TIMER, END]),
    (timer_cancel, [START, "TimerStarted", "TimerStarted", "TimerFired", "TimerCanceled", END]),
    (signal, [START, SIGNAL, SIGNAL, SIGNAL, END]),
    (signal_with_start, [START, SIGNAL, SIGNAL, END]),
    (query, [START, SIGNAL, END]),
    (update, [START, *[UPDATE[0], *ACTIVITY, UPDATE[1]] * 2, SIGNAL, END]),
    (update_accepted, [START, UPDATE[0], *TIMER, UPDATE[1], SIGNAL, END]),
    (update_with_start, [START, *[UPDATE[0], *ACTIVITY, UPDATE[1]] * 2, SIGNAL, END]),
    (cancel, [START, "TimerStarted", "WorkflowExecutionCancelRequested", "TimerCanceled", *ACTIVITY, "WorkflowExecutionCanceled"]),
    (activity_cancel, [START, "ActivityTaskScheduled", SIGNAL, "ActivityTaskCancelRequested", "ActivityTaskStarted", "ActivityTaskCanceled", END]),
    (terminate, [START, "WorkflowExecutionTerminated"]),
    (child, [START, *CHILD, "ChildWorkflowExecutionCompleted", END]),
    (child_fails, [START, *CHILD, "ChildWorkflowExecutionFailed", END]),
    (continue_as_new, [START, END]),
    (patch, None),
    (failing_task, [START, "MarkerRecorded", END]),
    (external_signal, [START, "SignalExternalWorkflowExecutionInitiated", "ExternalWorkflowExecutionSignaled", END]),
    (external_cancel, [START, "RequestCancelExternalWorkflowExecutionInitiated", "ExternalWorkflowExecutionCancelRequested", END]),
    (duplicate_id, [START, *TIMER, END]),
    (not_found, None),
    (async_completion, [START, *ACTIVITY, END]),
    (describe_and_list, [START, "WorkflowExecutionTerminated"]),
]
LOCAL = {local_activity, long_local_activity, failing_task}


async def copy(client, scenario, events, queue, i):
    c = Context(client, queue, f"{scenario.__name__}-{queue}-{i}")
    await scenario(c)
    if events is not None:
        equal([t for t in await c.types() if not t.startswith("WorkflowTask")], events)


async def main():
    logging.disable(logging.WARNING)
    folder = tempfile.mkdtemp(prefix="run-", dir=scratch)
    server = subprocess.Popen(
        [program, "serve", "--store", f"sqlite:{folder}/e2e.db", "--listen", "127.0.0.1:0", "--log-level", "warn"], stdout=subprocess.PIPE, text=True
    )
    address = "127.0.0.1:" + re.search(r":(\d+)\s*$", server.stdout.readline()).group(1)
    quiet = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    client = await Client.connect(address, runtime=Runtime(telemetry=TelemetryConfig(logging=quiet)))
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace="default", search_attributes={"CustomKeywordField": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD})
    )
    common = dict(
        workflows=workflows.ALL,
        activities=[greet, add, slow, fail_twice, fail_for_good, beat, complete, count_attempts],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    failed, passed, since = [], 0, time.time()
    async with Worker(client, task_queue="cached", **common), Worker(
        client, task_queue="uncached", max_cached_workflows=0, max_concurrent_workflow_task_polls=1, **common
    ):
        for scenario, events in SCENARIOS:
            for queue in ["cached", "uncached"]:
                copies = 1 if scenario is long_local_activity or (scenario in LOCAL and queue == "uncached") else COPIES
                begin = time.time()
                name = f"{scenario.__name__}, {queue}"
                try:
                    await asyncio.wait_for(asyncio.gather(*[copy(client, scenario, events, queue, i) for i in range(copies)]), 120)
                    print(f"[       OK ] {name} ({int((time.time() - begin) * 1000)} ms)", flush=True)
                    passed += 1
                except BaseException as e:
                    print(f"[  FAILED  ] {name}: {type(e).__name__} {e} {e.__cause__ or ''}", flush=True)
                    failed.append(name)
    server.terminate()
    equal(server.wait(), 0)
    print(f"[==========] {passed} passed, {len(failed)} failed in {int(time.time() - since)} s")
    sys.exit(1 if failed else 0)


asyncio.run(main())
