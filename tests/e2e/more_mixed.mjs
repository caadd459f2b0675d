// What fits nowhere else: activities that nobody has, built-in queries, histories of a list, many things in one task, ids over and over.
import assert from 'node:assert/strict';
import { WorkflowContinuedAsNewError, WorkflowExecutionAlreadyStartedError, WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, TerminatedFailure, WorkflowNotFoundError } from '@temporalio/common';
import { checkHistory, codeOf, enums, failure, types, until } from './rig.mjs';

const START = 'WorkflowExecutionStarted';
const END = 'WorkflowExecutionCompleted';
const SIGNAL = 'WorkflowExecutionSignaled';
const INITIATED = 'StartChildWorkflowExecutionInitiated';
const CHILD_STARTED = 'ChildWorkflowExecutionStarted';

const begin = (c, type, args = [], more = {}) =>
  c.client.workflow.start(type, { taskQueue: c.queue, workflowId: c.id, args, ...more });
const run = (type, args, expected) => async (c) => assert.deepEqual(await (await begin(c, type, args)).result(), expected);
const range = (n) => [...Array(n).keys()];

export const MIXED = {
  unknownActivity: {
    // No worker has it: the attempt fails, and is retried as any other.
    async go(c) {
      const e = await failure((await begin(c, 'callsUnknown')).result(), WorkflowFailedError);
      assert.match(e.cause.cause.message, /noSuchActivity/);
      assert.equal(e.cause.cause.type, 'NotFoundError');
    },
    events: [START, 'ActivityTaskScheduled', 'ActivityTaskStarted', 'ActivityTaskFailed', 'WorkflowExecutionFailed'],
  },
  manyAtOnce: {
    // 300 activities, 300 timers and a child, all commands of one workflow task.
    async go(c) {
      assert.deepEqual(await (await begin(c, 'manyAtOnce', [300])).result(), [300, 300, 'hello child']);
    },
    both: true,
  },
  childSignals: {
    go: run('childSignals', [], { result: ['a', 'b'], same: true }),
    bag: [START, INITIATED, CHILD_STARTED, 'SignalExternalWorkflowExecutionInitiated', 'ExternalWorkflowExecutionSignaled',
      'SignalExternalWorkflowExecutionInitiated', 'ExternalWorkflowExecutionSignaled', 'SignalExternalWorkflowExecutionInitiated',
      'ExternalWorkflowExecutionSignaled', 'ChildWorkflowExecutionCompleted', END],
    both: true,
  },
  builtInQueries: {
    async go(c) {
      const handle = await begin(c, 'waits');
      await until('it waits', async () => (await types(handle)).includes('WorkflowTaskCompleted'));
      assert.match(await handle.query('__stack_trace'), /waits/);
      const enhanced = await handle.query('__enhanced_stack_trace');
      assert.equal(enhanced.sdk.name, 'typescript');
      const metadata = await handle.query('__temporal_workflow_metadata');
      assert.equal(metadata.definition.type, 'waits');
      assert.ok(metadata.definition.queryDefinitions.some((q) => q.name === 'get'));
      await handle.signal('done');
      await handle.result();
      assert.deepEqual(await handle.query('get'), []);
    },
    events: [START, SIGNAL, END],
    both: true,
  },
  histories: {
    // The histories of a list, as a replay of all of them takes them.
    async go(c) {
      const handles = await Promise.all(range(7).map((i) => c.client.workflow.start('echoes', { taskQueue: c.queue, workflowId: `${c.id}/${i}`, args: [i], memo: { i } })));
      for (const handle of handles) await handle.result();
      const query = `WorkflowId STARTS_WITH '${c.id}/' AND ExecutionStatus = 'Completed'`;
      await until('they are listed', async () => (await c.client.workflow.count(query)).count === 7);
      const seen = [];
      for await (const { workflowId, history } of c.client.workflow.list({ query, pageSize: 2 }).intoHistories({ concurrency: 3 })) {
        checkHistory(history);
        seen.push(workflowId);
      }
      assert.deepEqual(seen.sort(), handles.map((h) => h.workflowId).sort());
    },
  },
  followRuns: {
    async go(c) {
      const handle = await begin(c, 'again', [2]);
      const first = c.client.workflow.getHandle(c.id, handle.firstExecutionRunId, { followRuns: false });
      const e = await failure(first.result(), WorkflowContinuedAsNewError);
      assert.notEqual(e.newExecutionRunId, handle.firstExecutionRunId);
      const last = await handle.result();
      assert.equal(await c.client.workflow.result(c.id, handle.firstExecutionRunId), last);
      assert.equal(await c.client.workflow.result(c.id), last);
    },
  },
  sameIdOverAndOver: {
    // 20 runs of one id, one after the other; the newest is the current one, and all of them can be read.
    async go(c) {
      const ids = [];
      for (const i of range(20)) {
        const handle = await begin(c, 'echoes', [i]);
        assert.equal(await handle.result(), i);
        ids.push(handle.firstExecutionRunId);
      }
      assert.equal(new Set(ids).size, 20);
      assert.equal((await c.client.workflow.getHandle(c.id).describe()).runId, ids.at(-1));
      for (const i of [0, 7, 19]) assert.equal(await c.client.workflow.getHandle(c.id, ids[i]).result(), i);
      await until('all are listed', async () => (await c.client.workflow.count(`WorkflowId = '${c.id}'`)).count === 20);
    },
  },
  startsRace: {
    // 30 starts of one id at once: one of them starts it.
    async go(c) {
      const all = await Promise.allSettled(range(30).map(() => begin(c, 'waits')));
      const [fine, rest] = [all.filter((r) => r.status === 'fulfilled'), all.filter((r) => r.status === 'rejected')];
      assert.equal(fine.length, 1);
      for (const { reason } of rest) assert.ok(reason instanceof WorkflowExecutionAlreadyStartedError, reason);
      const existing = await Promise.all(range(10).map(() => begin(c, 'waits', [], { workflowIdConflictPolicy: 'USE_EXISTING' })));
      assert.equal(new Set([fine[0].value, ...existing].map((h) => h.firstExecutionRunId)).size, 1);
      await fine[0].value.signal('done');
      await fine[0].value.result();
    },
    events: [START, SIGNAL, END],
  },
  signalsRaceTheEnd: {
    // Signals while the workflow ends: each either counts or is refused, and none is lost.
    async go(c) {
      const handle = await begin(c, 'waits');
      await until('it waits', async () => (await types(handle)).includes('WorkflowTaskCompleted'));
      const all = Promise.allSettled(range(50).map((i) => (i === 25 ? handle.signal('done') : handle.signal('put', i))));
      const [told, got] = [await all, await handle.result()];
      for (const { status, reason } of told) if (status === 'rejected') assert.ok(reason instanceof WorkflowNotFoundError, reason);
      const taken = told.filter((r) => r.status === 'fulfilled').length;
      const { events } = await handle.fetchHistory();
      assert.equal(events.filter((e) => e.workflowExecutionSignaledEventAttributes).length, taken);
      assert.equal(new Set(got).size, got.length);
    },
    both: true,
  },
  queriesUnderLoad: {
    // Queries while signals come: each answer is a prefix of what the workflow gets in the end. Without a cache there is one
    // at a time: Temporal's core drops the queries that wait for a run behind another task of it when it evicts the run, which it then does after
    // each task ("There were leftover buffered tasks when evicting run"); no server can answer those in time.
    async go(c) {
      const handle = await begin(c, 'waits');
      const answers = [];
      await Promise.all([
        (async () => { for (const i of range(40)) await handle.signal('put', i); })(),
        ...range(c.queue === 'uncached' ? 1 : 4).map(async () => { for (const _ of range(15)) answers.push(await handle.query('get')); }),
      ]);
      await handle.signal('done');
      assert.deepEqual(await handle.result(), range(40));
      for (const answer of answers) assert.deepEqual(answer, range(answer.length));
    },
    both: true,
  },
  terminateDetails: {
    async go(c) {
      const handle = await begin(c, 'waits');
      await handle.terminate('because of this');
      const e = await failure(handle.result(), WorkflowFailedError);
      assert.ok(e.cause instanceof TerminatedFailure);
      assert.match(e.cause.message, /because of this/);
      const { events } = await handle.fetchHistory();
      c.note(events.at(-1).workflowExecutionTerminatedEventAttributes.reason);
      c.note('again', await codeOf(handle.terminate()));
      c.note('cancel', await codeOf(handle.cancel()));
      c.note('signal', await codeOf(handle.signal('put', 1)));
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  failureDetails: {
    async go(c) {
      const e = await failure((await begin(c, 'throwsDetails')).result(), WorkflowFailedError);
      assert.ok(e.cause instanceof ApplicationFailure);
      assert.deepEqual([e.cause.type, e.cause.nonRetryable, e.cause.details, e.cause.category], ['Wrong', true, [{ at: [1, 'two'] }, null], 'BENIGN']);
      assert.equal(e.cause.cause.message, 'the reason');
    },
    events: [START, 'WorkflowExecutionFailed'],
  },
  emptyAndOdd: {
    // Arguments and results that are nothing, empty, or not ASCII.
    async go(c) {
      for (const value of [undefined, null, '', [], {}, 0, false, 'ключ 鍵 🗝', { 'ä': ['\u0000', '\ud83d\ude00'] }, new Uint8Array([0, 1, 255]), Number.MAX_SAFE_INTEGER]) {
        const result = await c.client.workflow.execute('echoes', { taskQueue: c.queue, workflowId: `${c.id}/ключ ${typeof value}`, args: [value], workflowIdConflictPolicy: 'TERMINATE_EXISTING' });
        assert.deepEqual(result ?? null, value ?? null);
      }
    },
  },
  clockInWorkflows: { go: run('clockInWorkflows', [], [true, true, true]), both: true },
  nestedScopes: { go: run('nestedScopes', [], ['timeout', 'canceled', 'kept']), both: true },
  openHistory: {
    // A client that waits for new events of a run gets them as they come.
    async go(c) {
      const handle = await begin(c, 'waits');
      const service = c.client.workflowService;
      const request = { namespace: 'default', execution: { workflowId: c.id, runId: handle.firstExecutionRunId }, waitNewEvent: true };
      const seen = [];
      let token = Buffer.alloc(0);
      let asked = 0;
      do {
        const page = await service.getWorkflowExecutionHistory({ ...request, nextPageToken: token });
        seen.push(...page.history.events);
        token = page.nextPageToken;
        if (++asked === 1) void handle.signal('put', 1).then(() => handle.signal('done'));
      } while (token?.length > 0);
      assert.deepEqual(seen.map((e) => Number(e.eventId)), range(seen.length).map((i) => i + 1));
      assert.equal(seen.at(-1).eventType, enums.EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED);
    },
    events: [START, SIGNAL, SIGNAL, END],
  },
};
