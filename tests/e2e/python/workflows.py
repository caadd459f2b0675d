"""Workflows of the scenarios, for the Python SDK."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, ChildWorkflowError, is_cancelled_exception

MINUTE = timedelta(minutes=1)
RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=5)
KEYWORD = SearchAttributeKey.for_keyword("CustomKeywordField")


async def run(name, *args, **more):
    return await workflow.execute_activity(name, args=list(args), start_to_close_timeout=MINUTE, retry_policy=RETRY, **more)


async def local(name, *args):
    return await workflow.execute_local_activity(name, args=list(args), start_to_close_timeout=MINUTE)


@workflow.defn(name="hello")
class Hello:
    @workflow.run
    async def run(self, who: str) -> str:
        return await run("greet", who)


@workflow.defn(name="retries")
class Retries:
    @workflow.run
    async def run(self) -> str:
        return await run("fail_twice")


@workflow.defn(name="failure_chain")
class FailureChain:
    @workflow.run
    async def run(self) -> None:
        await run("fail_for_good", "no such card")


@workflow.defn(name="local_activity")
class LocalActivity:
    @workflow.run
    async def run(self, who: str) -> str:
        return await local("greet", await local("greet", who))


@workflow.defn(name="long_local_activity")
class LongLocalActivity:
    @workflow.run
    async def run(self, seconds: float) -> str:
        return await local("slow", seconds)


@workflow.defn(name="timer")
class Timer:
    @workflow.run
    async def run(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"


@workflow.defn(name="timer_cancel")
class TimerCancel:
    @workflow.run
    async def run(self) -> str:
        sleeping = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.sleep(0.01)
        sleeping.cancel()
        try:
            await sleeping
            return "slept"
        except asyncio.CancelledError:
            return "canceled"


@workflow.defn(name="signals")
class Signals:
    def __init__(self) -> None:
        self.got: list = []

    @workflow.signal
    def put(self, x) -> None:
        self.got.append(x)

    @workflow.query
    def get(self) -> list:
        return self.got

    @workflow.run
    async def run(self, count: int) -> list:
        await workflow.wait_condition(lambda: len(self.got) >= count)
        return self.got


@workflow.defn(name="updates")
class Updates:
    def __init__(self) -> None:
        self.sum = 0
        self.is_done = False

    @workflow.signal
    def done(self) -> None:
        self.is_done = True

    @workflow.update
    async def add(self, n: int) -> int:
        self.sum += await run("add", n, 0)
        return self.sum

    @add.validator
    def check(self, n: int) -> None:
        if n < 0:
            raise ApplicationError("negative")

    @workflow.update
    async def slow(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slow"

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.is_done)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.sum


@workflow.defn(name="cancelable")
class Cancelable:
    @workflow.run
    async def run(self) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.shield(run("greet", "cleanup"))
            raise


@workflow.defn(name="cancels_activity")
class CancelsActivity:
    def __init__(self) -> None:
        self.is_done = False

    @workflow.signal
    def done(self) -> None:
        self.is_done = True

    @workflow.run
    async def run(self) -> str:
        handle = workflow.start_activity(
            "beat",
            start_to_close_timeout=MINUTE,
            heartbeat_timeout=timedelta(seconds=5),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        await workflow.wait_condition(lambda: self.is_done)
        handle.cancel()
        try:
            await handle
            return "not canceled"
        except ActivityError as e:
            return "canceled" if is_cancelled_exception(e) else str(e)


@workflow.defn(name="forever")
class Forever:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)


@workflow.defn(name="parent")
class Parent:
    @workflow.run
    async def run(self, who: str) -> str:
        return await workflow.execute_child_workflow("hello", who, id=workflow.info().workflow_id + "/child")


@workflow.defn(name="parent_of_failing")
class ParentOfFailing:
    @workflow.run
    async def run(self) -> list:
        try:
            await workflow.execute_child_workflow("failure_chain", id=workflow.info().workflow_id + "/child")
        except ChildWorkflowError as e:
            return [type(e).__name__, type(e.cause).__name__, type(e.cause.cause).__name__, str(e.cause.cause.message)]
        return []


@workflow.defn(name="again")
class Again:
    @workflow.run
    async def run(self, n: int) -> str:
        if n > 0:
            workflow.continue_as_new(n - 1)
        return "last"


@workflow.defn(name="patched")
class Patched:
    @workflow.run
    async def run(self) -> list:
        way = "new" if workflow.patched("p1") else "old"
        workflow.upsert_memo({"note": way})
        workflow.upsert_search_attributes([KEYWORD.value_set("blue")])
        await asyncio.sleep(0.001)
        return [way, workflow.memo_value("note"), workflow.info().typed_search_attributes.get(KEYWORD)]


@workflow.defn(name="recovers", sandboxed=False)
class Recovers:
    @workflow.run
    async def run(self) -> str:
        n = await local("count_attempts", workflow.info().workflow_id)
        if n < 2 and not workflow.unsafe.is_replaying():
            raise RuntimeError("a bug of the workflow")
        return "recovered"


@workflow.defn(name="signals_another")
class SignalsAnother:
    @workflow.run
    async def run(self, other: str) -> str:
        await workflow.get_external_workflow_handle(other).signal("put", workflow.info().workflow_id)
        return "sent"


@workflow.defn(name="cancels_another")
class CancelsAnother:
    @workflow.run
    async def run(self, other: str) -> str:
        await workflow.get_external_workflow_handle(other).cancel()
        return "asked"


@workflow.defn(name="asynchronous")
class Asynchronous:
    @workflow.run
    async def run(self) -> str:
        return await run("complete", workflow.info().workflow_id)


ALL = [
    Hello, Retries, FailureChain, LocalActivity, LongLocalActivity, Timer, TimerCancel, Signals, Updates, Cancelable, CancelsActivity,
    Forever, Parent, ParentOfFailing, Again, Patched, Recovers, SignalsAnother, CancelsAnother, Asynchronous,
]
