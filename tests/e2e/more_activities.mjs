// Activities: timeouts, heartbeats, failures, cancellation, completion from outside, pause and reset; local activities.
import assert from 'node:assert/strict';
import { ActivityCancelledError, ActivityCompletionError, ActivityNotFoundError, ActivityPausedError } from '@temporalio/client';
import { ApplicationFailure, WorkflowNotFoundError } from '@temporalio/common';
import { codeOf, enums, failure, until } from './rig.mjs';

const START = 'WorkflowExecutionStarted';
const END = 'WorkflowExecutionCompleted';
const SCHEDULED = 'ActivityTaskScheduled';
const STARTED = 'ActivityTaskStarted';
const SIGNAL = 'WorkflowExecutionSignaled';
const ACTIVITY = [SCHEDULED, STARTED, 'ActivityTaskCompleted'];

const begin = (c, type, args = [], more = {}) =>
  c.client.workflow.start(type, { taskQueue: c.queue, workflowId: c.id, args, ...more });
const run = (type, args, expected) => async (c) => assert.deepEqual(await (await begin(c, type, args)).result(), expected);

const pending = async (handle) => (await handle.describe()).raw.pendingActivities;
const token = async (c) => {
  await until('the token', () => c.tokens.has(c.id));
  return c.tokens.get(c.id);
};

