// The scenarios of the list: each a client's side with a result and the events that must be in the history. Each is run with a cache and
// without, many copies at once, and once across a restart of the server.
// `events` are all types but those of workflow tasks, in order; `bag` the same in any order, where time decides. `once`: one copy.
// `blocks`: its first call, or what follows that, waits for a worker.
// `local`: it uses local activities. Without a cache the SDK drops those of one run when another run comes, so there is one copy then.
import assert from 'node:assert/strict';
import {
  ApplicationFailure,
  CancelledFailure,
  TerminatedFailure,
  ActivityFailure,
  WorkflowNotFoundError,
} from '@temporalio/common';
import {
  QueryNotRegisteredError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowUpdateFailedError,
  WithStartWorkflowOperation,
  WorkflowUpdateStage,
} from '@temporalio/client';
import { failure, name, names, types, until } from './rig.mjs';

const START = 'WorkflowExecutionStarted';
const END = 'WorkflowExecutionCompleted';
const ACTIVITY = ['ActivityTaskScheduled', 'ActivityTaskStarted', 'ActivityTaskCompleted'];
const CHILD = ['StartChildWorkflowExecutionInitiated', 'ChildWorkflowExecutionStarted', 'ChildWorkflowExecutionCompleted'];
const TIMER = ['TimerStarted', 'TimerFired'];

// Starts, waits, compares the result.
const run = (type, args, expected) => async (c) => {
  const result = await c.client.workflow.execute(type, { taskQueue: c.queue, workflowId: c.id, args });
  assert.deepEqual(result, typeof expected === 'function' ? expected(c) : expected);
};

const begin = (c, type, args = [], more = {}) =>
  c.client.workflow.start(type, { taskQueue: c.queue, workflowId: c.id, args, ...more });

const queryIs = (handle, value) => until('query ' + value, async () => (await handle.query('get')) === value);

