// Edges: very long timers, limits that pass, calls that come before any worker, runs that end while something is on its way to them.
import assert from 'node:assert/strict';
import { ActivityNotFoundError, ActivityResetError, WorkflowFailedError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { CancelledFailure, TimeoutFailure } from '@temporalio/common';
import { checkHistory, failure, name, types, until } from './rig.mjs';

const START = 'WorkflowExecutionStarted';
const END = 'WorkflowExecutionCompleted';
const SIGNAL = 'WorkflowExecutionSignaled';
const ACTIVITY = ['ActivityTaskScheduled', 'ActivityTaskStarted', 'ActivityTaskCompleted'];
const TIMER = ['TimerStarted', 'TimerFired'];
const UPDATE = ['WorkflowExecutionUpdateAccepted', 'WorkflowExecutionUpdateCompleted'];

const begin = (c, type, args = [], more = {}) =>
  c.client.workflow.start(type, { taskQueue: c.queue, workflowId: c.id, args, ...more });
const run = (type, args, expected) => async (c) => assert.deepEqual(await (await begin(c, type, args)).result(), expected);
const range = (n) => [...Array(n).keys()];

export const EDGES = {
  oddTimers: {
    // Of no length, and of a hundred years.
    go: run('oddTimers', [], ['slept', 'slept', 'canceled']),
    events: [START, ...TIMER, ...TIMER, 'TimerStarted', ...TIMER, 'TimerCanceled', END],
    both: true,
  },
  beforeTheWorker: {
    // 300 signals, and a cancel of another run, before there is a worker: all of it is in the first workflow task, in order.
    async go(c) {
      const queue = { taskQueue: c.id };
      const handle = await c.client.workflow.start('signals', { ...queue, workflowId: c.id, args: [300] });
      for (const i of range(300)) await handle.signal('put', i);
      const canceled = await c.client.workflow.start('waits', { ...queue, workflowId: c.id + '/canceled' });
      await canceled.cancel();
      const ended = await c.client.workflow.start('waits', { ...queue, workflowId: c.id + '/ended' });
      await ended.terminate('no worker came');
      await c.withWorker({}, async () => {
        assert.deepEqual(await handle.result(), range(300));
        assert.ok((await failure(canceled.result(), WorkflowFailedError)).cause instanceof CancelledFailure);
        await failure(ended.result(), WorkflowFailedError);
      });
      assert.equal((await types(handle)).filter((t) => t === 'WorkflowTaskScheduled').length, 1);
    },
    events: [START, ...Array(300).fill(SIGNAL), END],
  },
  startExpires: {
    // Its time is over before a worker comes.
    async go(c) {
      const handle = await c.client.workflow.start('waits', { taskQueue: c.id, workflowId: c.id, workflowRunTimeout: 200 });
      assert.ok((await failure(handle.result(), WorkflowFailedError)).cause instanceof TimeoutFailure);
      await c.withWorker({}, async () => {
        assert.equal(await c.client.workflow.execute('hello', { taskQueue: c.id, workflowId: c.id + '/b', args: ['x'] }), 'hello x');
      });
    },
    events: [START, 'WorkflowExecutionTimedOut'],
  },
  updateIsLeft: {
    // A caller that no longer waits for an update leaves it as it is: others get its result.
    async go(c) {
      const handle = await begin(c, 'gatedUpdate');
      const asking = handle.executeUpdate('gated', { updateId: 'one', args: [4] });
      await until('it is accepted', async () => (await types(handle)).includes(UPDATE[0]));
      const left = c.connection.withDeadline(Date.now() + 300, () => handle.executeUpdate('gated', { updateId: 'one', args: [4] }));
      await failure(left, WorkflowUpdateRPCTimeoutOrCancelledError);
      await handle.signal('put', 1);
      assert.equal(await asking, 5);
      assert.equal(await handle.getUpdateHandle('one').result(), 5);
      assert.equal(await handle.executeUpdate('gated', { updateId: 'one', args: [100] }), 5); // what comes again is the same update
      await handle.signal('done');
      await handle.result();
      assert.equal(await handle.getUpdateHandle('one').result(), 5); // also when the run has ended
    },
    events: [START, UPDATE[0], SIGNAL, UPDATE[1], SIGNAL, END],
    both: true,
  },
  moreUpdatesThanFit: {
    // A run has at most 10 updates in flight: callers are told to come again, and do.
    async go(c) {
      const handle = await begin(c, 'handlers');
      const all = await Promise.all(range(25).map((i) => handle.executeUpdate('activity', { args: [i] })));
      assert.deepEqual(all, range(25).map((i) => 'hello ' + i));
      await handle.signal('done');
      assert.equal((await handle.result()).length, 25);
    },
    bag: [START, ...Array(25).fill([...UPDATE, ...ACTIVITY]).flat(), SIGNAL, END],
  },
  updatesAcrossRuns: {
    // The workflow continues as new all the time; no update is lost on the way, and none is done twice.
    async go(c) {
      const handle = await begin(c, 'counts', [0, 0]);
      const current = c.client.workflow.getHandle(c.id);
      for (const i of range(12)) {
        const asking = range(3).map(() => current.executeUpdate('count', { args: [1] }));
        if (i % 3 === 2) await current.signal('put', 'next');
        for (const result of await Promise.all(asking)) assert.ok(result >= 1 && result <= 36, `${result}`);
      }
      await current.signal('done');
      const [total, runs] = await handle.result();
      assert.equal(total, 36);
      assert.equal(runs, 4);
    },
    both: true,
  },
  resetUnderWay: {
    // A reset takes the run away from an activity that is running: its answer is refused, and the new run does the work again.
    async go(c) {
      const handle = await begin(c, 'waitsOutside');
      await until('it is outside', () => c.tokens.has(c.id));
      const old = c.tokens.get(c.id);
      c.tokens.delete(c.id);
      const { runId } = await c.client.workflowService.resetWorkflowExecution({
        namespace: 'default', workflowExecution: { workflowId: c.id, runId: handle.firstExecutionRunId }, workflowTaskFinishEventId: 4, reason: 'a test', requestId: 'r' });
      await until('it is outside again', () => c.tokens.has(c.id));
      await failure(c.client.activity.complete(old, 'late'), ActivityNotFoundError);
      await c.client.activity.complete(c.tokens.get(c.id), 'in time');
      assert.deepEqual(await c.client.workflow.getHandle(c.id, runId).result(), { result: 'in time' });
      await c.events(c.id, [START, ...ACTIVITY, END], { runId });
      assert.deepEqual((await types(c.client.workflow.getHandle(c.id, handle.firstExecutionRunId))).at(-1), 'WorkflowExecutionTerminated');
    },
  },
  resetHeartbeat: {
    // One that is completed from outside hears of its reset, too.
    async go(c) {
      const handle = await begin(c, 'waitsOutside');
      await until('it is outside', () => c.tokens.has(c.id));
      await c.client.workflowService.resetActivity({ namespace: 'default', execution: { workflowId: c.id }, id: c.ids.get(c.id), identity: 'me' });
      await failure(c.client.activity.heartbeat(c.tokens.get(c.id)), ActivityResetError);
      await handle.terminate();
    },
  },
  randomAfterReset: {
    // A run that was reset draws other numbers from there on, as all workers do that replay it.
    async go(c) {
      const handle = await begin(c, 'draws');
      const [before, after] = await handle.result();
      const { events } = await handle.fetchHistory();
      const last = events.filter((e) => name(e) === 'WorkflowTaskCompleted').at(-1);
      const { runId } = await c.client.workflowService.resetWorkflowExecution({
        namespace: 'default', workflowExecution: { workflowId: c.id, runId: handle.firstExecutionRunId }, workflowTaskFinishEventId: last.eventId, reason: 'a test', requestId: 'r' });
      const again = await c.client.workflow.getHandle(c.id, runId).result();
      assert.equal(again[0], before);
      assert.notEqual(again[1], after);
    },
    both: true,
  },
  largeHeartbeat: {
    go: run('largeHeartbeat', [700_000], [2, 700_000]),
    events: [START, ...ACTIVITY, END],
  },
  heavyHistory: {
    // 24 MB of results: without a cache a worker reads all of it for each of its tasks. Temporal's dev server cannot pass more than 4 MB on to itself.
    ours: true,
    async go(c) {
      const handle = await begin(c, 'heavy', [12, 2_000_000 - 1000]);
      assert.equal(await handle.result(), 12 * (2_000_000 - 1000));
      assert.equal(checkHistory(await handle.fetchHistory()).length, 2 + 12 * 3);
    },
    both: true,
  },
  slowly: {
    // A worker that takes four activities a second leaves the others to another one.
    async go(c) {
      const connection = await NativeConnection.connect({ address: c.address });
      await c.withWorker({ maxActivitiesPerSecond: 4, maxConcurrentActivityTaskExecutions: 2 }, async () => {
        const slow = await c.client.workflow.start('manyAtOnce', { taskQueue: c.id, workflowId: c.id, args: [40] });
        await c.withWorker({ connection, identity: 'the quick one' }, async () => assert.deepEqual(await slow.result(), [40, 40, 'hello child']));
      });
      await connection.close();
    },
  },
  failsUpdates: {
    // A failure of each kind out of an update, and the workflow goes on.
    async go(c) {
      const handle = await begin(c, 'failsUpdates');
      for (const kind of ['application', 'canceled', 'activity', 'child']) {
        const e = await failure(handle.executeUpdate('fails', { args: [kind] }), WorkflowUpdateFailedError);
        c.note(kind, e.cause?.name, e.cause?.type ?? null, e.cause?.cause?.name ?? null, e.cause?.cause?.type ?? null);
      }
      await handle.signal('done');
      assert.equal(await handle.result(), 4);
    },
    both: true,
  },
};