export const ACTIVITIES = {
  activityTimeouts: {
    go: run('activityTimeouts', [], {
      startToClose: [['ActivityFailure', null], ['TimeoutFailure', 'START_TO_CLOSE']],
      scheduleToClose: [['ActivityFailure', null], ['TimeoutFailure', 'SCHEDULE_TO_CLOSE']],
      scheduleToStart: [['ActivityFailure', null], ['TimeoutFailure', 'SCHEDULE_TO_START']],
      heartbeat: [['ActivityFailure', null], ['TimeoutFailure', 'HEARTBEAT']],
    }),
    bag: [START, ...Array(4).fill(SCHEDULED), ...Array(3).fill(STARTED), ...Array(4).fill('ActivityTaskTimedOut'), END],
    both: true,
  },
  heartbeatResumes: { go: run('heartbeatResumes', [], [[2, { at: 3 }], [2, { at: 7 }]]), events: [START, ...ACTIVITY, ...ACTIVITY, END] },
  timesOutAndRetries: { go: run('timesOutAndRetries', [], 'attempt 2'), events: [START, ...ACTIVITY, END] },
  nonRetryableTypes: {
    async go(c) {
      const [fatal, soon] = await (await begin(c, 'nonRetryableTypes')).result();
      assert.deepEqual(fatal[1], ['ApplicationFailure', 'Fatal', 'no']);
      assert.equal(soon, 3);
    },
    events: [START, SCHEDULED, STARTED, 'ActivityTaskFailed', ...ACTIVITY, END],
  },
  activityFailures: {
    async go(c) {
      const seen = await (await begin(c, 'activityFailures')).result();
      c.note(seen);
      assert.deepEqual(seen[0], [['ActivityFailure', null, 0], ['ApplicationFailure', 'Outer', 'outer'], ['ApplicationFailure', 'Inner', 'inner']]);
      assert.deepEqual(seen[3], [['ActivityFailure', null, 0], ['ApplicationFailure', 'TypeError', 'a type error']]);
      assert.equal(seen[4][1][1], 'NotFoundError');
    },
    events: [START, ...Array(5).fill([SCHEDULED, STARTED, 'ActivityTaskFailed']).flat(), END],
  },
  activityFacts: {
    async go(c) {
      const [remote, local] = await (await begin(c, 'activityFacts')).result();
      const common = { workflowType: 'activityFacts', workflowId: c.id, namespace: 'default', attempt: 1, type: 'facts', queue: c.queue };
      assert.deepEqual(remote, {
        ...common, args: [1, 'two', null, { a: [true] }], local: false, startToClose: 10000, scheduleToClose: 20000, heartbeat: 5000,
        times: ['number', 'number'], priority: 2,
      });
      assert.equal(local.local, true);
      assert.equal(local.workflowId, c.id);
      const { events } = await c.client.workflow.getHandle(c.id).fetchHistory();
      const scheduled = events.find((e) => e.activityTaskScheduledEventAttributes);
      assert.equal(scheduled.activityTaskScheduledEventAttributes.activityId, 'mine');
      assert.match(Buffer.from(scheduled.userMetadata.summary.data).toString(), /a summary/);
    },
    events: [START, ...ACTIVITY, 'MarkerRecorded', END],
  },
  values: {
    go: run('values', [], [true, 5, { text: 'äöü ∀ 𝒳 \u0000', list: [1.5, -0.25, 1e21], nested: { deep: [[[{}]]] }, no: null }, true]),
    events: [START, ...Array(4).fill(ACTIVITY).flat(), END],
    both: true,
  },

  // ---- Cancellation

  ...Object.fromEntries(
    [
      // type, activity, returns, what the workflow sees, the events after the signal
      ['TRY_CANCEL', 'stubborn', false, 'CancelledFailure', null],
      ['ABANDON', 'stubborn', false, 'CancelledFailure', []],
      ['WAIT_CANCELLATION_COMPLETED', 'stubborn', false, 'CancelledFailure', ['ActivityTaskCancelRequested', STARTED, 'ActivityTaskCanceled']],
      ['WAIT_CANCELLATION_COMPLETED', 'stubborn', true, 'done nevertheless', ['ActivityTaskCancelRequested', STARTED, 'ActivityTaskCompleted']],
    ].map(([type, name, returns, seen, events]) => [
      `cancel ${type}${returns ? ' ignored' : ''}`,
      {
        async go(c) {
          const handle = await begin(c, 'cancelTypes', [type, name, returns]);
          await until('it has begun', () => c.begun.has(c.id));
          await handle.signal('done');
          const { result, failure: why } = await handle.result();
          assert.equal(result ?? why[1][0], seen);
          if (events) await c.events(c.id, [START, SCHEDULED, SIGNAL, ...events, END]);
        },
      },
    ]),
  ),
  cancelBeforeStart: {
    go: run('cancelBeforeStart', [], ['ActivityFailure', 'CancelledFailure']),
    events: [START, SCHEDULED, 'TimerStarted', 'TimerFired', 'ActivityTaskCancelRequested', 'ActivityTaskCanceled', END],
  },

  // ---- From outside

  outsideFails: {
    async go(c) {
      const handle = await begin(c, 'waitsOutside');
      await c.client.activity.fail(await token(c), ApplicationFailure.create({ message: 'outside', type: 'Outside', details: [1] }));
      const { failure: why } = await handle.result();
      assert.deepEqual(why.slice(1), [['ApplicationFailure', 'Outside', 'outside']]);
      await failure(c.client.activity.complete(await token(c), 1), ActivityNotFoundError);
      await failure(c.client.activity.heartbeat(await token(c), 1), ActivityNotFoundError);
    },
    events: [START, SCHEDULED, STARTED, 'ActivityTaskFailed', END],
  },
  outsideCanceled: {
    async go(c) {
      const handle = await begin(c, 'waitsOutside');
      const t = await token(c);
      await c.client.activity.heartbeat(t, { n: 1 });
      await failure(c.client.activity.reportCancellation(t), ActivityCompletionError); // nobody asked for it
      await handle.signal('put', 1);
      await until('the cancel arrives', () => c.client.activity.heartbeat(t).then(() => false, (e) => e instanceof ActivityCancelledError));
      await c.client.activity.reportCancellation(t, 'details');
      assert.equal((await handle.result()).failure[1][0], 'CancelledFailure');
    },
    events: [START, SCHEDULED, SIGNAL, 'ActivityTaskCancelRequested', STARTED, 'ActivityTaskCanceled', END],
  },
  outsideById: {
    async go(c) {
      const handle = await begin(c, 'waitsOutside');
      await token(c);
      const id = { workflowId: c.id, runId: handle.firstExecutionRunId, activityId: c.ids.get(c.id) };
      await failure(c.client.activity.complete({ ...id, activityId: 'nobody' }, 1), ActivityNotFoundError);
      await failure(c.client.activity.complete({ ...id, workflowId: c.id + '/nobody', runId: undefined }, 1), ActivityNotFoundError);
      await c.client.activity.heartbeat({ ...id, runId: undefined }, 'beat');
      await c.client.activity.fail(id, new Error('by id'));
      assert.equal((await handle.result()).failure[1][2], 'by id');
      await failure(c.client.activity.fail(id, new Error('again')), ActivityNotFoundError);
    },
    events: [START, SCHEDULED, STARTED, 'ActivityTaskFailed', END],
  },
  badToken: {
    async go(c) {
      await failure(c.client.activity.complete(new Uint8Array([1, 2, 3]), 1), ActivityCompletionError);
      await failure(c.client.activity.complete(new Uint8Array(0), 1), ActivityCompletionError);
    },
  },

  // ---- Pause, reset, options

  pauseInBackoff: {
    async go(c) {
      const service = c.client.workflowService;
      const handle = await begin(c, 'slowRetry');
      await until('it is between attempts', async () => (await pending(handle))[0]?.attempt === 2);
      const { activityId } = (await pending(handle))[0];
      const target = { namespace: 'default', execution: { workflowId: c.id }, id: activityId, identity: 'me' };
      await service.pauseActivity({ ...target, reason: 'wait' });
      assert.equal((await pending(handle))[0].paused, true);
      await service.unpauseActivity({ ...target });
      await until('it goes on', async () => !(await pending(handle))[0]?.paused);
      const { activityOptions } = await service.updateActivityOptions({
        ...target,
        activityOptions: { retryPolicy: { initialInterval: { seconds: 7200 } } },
        updateMask: { paths: ['retry_policy.initial_interval'] },
      });
      assert.equal(Number(activityOptions.retryPolicy.initialInterval.seconds), 7200);
      await service.resetActivity({ ...target });
      await until('it begins anew', async () => (await pending(handle))[0]?.attempt <= 2);
      await handle.terminate();
    },
    events: [START, SCHEDULED, 'WorkflowExecutionTerminated'],
  },
  pauseWhileRunning: {
    async go(c) {
      const handle = await begin(c, 'tellsReasons');
      await until('it has begun', () => c.begun.has(c.id));
      const { activityId } = (await pending(handle))[0];
      const target = { namespace: 'default', execution: { workflowId: c.id }, id: activityId, identity: 'me' };
      await c.client.workflowService.pauseActivity(target);
      const reasons = await handle.result();
      assert.equal(reasons.paused, true);
      assert.equal(reasons.cancelRequested, false);
    },
    events: [START, ...ACTIVITY, END],
  },
  resetWhileRunning: {
    async go(c) {
      const handle = await begin(c, 'tellsReasons');
      await until('it has begun', () => c.begun.has(c.id));
      const { activityId } = (await pending(handle))[0];
      await c.client.workflowService.resetActivity({ namespace: 'default', execution: { workflowId: c.id }, id: activityId, identity: 'me' });
      const reasons = await handle.result();
      assert.equal(reasons.reset, true);
    },
    events: [START, ...ACTIVITY, END],
  },
  pausedHeartbeat: {
    async go(c) {
      const handle = await begin(c, 'waitsOutside');
      const t = await token(c);
      const target = { namespace: 'default', execution: { workflowId: c.id }, id: c.ids.get(c.id), identity: 'me' };
      await c.client.workflowService.pauseActivity(target);
      await failure(c.client.activity.heartbeat(t), ActivityPausedError);
      await c.client.activity.complete(t, 'complete');
      assert.deepEqual(await handle.result(), { result: 'complete' });
    },
    events: [START, ...ACTIVITY, END],
  },
  pauseErrors: {
    async go(c) {
      const service = c.client.workflowService;
      const nobody = { namespace: 'default', execution: { workflowId: c.id }, id: '1' };
      const handle = await begin(c, 'waits');
      for (const call of ['pauseActivity', 'unpauseActivity', 'resetActivity']) {
        c.note(call, await codeOf(service[call](nobody)));
        c.note(call, await codeOf(service[call]({ namespace: 'default', execution: { workflowId: c.id } })));
        assert.equal(await codeOf(service[call]({ ...nobody, execution: { workflowId: c.id + '/nobody' } })), 'NOT_FOUND');
      }
      await handle.terminate();
    },
  },
  pendingActivities: {
    async go(c) {
      const handle = await begin(c, 'slowRetry');
      await until('it is between attempts', async () => (await pending(handle))[0]?.attempt === 2);
      const [activity] = await pending(handle);
      assert.equal(activity.state, enums.PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED);
      assert.equal(activity.activityType.name, 'failWith');
      assert.equal(activity.lastFailure.message, 'again');
      assert.equal(activity.maximumAttempts, 0);
      c.note(Object.keys(activity).filter((k) => activity[k] != null && !/Time|Interval/.test(k)).sort());
      await handle.terminate();
    },
    events: [START, SCHEDULED, 'WorkflowExecutionTerminated'],
  },

  // ---- Local

  localRetries: {
    async go(c) {
      const [quick, slow, no] = await (await begin(c, 'localRetries')).result();
      assert.deepEqual([quick, slow], ['attempt 3', 'attempt 3']);
      assert.deepEqual(no.at(-1), ['ApplicationFailure', 'CardError', 'no']);
    },
    // The back-off that is longer than the threshold is a timer, and each side of it a marker.
    events: [START, 'MarkerRecorded', 'MarkerRecorded', 'TimerStarted', 'TimerFired', 'MarkerRecorded', 'TimerStarted', 'TimerFired',
      'MarkerRecorded', 'MarkerRecorded', END],
  },
  localMany: { go: run('localMany', [50], 1275), events: [START, ...Array(50).fill('MarkerRecorded'), END] },
  localTimeout: { go: run('localTimeout', [], [['ActivityFailure', null], ['TimeoutFailure', 'START_TO_CLOSE']]), events: [START, 'MarkerRecorded', END] },
  localCancel: {
    go: run('localCancel', [], ['ActivityFailure', 'CancelledFailure']),
    events: [START, 'TimerStarted', 'TimerFired', 'MarkerRecorded', END],
  },
};
