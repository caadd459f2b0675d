// Workflows: children, scopes, signals, queries, updates, continuing, retries, cron, patches, memos and search attributes.
import assert from 'node:assert/strict';
import {
  Client,
  Connection,
  QueryNotRegisteredError,
  QueryRejectedError,
  WorkflowContinuedAsNewError,
  WorkflowFailedError,
  WorkflowUpdateFailedError,
  WorkflowUpdateStage,
} from '@temporalio/client';
import { CancelledFailure, TerminatedFailure, TimeoutFailure, WorkflowNotFoundError } from '@temporalio/common';
import { codeOf, enums, failure, name, names, types, until } from './rig.mjs';

const START = 'WorkflowExecutionStarted';
const END = 'WorkflowExecutionCompleted';
const SIGNAL = 'WorkflowExecutionSignaled';
const ACTIVITY = ['ActivityTaskScheduled', 'ActivityTaskStarted', 'ActivityTaskCompleted'];
const TIMER = ['TimerStarted', 'TimerFired'];
const INITIATED = 'StartChildWorkflowExecutionInitiated';
const CHILD_STARTED = 'ChildWorkflowExecutionStarted';
const UPDATE = ['WorkflowExecutionUpdateAccepted', 'WorkflowExecutionUpdateCompleted'];

const begin = (c, type, args = [], more = {}) =>
  c.client.workflow.start(type, { taskQueue: c.queue, workflowId: c.id, args, ...more });
const run = (type, args, expected) => async (c) => assert.deepEqual(await (await begin(c, type, args)).result(), expected);