export const SCENARIOS = {
  activity: { go: run('hello', ['world'], 'hello world'), events: [START, ...ACTIVITY, END] },
  activityRetry: {
    async go(c) {
      await run('retries', [], 'attempt 3')(c);
    },
    events: [START, ...ACTIVITY, END],
  },
  failureChain: {
    async go(c) {
      const e = await failure((await begin(c, 'failureChain')).result(), WorkflowFailedError);
      assert.ok(e.cause instanceof ActivityFailure);
      assert.ok(e.cause.cause instanceof ApplicationFailure);
      assert.equal(e.cause.cause.message, 'no such card');
      assert.equal(e.cause.cause.type, 'CardError');
      assert.deepEqual(e.cause.cause.details, [{ code: 7 }]);
    },
    events: [START, 'ActivityTaskScheduled', 'ActivityTaskStarted', 'ActivityTaskFailed', 'WorkflowExecutionFailed'],
  },
  localActivity: {
    go: run('localActivity', ['x'], 'hello hello x'),
    events: [START, 'MarkerRecorded', 'MarkerRecorded', END],
    local: true,
  },
  longLocalActivity: { go: run('longLocalActivity', [12000], 'slow'), events: [START, 'MarkerRecorded', END], once: true, local: true },
  timer: { go: run('timer', [30], 'slept'), events: [START, ...TIMER, END] },
  timerCancel: {
    go: run('timerCancel', [], 'canceled'),
    events: [START, 'TimerStarted', 'TimerStarted', 'TimerFired', 'TimerCanceled', END],
  },
  signal: {
    async go(c) {
      const handle = await begin(c, 'signals', [3]);
      for (const x of [1, 2, 3]) await handle.signal('put', x);
      assert.deepEqual(await handle.result(), [1, 2, 3]);
    },
    events: [START, ...Array(3).fill('WorkflowExecutionSignaled'), END],
  },
  signalWithStart: {
    async go(c) {
      const options = { taskQueue: c.queue, workflowId: c.id, args: [2], signal: 'put' };
      const one = await c.client.workflow.signalWithStart('signals', { ...options, signalArgs: ['a'] });
      const two = await c.client.workflow.signalWithStart('signals', { ...options, signalArgs: ['b'] });
      assert.equal(one.signaledRunId, two.signaledRunId);
      assert.deepEqual(await two.result(), ['a', 'b']);
    },
    events: [START, ...Array(2).fill('WorkflowExecutionSignaled'), END],
  },
  query: {
    async go(c) {
      const handle = await begin(c, 'queried');
      await queryIs(handle, 'waiting');
      await failure(handle.query('nobody'), QueryNotRegisteredError);
      await handle.signal('done');
      assert.equal(await handle.result(), 'ended');
      assert.equal(await handle.query('get'), 'ended'); // of a closed run
    },
    events: [START, ...TIMER, 'WorkflowExecutionSignaled', END],
  },
  update: {
    async go(c) {
      const handle = await begin(c, 'updates');
      assert.equal(await handle.executeUpdate('add', { args: [3] }), 3);
      const e = await failure(handle.executeUpdate('add', { args: [-1] }), WorkflowUpdateFailedError);
      assert.equal(e.cause.message, 'negative');
      assert.equal(await handle.executeUpdate('add', { args: [4] }), 7);
      await handle.signal('done');
      assert.equal(await handle.result(), 7);
    },
    events: [
      START,
      'WorkflowExecutionUpdateAccepted',
      ...ACTIVITY,
      'WorkflowExecutionUpdateCompleted',
      'WorkflowExecutionUpdateAccepted',
      ...ACTIVITY,
      'WorkflowExecutionUpdateCompleted',
      'WorkflowExecutionSignaled',
      END,
    ],
  },
  updateAccepted: {
    async go(c) {
      const handle = await begin(c, 'updates');
      const update = await handle.startUpdate('slow', { args: [40], waitForStage: WorkflowUpdateStage.ACCEPTED, updateId: 'u' });
      assert.equal(await update.result(), 'slow 40');
      assert.equal(await handle.getUpdateHandle('u').result(), 'slow 40');
      assert.equal(await handle.executeUpdate('slow', { args: [1], updateId: 'u' }), 'slow 40'); // the same update
      await handle.signal('done');
      assert.equal(await handle.result(), 0);
    },
    events: [
      START,
      'WorkflowExecutionUpdateAccepted',
      ...TIMER,
      'WorkflowExecutionUpdateCompleted',
      'WorkflowExecutionSignaled',
      END,
    ],
  },
  updateWithStart: {
    blocks: true,
    async go(c) {
      const operation = () =>
        new WithStartWorkflowOperation('updates', {
          taskQueue: c.queue,
          workflowId: c.id,
          workflowIdConflictPolicy: 'USE_EXISTING',
        });
      const one = operation();
      assert.equal(await c.client.workflow.executeUpdateWithStart('add', { args: [5], startWorkflowOperation: one }), 5);
      const two = operation();
      assert.equal(await c.client.workflow.executeUpdateWithStart('add', { args: [1], startWorkflowOperation: two }), 6);
      const handle = await two.workflowHandle();
      assert.equal(handle.firstExecutionRunId, (await one.workflowHandle()).firstExecutionRunId);
      await handle.signal('done');
      assert.equal(await handle.result(), 6);
    },
    events: [
      START,
      'WorkflowExecutionUpdateAccepted',
      ...ACTIVITY,
      'WorkflowExecutionUpdateCompleted',
      'WorkflowExecutionUpdateAccepted',
      ...ACTIVITY,
      'WorkflowExecutionUpdateCompleted',
      'WorkflowExecutionSignaled',
      END,
    ],
  },
  updateWithStartConflict: {
    async go(c) {
      const handle = await begin(c, 'updates');
      const operation = new WithStartWorkflowOperation('updates', {
        taskQueue: c.queue,
        workflowId: c.id,
        workflowIdConflictPolicy: 'FAIL',
      });
      await failure(
        c.client.workflow.executeUpdateWithStart('add', { args: [5], startWorkflowOperation: operation }),
        WorkflowExecutionAlreadyStartedError,
      );
      await operation.workflowHandle().catch(() => {});
      await handle.signal('done');
      assert.equal(await handle.result(), 0);
    },
    events: [START, 'WorkflowExecutionSignaled', END],
  },
  cancel: {
    async go(c) {
      const handle = await begin(c, 'cancelable');
      await until('the timer', async () => (await types(handle)).includes('TimerStarted'));
      await handle.cancel();
      const e = await failure(handle.result(), WorkflowFailedError);
      assert.ok(e.cause instanceof CancelledFailure);
      await handle.cancel(); // of a closed run: nothing
    },
    events: [START, 'TimerStarted', 'WorkflowExecutionCancelRequested', 'TimerCanceled', ...ACTIVITY, 'WorkflowExecutionCanceled'],
  },
  activityCancel: {
    blocks: true,
    async go(c) {
      const handle = await begin(c, 'cancelsActivity');
      await until('it has begun', () => c.begun.has(c.id));
      await handle.signal('done');
      assert.equal(await handle.result(), 'canceled');
    },
    events: [
      START,
      'ActivityTaskScheduled',
      'WorkflowExecutionSignaled',
      'ActivityTaskCancelRequested',
      'ActivityTaskStarted',
      'ActivityTaskCanceled',
      END,
    ],
  },
  terminate: {
    async go(c) {
      const handle = await begin(c, 'forever');
      await handle.terminate('enough', 'because');
      const e = await failure(handle.result(), WorkflowFailedError);
      assert.ok(e.cause instanceof TerminatedFailure);
      await failure(handle.terminate(), WorkflowNotFoundError);
      await failure(handle.signal('put', 1), WorkflowNotFoundError);
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  child: {
    go: run('parent', ['kid'], 'hello kid'),
    events: [
      START,
      'StartChildWorkflowExecutionInitiated',
      'ChildWorkflowExecutionStarted',
      'ChildWorkflowExecutionCompleted',
      END,
    ],
  },
  childFails: {
    go: run('parentOfFailing', [], ['ChildWorkflowFailure', 'ActivityFailure', 'ApplicationFailure', 'no such card']),
    events: [
      START,
      'StartChildWorkflowExecutionInitiated',
      'ChildWorkflowExecutionStarted',
      'ChildWorkflowExecutionFailed',
      END,
    ],
  },
  parentClosePolicy: {
    async go(c) {
      for (const [policy, status] of [
        ['TERMINATE', 'TERMINATED'],
        ['ABANDON', 'RUNNING'],
        ['REQUEST_CANCEL', 'CANCELLED'],
      ]) {
        const id = `${c.id}/${policy}`;
        await c.client.workflow.execute('parentWithPolicy', { taskQueue: c.queue, workflowId: id, args: [policy] });
        const child = c.client.workflow.getHandle(id + '/child');
        await until(policy, async () => (await child.describe()).status.name === status);
        const end = { TERMINATED: 'WorkflowExecutionTerminated', RUNNING: 'WorkflowExecutionTerminated' }[status];
        if (status === 'RUNNING') await child.terminate();
        await c.events(id, [START, 'StartChildWorkflowExecutionInitiated', 'ChildWorkflowExecutionStarted', END]);
        await c.events(id + '/child', end ? [START, end] : [START, 'WorkflowExecutionCancelRequested', 'WorkflowExecutionCanceled']);
      }
    },
  },
  continueAsNew: {
    async go(c) {
      const handle = await begin(c, 'again', [2]);
      assert.equal(await handle.result(), 'last');
      const first = await c.client.workflow.getHandle(c.id, handle.firstExecutionRunId).fetchHistory();
      assert.equal(names(first).at(-1), 'WorkflowExecutionContinuedAsNew');
    },
    events: [START, END],
  },
  patchAndMemo: {
    async go(c) {
      const handle = await begin(c, 'patched', [], { memo: { note: 'first' } });
      assert.deepEqual(await handle.result(), ['new', 'new', 'blue']);
      assert.equal((await handle.describe()).memo.note, 'new');
    },
    events: [
      START,
      'MarkerRecorded',
      'UpsertWorkflowSearchAttributes',
      'WorkflowPropertiesModified',
      'UpsertWorkflowSearchAttributes',
      ...TIMER,
      END,
    ],
  },
  failingTask: { go: run('recovers', [], 'recovered'), events: [START, 'MarkerRecorded', END], local: true },
  externalSignal: {
    async go(c) {
      const other = await c.client.workflow.start('signals', { taskQueue: c.queue, workflowId: c.id + '/other', args: [1] });
      assert.equal(await (await begin(c, 'signalsAnother', [c.id + '/other'])).result(), 'sent');
      assert.deepEqual(await other.result(), [c.id]);
    },
    events: [START, 'SignalExternalWorkflowExecutionInitiated', 'ExternalWorkflowExecutionSignaled', END],
  },
  externalCancel: {
    async go(c) {
      const other = await c.client.workflow.start('forever', { taskQueue: c.queue, workflowId: c.id + '/other' });
      assert.equal(await (await begin(c, 'cancelsAnother', [c.id + '/other'])).result(), 'asked');
      const e = await failure(other.result(), WorkflowFailedError);
      assert.ok(e.cause instanceof CancelledFailure);
    },
    events: [
      START,
      'RequestCancelExternalWorkflowExecutionInitiated',
      'ExternalWorkflowExecutionCancelRequested',
      END,
    ],
  },
  duplicateId: {
    async go(c) {
      const handle = await begin(c, 'forever');
      await failure(begin(c, 'forever'), WorkflowExecutionAlreadyStartedError);
      const same = await begin(c, 'forever', [], { workflowIdConflictPolicy: 'USE_EXISTING' });
      assert.equal(same.firstExecutionRunId, handle.firstExecutionRunId);
      const next = await begin(c, 'timer', [1], { workflowIdConflictPolicy: 'TERMINATE_EXISTING' });
      assert.notEqual(next.firstExecutionRunId, handle.firstExecutionRunId);
      assert.equal(await next.result(), 'slept');
      await failure(begin(c, 'timer', [1], { workflowIdReusePolicy: 'REJECT_DUPLICATE' }), WorkflowExecutionAlreadyStartedError);
      await failure(
        begin(c, 'timer', [1], { workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY' }),
        WorkflowExecutionAlreadyStartedError,
      );
    },
    events: [START, ...TIMER, END],
  },
  notFound: {
    async go(c) {
      const handle = c.client.workflow.getHandle(c.id);
      await failure(handle.describe(), WorkflowNotFoundError);
      await failure(handle.signal('put', 1), WorkflowNotFoundError);
      await failure(handle.query('get'), WorkflowNotFoundError);
      await failure(handle.cancel(), WorkflowNotFoundError);
      await failure(handle.terminate(), WorkflowNotFoundError);
      await failure(handle.result(), WorkflowNotFoundError);
    },
  },
  asyncCompletion: {
    blocks: true,
    async go(c) {
      const handle = await begin(c, 'asynchronous');
      await until('the token', () => c.tokens.has(c.id));
      await c.client.activity.heartbeat(c.tokens.get(c.id), 'half');
      await c.client.activity.complete(c.tokens.get(c.id), 'from outside');
      assert.equal(await handle.result(), 'from outside');
    },
    events: [START, ...ACTIVITY, END],
  },
  completionById: {
    blocks: true,
    async go(c) {
      const handle = await begin(c, 'asynchronous');
      await until('the token', () => c.tokens.has(c.id));
      const activity = c.ids.get(c.id);
      const id = { workflowId: c.id, runId: handle.firstExecutionRunId, activityId: activity };
      await c.client.activity.heartbeat(id, 1);
      await c.client.activity.complete(id, 'by id');
      assert.equal(await handle.result(), 'by id');
    },
    events: [START, ...ACTIVITY, END],
  },
  parallel: { go: run('parallel', [20], 380), bag: [START, ...Array(20).fill(ACTIVITY).flat(), END] },
  mixed: { go: run('mixed', [], ['hello a', 'b', 'hello c']), bag: [START, ...ACTIVITY, ...TIMER, ...CHILD, END] },
  conditionTimeout: { go: run('conditionTimeout', [], [false, true]), events: [START, ...TIMER, END] },
  random: {
    async go(c) {
      const [uuid, number, time] = await (await begin(c, 'random')).result();
      assert.match(uuid, /^[0-9a-f-]{36}$/);
      assert.ok(number >= 0 && number < 1 && time > 1e12);
    },
    events: [START, ...TIMER, ...TIMER, END],
  },
  bigPayload: { go: run('big', [1500000], 1500000), events: [START, ...ACTIVITY, END], once: true },
  workflowRetry: {
    async go(c) {
      const handle = await begin(c, 'failsAtFirst', [], { retry: { initialInterval: '10ms', maximumAttempts: 5 } });
      assert.equal(await handle.result(), 3);
    },
    events: [START, END],
  },
  startDelay: {
    async go(c) {
      const handle = await begin(c, 'info', [], { startDelay: '50ms', memo: { a: [1, 'x'] } });
      const info = await handle.result();
      assert.deepEqual(info, { type: 'info', queue: c.queue, attempt: 1, memo: { a: [1, 'x'] } });
    },
    events: [START, END],
  },
  runTimeout: {
    async go(c) {
      const handle = await begin(c, 'forever', [], { workflowRunTimeout: '100ms' });
      const e = await failure(handle.result(), WorkflowFailedError);
      assert.equal(e.cause.name, 'TimeoutFailure');
    },
    events: [START, 'WorkflowExecutionTimedOut'],
  },
  outlivingUpdate: {
    async go(c) {
      const handle = await begin(c, 'outlives');
      const update = await handle.startUpdate('wait', { waitForStage: WorkflowUpdateStage.ACCEPTED });
      await handle.signal('done'); // main has nothing more to do
      await queryIs(handle, 'main is done');
      await handle.signal('put', 'x');
      assert.equal(await update.result(), 'x');
      assert.equal(await handle.result(), 'main is last');
    },
    events: [
      START,
      'WorkflowExecutionUpdateAccepted',
      'WorkflowExecutionSignaled',
      'WorkflowExecutionSignaled',
      'WorkflowExecutionUpdateCompleted',
      END,
    ],
  },
  typedFailure: {
    async go(c) {
      const e = await failure((await begin(c, 'throwsType')).result(), WorkflowFailedError);
      assert.equal(e.cause.type, 'Mine');
      assert.equal(e.cause.nonRetryable, true);
      assert.deepEqual(e.cause.details, [{ a: 1 }, 'two']);
    },
    events: [START, 'WorkflowExecutionFailed'],
  },
  describe: {
    async go(c) {
      const handle = await begin(c, 'forever', [], { memo: { k: 'v' }, staticSummary: 'a summary' });
      const d = await handle.describe();
      assert.equal(d.status.name, 'RUNNING');
      assert.equal(d.type, 'forever');
      assert.equal(d.taskQueue, c.queue);
      assert.equal(d.workflowId, c.id);
      assert.equal(d.memo.k, 'v');
      assert.equal(await d.staticSummary(), 'a summary');
      assert.ok(d.startTime instanceof Date);
      await handle.terminate();
      assert.equal((await handle.describe()).status.name, 'TERMINATED');
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  reset: {
    async go(c) {
      const handle = await begin(c, 'signals', [1]);
      await handle.signal('put', 'once');
      assert.deepEqual(await handle.result(), ['once']);
      const history = await handle.fetchHistory();
      const first = history.events.find((e) => name(e) === 'WorkflowTaskCompleted');
      await c.client.workflowService.resetWorkflowExecution({
        namespace: 'default',
        workflowExecution: { workflowId: c.id, runId: handle.firstExecutionRunId },
        reason: 'a test',
        workflowTaskFinishEventId: first.eventId,
        requestId: c.id,
      });
      assert.deepEqual(await c.client.workflow.getHandle(c.id).result(), ['once']); // signals are applied again
    },
    events: [START, 'WorkflowExecutionSignaled', END],
  },
  delete: {
    async go(c) {
      const handle = await begin(c, 'timer', [1]);
      await handle.result();
      await c.client.workflowService.deleteWorkflowExecution({
        namespace: 'default',
        workflowExecution: { workflowId: c.id, runId: handle.firstExecutionRunId },
      });
      await until('it is gone', () =>
        handle.describe().then(
          () => false,
          (e) => e instanceof WorkflowNotFoundError,
        ),
      );
    },
  },
  historyReverse: {
    async go(c) {
      const handle = await begin(c, 'hello', ['x']);
      await handle.result();
      const reverse = await c.client.workflowService.getWorkflowExecutionHistoryReverse({
        namespace: 'default',
        execution: { workflowId: c.id },
        maximumPageSize: 100,
      });
      const forward = (await handle.fetchHistory()).events;
      assert.deepEqual(
        reverse.history.events.map((e) => Number(e.eventId)),
        forward.map((e) => Number(e.eventId)).reverse(),
      );
    },
    events: [START, ...ACTIVITY, END],
  },
  longHistory: {
    async go(c) {
      const length = await (await begin(c, 'many', [c.queue === 'cached' ? 700 : 60])).result();
      assert.ok(length > (c.queue === 'cached' ? 3000 : 300), String(length));
      const history = await c.client.workflow.getHandle(c.id).fetchHistory();
      assert.ok(history.events.length >= length);
    },
    ours: true, // Temporal's timers take a second
    once: true,
  },
};