export const RUNS = {
  childKinds: {
    async go(c) {
      const seen = await (await begin(c, 'childKinds', [c.id])).result();
      assert.deepEqual(seen, {
        same: 'WorkflowExecutionAlreadyStartedError',
        result: ['from the parent'],
        timeout: [['ChildWorkflowFailure', null], ['TimeoutFailure', 'START_TO_CLOSE']],
        unknown: { result: 'last' },
        retried: { result: 3 },
        reuse: 'WorkflowExecutionAlreadyStartedError',
      });
      const child = await c.client.workflow.getHandle(c.id + '/a').describe();
      assert.deepEqual(child.memo, { of: 'child' });
      assert.deepEqual(child.searchAttributes.CustomKeywordField, ['kid']);
      assert.equal(child.parentExecution.workflowId, c.id);
      assert.equal(child.rootExecution.workflowId, c.id);
    },
    events: [
      START,
      INITIATED, CHILD_STARTED,
      INITIATED, 'StartChildWorkflowExecutionFailed',
      'SignalExternalWorkflowExecutionInitiated', 'ExternalWorkflowExecutionSignaled',
      'SignalExternalWorkflowExecutionInitiated', 'ExternalWorkflowExecutionSignaled',
      'ChildWorkflowExecutionCompleted',
      INITIATED, CHILD_STARTED, 'ChildWorkflowExecutionTimedOut',
      INITIATED, CHILD_STARTED, 'ChildWorkflowExecutionCompleted',
      INITIATED, CHILD_STARTED, 'ChildWorkflowExecutionCompleted',
      INITIATED, 'StartChildWorkflowExecutionFailed',
      END,
    ],
  },
  childTerminated: {
    async go(c) {
      const handle = await begin(c, 'childTerminated', [c.id]);
      await until('the child', async () => (await types(handle)).includes(CHILD_STARTED));
      await c.client.workflow.getHandle(c.id + '/child').terminate('by a test');
      assert.deepEqual(await handle.result(), ['ChildWorkflowFailure', 'TerminatedFailure']);
    },
    events: [START, INITIATED, CHILD_STARTED, 'ChildWorkflowExecutionTerminated', END],
    both: true,
  },
  ...Object.fromEntries(
    [
      ['ABANDON', 'ChildWorkflowFailure CancelledFailure', []],
      ['TRY_CANCEL', 'ChildWorkflowFailure CancelledFailure', null],
      ['WAIT_CANCELLATION_REQUESTED', 'ChildWorkflowFailure CancelledFailure', null],
      ['WAIT_CANCELLATION_COMPLETED', 'ChildWorkflowFailure CancelledFailure', null],
    ].map(([type, seen]) => [
      `childCancel ${type}`,
      {
        async go(c) {
          const handle = await begin(c, 'childCancel', [c.id, type]);
          const child = c.client.workflow.getHandle(c.id + '/child');
          await until('the child has its signal', async () => (await child.query('get').catch(() => [])).length === 1);
          await handle.signal('done');
          if (type.startsWith('WAIT')) { // the SDK waits for the end of the child in both cases
            await until('the child knows', async () => (await types(child)).includes('WorkflowExecutionCancelRequested'));
            assert.equal((await handle.describe()).status.name, 'RUNNING');
            await child.signal('done');
          }
          assert.equal((await handle.result()).join(' '), seen);
          if (type === 'ABANDON') assert.ok(!(await types(child)).includes('WorkflowExecutionCancelRequested'));
          await child.terminate().catch(() => {});
        },
      },
    ]),
  ),
  childInfo: {
    async go(c) {
      const info = await (await begin(c, 'childInfo', [c.id])).result();
      assert.deepEqual(info, { parent: c.id, root: c.id, memo: {}, taskQueue: c.queue, attempt: 1 });
    },
    events: [START, INITIATED, CHILD_STARTED, 'ChildWorkflowExecutionCompleted', END],
  },
  manyChildren: {
    go: run('manyChildren', [30], 30),
    bag: [START, ...Array(30).fill([INITIATED, CHILD_STARTED, 'ChildWorkflowExecutionCompleted']).flat(), END],
  },

  // ---- Scopes

  scopes: { go: run('scopes', [], ['CancelledFailure', null, 'CancelledFailure', 'CancelledFailure', [null, 'hello x']]), both: true },
  cleansUp: {
    async go(c) {
      const handle = await begin(c, 'cleansUp');
      await handle.cancel();
      await handle.cancel();
      assert.deepEqual(await handle.result(), [true, 'hello clean', 'hello up']);
    },
  },
  cancelUnhandled: {
    async go(c) {
      const handle = await begin(c, 'waits');
      await handle.cancel();
      const e = await failure(handle.result(), WorkflowFailedError);
      assert.ok(e.cause instanceof CancelledFailure);
      assert.equal((await handle.describe()).status.name, 'CANCELLED');
    },
    events: [START, 'WorkflowExecutionCancelRequested', 'WorkflowExecutionCanceled'],
    both: true,
  },

  // ---- Signals, queries, updates

  defaults: {
    async go(c) {
      const handle = await begin(c, 'defaults');
      await handle.signal('any', 1, 'x');
      assert.deepEqual(await handle.query('what', 2), ['query', 'what', 2]);
      assert.deepEqual(await handle.executeUpdate('some', { args: [3] }), ['update', 'some', 3]);
      await handle.signal('done');
      assert.deepEqual(await handle.result(), [['any', 1, 'x']]);
    },
    events: [START, SIGNAL, ...UPDATE, SIGNAL, END],
    both: true,
  },
  lateHandler: {
    async go(c) {
      const handle = await begin(c, 'lateHandler');
      await Promise.all([1, 2, 3].map((x) => handle.signal('put', x)));
      assert.deepEqual(await handle.result(), [1, 2, 3]);
    },
    both: true,
  },
  manySignals: {
    async go(c) {
      const handle = await begin(c, 'signals', [300]);
      await Promise.all([...Array(300).keys()].map((x) => handle.signal('put', x)));
      const got = await handle.result();
      assert.deepEqual(got.sort((a, b) => a - b), [...Array(300).keys()]);
    },
    bag: [START, ...Array(300).fill(SIGNAL), END],
  },
  queries: {
    async go(c) {
      const handle = await begin(c, 'badQuery');
      assert.deepEqual(await handle.query('get', 'x'), { what: 'x' });
      const e = await failure(handle.query('get', 'throw'), Error);
      assert.match(`${e.message} ${e.cause?.message}`, /from the query/);
      await failure(handle.query('nobody'), QueryNotRegisteredError);
      assert.match(await handle.query('__stack_trace'), /badQuery/);
      const metadata = await handle.query('__temporal_workflow_metadata');
      assert.equal(metadata.definition.type, 'badQuery');
      assert.ok((await handle.query('__enhanced_stack_trace')).stacks.length > 0);
      const many = c.queue === 'cached' ? 30 : 1; // without a cache the SDK loses some of many at once
      await Promise.all([...Array(many).keys()].map(async (i) => assert.deepEqual(await handle.query('get', i), { what: i })));
      await handle.terminate();
      assert.deepEqual(await handle.query('get', 'closed'), { what: 'closed' });
      const picky = new Client({ connection: c.connection, workflow: { queryRejectCondition: enums.QueryRejectCondition.QUERY_REJECT_CONDITION_NOT_OPEN } });
      await failure(picky.workflow.getHandle(c.id).query('get', 1), QueryRejectedError);
      const clean = new Client({ connection: c.connection, workflow: { queryRejectCondition: enums.QueryRejectCondition.QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY } });
      await failure(clean.workflow.getHandle(c.id).query('get', 1), QueryRejectedError);
    },
    events: [START, 'WorkflowExecutionTerminated'],
    both: true,
  },
  queryWithoutHistory: {
    // Of a run that ended before any workflow task.
    async go(c) {
      const handle = await c.client.workflow.start('waits', { taskQueue: 'nobody', workflowId: c.id });
      await handle.terminate();
      const code = await codeOf(handle.query('get'));
      c.note(code);
      assert.notEqual(code, 'OK');
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  updates: {
    async go(c) {
      const handle = await begin(c, 'handlers');
      const e = await failure(handle.executeUpdate('fail'), WorkflowUpdateFailedError);
      assert.equal(e.cause.type, 'UpdateProblem');
      assert.deepEqual(e.cause.details, [1]);
      assert.equal(await handle.executeUpdate('now', { args: [4] }), 8);
      assert.deepEqual(await handle.executeUpdate('id', { updateId: 'my-id' }), ['id', 'my-id']);
      const unknown = await failure(handle.executeUpdate('nobody'), WorkflowUpdateFailedError);
      assert.match(unknown.cause.message, /nobody/);
      await handle.signal('done');
      await handle.result();
      assert.equal(await handle.getUpdateHandle('my-id').result().then(String), 'id,my-id'); // of a closed run
      await failure(handle.executeUpdate('now', { args: [4] }), WorkflowNotFoundError);
      assert.notEqual(await codeOf(handle.getUpdateHandle('nobody').result()), 'OK');
    },
    events: [START, UPDATE[0], ...TIMER, UPDATE[1], ...UPDATE, ...UPDATE, SIGNAL, END],
    both: true,
  },
  manyUpdates: {
    async go(c) {
      const handle = await begin(c, 'handlers');
      const all = await Promise.all([...Array(10).keys()].map((i) => handle.executeUpdate('activity', { args: [i] })));
      assert.deepEqual(all, [...Array(10).keys()].map((i) => 'hello ' + i));
      await handle.signal('done');
      assert.equal((await handle.result()).length, 10);
    },
    bag: [START, ...Array(10).fill([...UPDATE, ...ACTIVITY]).flat(), SIGNAL, END],
    both: true,
  },
  unfinishedUpdate: {
    async go(c) {
      const handle = await begin(c, 'handlers');
      const update = await handle.startUpdate('never', { waitForStage: WorkflowUpdateStage.ACCEPTED });
      await handle.signal('done');
      await handle.result();
      const e = await failure(update.result(), WorkflowUpdateFailedError);
      c.note(e.cause.type);
    },
    events: [START, UPDATE[0], SIGNAL, END],
    both: true,
  },
  updateStages: {
    async go(c) {
      const handle = await begin(c, 'handlers');
      const one = await handle.startUpdate('activity', { args: ['x'], updateId: 'same', waitForStage: WorkflowUpdateStage.ACCEPTED });
      const two = await handle.startUpdate('activity', { args: ['y'], updateId: 'same', waitForStage: WorkflowUpdateStage.ACCEPTED });
      assert.equal(await one.result(), 'hello x');
      assert.equal(await two.result(), 'hello x');
      assert.equal(one.workflowRunId, handle.firstExecutionRunId);
      await handle.terminate();
      assert.equal(await handle.getUpdateHandle('same').result(), 'hello x');
    },
    events: [START, UPDATE[0], ...ACTIVITY, UPDATE[1], 'WorkflowExecutionTerminated'],
  },
  externals: {
    async go(c) {
      const [signal, cancel] = await (await begin(c, 'externals', [c.id])).result();
      c.note(signal, cancel);
    },
    events: [START, 'SignalExternalWorkflowExecutionInitiated', 'SignalExternalWorkflowExecutionFailed',
      'RequestCancelExternalWorkflowExecutionInitiated', 'RequestCancelExternalWorkflowExecutionFailed', END],
  },
  userMetadata: {
    async go(c) {
      const handle = await begin(c, 'currentDetails', [], { staticSummary: 'summary', staticDetails: 'details' });
      await until('the timer', async () => (await types(handle)).includes('TimerFired'));
      const metadata = await handle.query('__temporal_workflow_metadata');
      assert.equal(metadata.currentDetails, 'in the middle');
      await handle.signal('done');
      await handle.result();
      const d = await handle.describe();
      assert.equal(await d.staticSummary(), 'summary');
      assert.equal(await d.staticDetails(), 'details');
      const timer = (await handle.fetchHistory()).events.find((e) => name(e) === 'TimerStarted');
      assert.match(Buffer.from(timer.userMetadata.summary.data).toString(), /a short sleep/);
    },
    events: [START, ...TIMER, SIGNAL, END],
  },

  // ---- Chains

  carries: {
    async go(c) {
      const more = { memo: { note: 1 }, searchAttributes: { CustomKeywordField: ['k'] } };
      const handle = await begin(c, 'carries', [1], more);
      assert.deepEqual(await handle.result(), { memo: { note: 1 }, searchAttributes: { CustomKeywordField: ['k'] }, isLinked: true });
    },
    events: [START, END],
  },
  continuesAsOther: {
    async go(c) {
      const handle = await begin(c, 'continuesAsOther', [c.queue], { memo: { note: 'first' }, followRuns: false });
      const e = await failure(handle.result(), WorkflowContinuedAsNewError);
      const next = c.client.workflow.getHandle(c.id, e.newExecutionRunId);
      assert.deepEqual(await next.result(), ['passed on', { note: 'other' }, { CustomIntField: [7] }, 600000, 9000]);
      assert.equal((await next.describe()).type, 'carried');
    },
    events: [START, END],
  },
  retriesRuns: {
    async go(c) {
      const handle = await begin(c, 'retriesWith', [2], { retry: { initialInterval: '1ms', backoffCoefficient: 1 } });
      assert.deepEqual(await handle.result(), [3, 'attempt 2']);
    },
    events: [START, END],
  },
  retriesEnd: {
    async go(c) {
      const handle = await begin(c, 'retriesWith', [9], { retry: { initialInterval: '1ms', backoffCoefficient: 1 } });
      const e = await failure(handle.result(), WorkflowFailedError);
      assert.equal(e.cause.message, 'attempt 4');
      const max = await c.client.workflow.start('retriesWith', { workflowId: c.id + '/max', taskQueue: c.queue, args: [9],
        retry: { initialInterval: '1ms', maximumAttempts: 2 } });
      assert.equal((await failure(max.result(), WorkflowFailedError)).cause.message, 'attempt 2');
    },
    events: [START, 'WorkflowExecutionFailed'],
  },
  executionTimeout: {
    async go(c) {
      const handle = await begin(c, 'waits', [], { workflowExecutionTimeout: '100ms', retry: { maximumAttempts: 3 } });
      const e = await failure(handle.result(), WorkflowFailedError);
      assert.ok(e.cause instanceof TimeoutFailure);
      assert.equal((await handle.describe()).status.name, 'TIMED_OUT');
    },
    events: [START, 'WorkflowExecutionTimedOut'],
  },
  cron: {
    async go(c) {
      const handle = await begin(c, 'lastResults', [], { cronSchedule: '@every 1s' });
      await until('the third run', async () => {
        const info = (await c.client.workflow.getHandle(c.id).describe()).raw.workflowExecutionInfo;
        return info.execution.runId !== handle.firstExecutionRunId;
      });
      await c.client.workflow.getHandle(c.id).terminate();
      const first = await c.client.workflow.getHandle(c.id, handle.firstExecutionRunId).fetchHistory();
      assert.equal(names(first).at(-1), END);
      assert.ok(first.events.at(-1).workflowExecutionCompletedEventAttributes.newExecutionRunId);
      assert.equal(await codeOf(c.client.workflow.start('waits', { taskQueue: c.queue, workflowId: c.id + '/bad', cronSchedule: 'no cron' })), 'INVALID_ARGUMENT');
      assert.equal(
        await codeOf(c.client.workflow.start('waits', { taskQueue: c.queue, workflowId: c.id + '/bad', cronSchedule: '@every 1s', startDelay: '1s' })),
        'INVALID_ARGUMENT',
      );
    },
  },
  startDelaySignal: {
    async go(c) {
      const handle = await c.client.workflow.signalWithStart('signals', {
        taskQueue: c.queue, workflowId: c.id, args: [1], signal: 'put', signalArgs: ['early'], startDelay: '100ms',
      });
      assert.deepEqual(await handle.result(), ['early']);
    },
    events: [START, SIGNAL, END],
  },
  delayedStartSignaled: {
    async go(c) {
      const handle = await begin(c, 'signals', [1], { startDelay: '1 hour' });
      await handle.signal('put', 'x'); // a signal does not wake it
      const d = await handle.describe();
      assert.equal(d.historyLength, 2);
      await handle.terminate();
    },
    events: [START, SIGNAL, 'WorkflowExecutionTerminated'],
  },
  fullInfo: {
    async go(c) {
      const info = await (await begin(c, 'fullInfo', [], {
        memo: { a: 1 }, searchAttributes: { CustomIntField: [3] }, workflowRunTimeout: '1 minute', workflowExecutionTimeout: '2 minutes',
        workflowTaskTimeout: '11s', retry: { maximumAttempts: 3 }, priority: { priorityKey: 1 },
      })).result();
      assert.deepEqual(info, {
        type: 'fullInfo', id: c.id, namespace: 'default', queue: c.queue, attempt: 1, memo: { a: 1 }, attributes: { CustomIntField: [3] },
        first: true, continued: null, parent: null, length: 3, size: true, suggested: false, runTimeout: 60000, executionTimeout: 120000,
        taskTimeout: 11000, cron: null, retry: 3, start: true, priority: 1,
      });
    },
    events: [START, END],
    both: true,
  },
  attributeTypes: {
    async go(c) {
      const handle = await begin(c, 'attributeTypes');
      await until('the timer', async () => (await types(handle)).includes('TimerFired'));
      const d = await handle.describe();
      const dates = (await d).typedSearchAttributes.get({ name: 'CustomDatetimeField', type: 'DATETIME' });
      assert.equal(dates.toISOString(), '2026-01-02T03:04:05.678Z');
      assert.deepEqual(d.searchAttributes.CustomKeywordListField, ['x', 'y']);
      await handle.signal('done');
      const [before, seen, unset] = await handle.result();
      assert.equal(before, 0);
      assert.deepEqual(seen, ['a keyword', 'some words of text', 42, 2.5, true, '2026-01-02T03:04:05.678Z', ['x', 'y']]);
      assert.equal(unset, null);
    },
    events: [START, 'UpsertWorkflowSearchAttributes', ...TIMER, SIGNAL, 'UpsertWorkflowSearchAttributes', ...TIMER, END],
    both: true,
  },
  untypedAttributes: {
    async go(c) {
      const handle = await begin(c, 'untypedAttributes', [], { searchAttributes: { CustomKeywordField: ['k'], CustomIntField: [3] } });
      await until('an upsert', async () => (await types(handle)).includes('UpsertWorkflowSearchAttributes'));
      const typed = (of) => of.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, key.type, value]).sort();
      const now = [['CustomDoubleField', 'DOUBLE', 1.5], ['CustomIntField', 'INT', 3], ['CustomKeywordField', 'KEYWORD', 'k']];
      const ours = (all) => all.filter(([name]) => name.startsWith('Custom'));
      assert.deepEqual(ours(typed(await handle.describe())), now);
      await until('a list', async () => {
        for await (const found of c.client.workflow.list({ query: `WorkflowId = '${c.id}' AND CustomDoubleField = 1.5` })) return ours(typed(found)).length === 3;
      });
      await handle.signal('done');
      const [before, after] = await handle.result();
      assert.deepEqual(before, now.slice(1));
      assert.ok(after.length >= 2);
      const next = await c.client.workflow.start('continuesUntyped', { taskQueue: c.queue, workflowId: `${c.id}/next`, args: [true] });
      assert.equal(await next.result(), 'next');
    },
    events: [START, 'UpsertWorkflowSearchAttributes', SIGNAL, END],
    both: true,
  },
  attributeProblems: {
    async go(c) {
      const start = (searchAttributes, n) => codeOf(c.client.workflow.start('waits', { taskQueue: c.queue, workflowId: `${c.id}/${n}`, searchAttributes }));
      assert.equal(await start({ Unknown: ['x'] }, 1), 'INVALID_ARGUMENT');
      assert.equal(await start({ WorkflowType: ['x'] }, 2), 'INVALID_ARGUMENT');
      assert.equal(await start({ CustomIntField: ['no number'] }, 3), 'INVALID_ARGUMENT');
      assert.equal(await start({ CustomKeywordField: ['x'.repeat(3000)] }, 4), 'INVALID_ARGUMENT');
    },
  },
  memoChanges: {
    async go(c) {
      const handle = await begin(c, 'memoChanges', [], { memo: { a: 1 } });
      assert.deepEqual(await handle.result(), { b: 2, c: { deep: [1] } });
      assert.deepEqual((await handle.describe()).memo, { b: 2, c: { deep: [1] } });
    },
    events: [START, 'WorkflowPropertiesModified', ...TIMER, 'WorkflowPropertiesModified', END],
  },
  patches: {
    async go(c) {
      const handle = await begin(c, 'patches');
      assert.deepEqual(await handle.result(), [true, true, true, 'hello patched']);
      const attributes = (await handle.describe()).searchAttributes;
      assert.deepEqual([...attributes.TemporalChangeVersion].sort(), ['a', 'b', 'later', 'old']);
    },
    events: [START, ...Array(3).fill(['MarkerRecorded', 'UpsertWorkflowSearchAttributes']).flat(), ...TIMER, 'MarkerRecorded',
      'UpsertWorkflowSearchAttributes', ...ACTIVITY, END],
    both: true,
  },
  deterministic: { go: run('deterministic', [], 20), both: true },
  timersRace: { go: run('timersRace', [100], 0) },
  nexus: {
    async go(c) {
      const handle = await begin(c, 'nexus');
      await until('its task fails', async () => (await types(handle)).includes('WorkflowTaskFailed'));
      const failed = (await handle.fetchHistory()).events.find((e) => name(e) === 'WorkflowTaskFailed');
      c.note(enums.WorkflowTaskFailedCause[failed.workflowTaskFailedEventAttributes.cause]);
      await handle.terminate();
    },
  },
  stuck: {
    async go(c) {
      const handle = await begin(c, 'stuck', [], { workflowTaskTimeout: '1s' });
      await handle.signal('done');
      await until('its task fails', async () => (await types(handle)).includes('WorkflowTaskFailed'));
      await until('it is tried again', async () => (await handle.describe()).raw.pendingWorkflowTask?.attempt >= 2);
      await handle.terminate('stuck');
      const e = await failure(handle.result(), WorkflowFailedError);
      assert.ok(e.cause instanceof TerminatedFailure);
    },
    events: [START, SIGNAL, 'WorkflowExecutionTerminated'],
  },

  // ---- Sizes

  longHistory10000: {
    ours: true,
    async go(c) {
      const handle = await begin(c, 'eventful', [5000]);
      const [length, isSuggested] = await handle.result();
      assert.ok(length > 10000, String(length));
      assert.equal(isSuggested, true);
      const history = await handle.fetchHistory(); // in pages
      assert.ok(history.events.length > 10000);
      assert.ok(history.events.every((e, i) => Number(e.eventId) === i + 1));
    },
  },
  untilSuggested: {
    ours: true,
    async go(c) {
      const handle = await begin(c, 'untilSuggested');
      assert.equal(await handle.result(), 1);
    },
  },
  largePayloads: {
    async go(c) {
      const len = 2 * 1024 * 1024 - 1000; // input and result are one page of history, which the SDK's client takes up to 4 MiB
      const text = 'y'.repeat(len);
      const handle = await begin(c, 'echoes', [text]);
      assert.equal((await handle.result()).length, len);
    },
    events: [START, END],
  },
  tooLarge: {
    async go(c) {
      const connection = await Connection.connect({ address: c.address, interceptors: [] }); // it does not try again
      const { workflow } = new Client({ connection });
      const start = (len, n) => codeOf(workflow.start('echoes', { taskQueue: c.queue, workflowId: `${c.id}/${n}`, args: ['z'.repeat(len)] }));
      assert.equal(await start(2 * 1024 * 1024 + 100, 1), 'INVALID_ARGUMENT');
      assert.equal(await start(5 * 1024 * 1024, 2), 'RESOURCE_EXHAUSTED');
      await connection.close();
    },
  },
  resultTooLarge: {
    async go(c) {
      const handle = await begin(c, 'returnsBig', [2 * 1024 * 1024 + 1000]);
      await until('its task fails', async () => (await types(handle)).some((t) => t === 'WorkflowTaskFailed' || t === 'WorkflowExecutionFailed'));
      const history = await handle.fetchHistory();
      const failed = history.events.find((e) => name(e) === 'WorkflowTaskFailed');
      c.note(failed ? enums.WorkflowTaskFailedCause[failed.workflowTaskFailedEventAttributes.cause] : 'WorkflowExecutionFailed');
      await handle.terminate().catch(() => {});
    },
  },
};
