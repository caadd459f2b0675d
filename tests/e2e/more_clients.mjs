// What clients do: deadlines, chains, ids, eager starts, interceptors, converters and codecs, what is not there.
import assert from 'node:assert/strict';
import { gzipSync, gunzipSync } from 'node:zlib';
import { Client, ScheduleOverlapPolicy, ServiceError, WithStartWorkflowOperation, WorkflowContinuedAsNewError, WorkflowFailedError,
  WorkflowUpdateFailedError } from '@temporalio/client';
import { DefaultFailureConverter, TerminatedFailure, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError, defaultPayloadConverter } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import { bundle, codeOf, failure, name, names, path, types, until } from './rig.mjs';

const START = 'WorkflowExecutionStarted';
const END = 'WorkflowExecutionCompleted';
const SIGNAL = 'WorkflowExecutionSignaled';
const ACTIVITY = ['ActivityTaskScheduled', 'ActivityTaskStarted', 'ActivityTaskCompleted'];
const UPDATE = ['WorkflowExecutionUpdateAccepted', 'WorkflowExecutionUpdateCompleted'];

const begin = (c, type, args = [], more = {}) =>
  c.client.workflow.start(type, { taskQueue: c.queue, workflowId: c.id, args, ...more });

// Bytes turned around and packed.
const codec = {
  encode: async (payloads) =>
    payloads.map((p) => ({ metadata: { encoding: Buffer.from('binary/packed') }, data: gzipSync(JSON.stringify([p.metadata && Object.fromEntries(Object.entries(p.metadata).map(([k, v]) => [k, Buffer.from(v).toString('base64')])), Buffer.from(p.data ?? []).toString('base64')])) })),
  decode: async (payloads) =>
    payloads.map((p) => {
      if (Buffer.from(p.metadata.encoding).toString() !== 'binary/packed') return p;
      const [metadata, data] = JSON.parse(gunzipSync(p.data));
      return { metadata: Object.fromEntries(Object.entries(metadata).map(([k, v]) => [k, Buffer.from(v, 'base64')])), data: Buffer.from(data, 'base64') };
    }),
};

export const CLIENTS = {
  deadlines: {
    async go(c) {
      const handle = await begin(c, 'waits');
      const late = await codeOf(c.connection.withDeadline(Date.now() + 300, () => handle.result()));
      assert.match(late, /DEADLINE_EXCEEDED/);
      const controller = new AbortController();
      const aborted = c.connection.withAbortSignal(controller.signal, () => handle.result());
      const seen = aborted.then(() => 'ended', (e) => e);
      controller.abort();
      assert.notEqual(await seen, 'ended');
      await c.connection.withMetadata({ 'x-of-test': 'yes' }, () => handle.describe());
      await handle.terminate();
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  chains: {
    async go(c) {
      const handle = await begin(c, 'again', [2]);
      assert.equal(await handle.result(), 'last');
      const first = c.client.workflow.getHandle(c.id, handle.firstExecutionRunId, { followRuns: false });
      const e = await failure(first.result(), WorkflowContinuedAsNewError);
      assert.equal(await c.client.workflow.getHandle(c.id, e.newExecutionRunId).result(), 'last');
      assert.equal(await c.client.workflow.getHandle(c.id, handle.firstExecutionRunId).result(), 'last'); // it follows
      assert.equal((await first.describe()).status.name, 'CONTINUED_AS_NEW');
      assert.notEqual((await c.client.workflow.getHandle(c.id).describe()).runId, handle.firstExecutionRunId);
    },
    events: [START, END],
  },
  firstRun: {
    async go(c) {
      const handle = await begin(c, 'waits');
      const other = c.client.workflow.getHandle(c.id, undefined, { firstExecutionRunId: '00000000-0000-4000-8000-000000000000' });
      await failure(other.terminate(), WorkflowNotFoundError);
      await failure(other.cancel(), WorkflowNotFoundError);
      await failure(c.client.workflow.getHandle(c.id, '00000000-0000-4000-8000-000000000000').describe(), WorkflowNotFoundError);
      c.note('bad run id', await codeOf(c.client.workflow.getHandle(c.id, 'no uuid').describe()));
      const mine = c.client.workflow.getHandle(c.id, undefined, { firstExecutionRunId: handle.firstExecutionRunId });
      await mine.terminate('by its first run', 'a', 2);
      const e = await failure(handle.result(), WorkflowFailedError);
      assert.equal(e.cause.message, 'by its first run');
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  reusePolicies: {
    async go(c) {
      const start = (more) => begin(c, 'throwsType', [], more).then(async (h) => (await h.result().catch(() => {}), 'started'), (e) => e.name);
      assert.equal(await start({}), 'started');
      assert.equal(await start({ workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY' }), 'started');
      assert.equal(await start({ workflowIdReusePolicy: 'REJECT_DUPLICATE' }), 'WorkflowExecutionAlreadyStartedError');
      assert.equal(await start({ workflowIdReusePolicy: 'ALLOW_DUPLICATE' }), 'started');
      const running = await begin(c, 'waits');
      const next = await begin(c, 'echoes', [1], { workflowIdReusePolicy: 'TERMINATE_IF_RUNNING' });
      assert.equal(await next.result(), 1);
      assert.ok((await failure(running.result(), WorkflowFailedError)).cause instanceof TerminatedFailure);
      c.note(await codeOf(begin(c, 'echoes', [1], { workflowIdReusePolicy: 'TERMINATE_IF_RUNNING', workflowIdConflictPolicy: 'FAIL' })));
      const e = await failure(begin(c, 'waits').then(() => begin(c, 'waits')), WorkflowExecutionAlreadyStartedError);
      assert.equal(e.workflowId, c.id);
      await c.client.workflow.getHandle(c.id).terminate();
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  badRequests: {
    async go(c) {
      const service = c.client.workflowService;
      const base = { namespace: 'default', workflowId: c.id, workflowType: { name: 'waits' }, taskQueue: { name: c.queue }, requestId: c.id };
      const start = async (what, more) => {
        const code = await codeOf(service.startWorkflowExecution({ ...base, ...more }));
        c.note(what, code);
        assert.equal(code, 'INVALID_ARGUMENT', what);
      };
      await start('no id', { workflowId: '' });
      await start('long id', { workflowId: 'x'.repeat(1001) });
      await start('no type', { workflowType: { name: '' } });
      await start('no queue', { taskQueue: { name: '' } });
      await start('negative timeout', { workflowRunTimeout: { seconds: -1 } });
      await start('bad retry', { retryPolicy: { backoffCoefficient: 0.5 } });
      await start('bad interval', { retryPolicy: { initialInterval: { seconds: -1 } } });
      c.note('system prefix', await codeOf(service.startWorkflowExecution({ ...base, workflowId: c.id + '/p', taskQueue: { name: '/_sys/x' } })));
      c.note('no request id', await codeOf(service.startWorkflowExecution({ ...base, workflowId: c.id + '/r', requestId: '' })));
      const execution = { namespace: 'default', workflowExecution: { workflowId: c.id } };
      c.note('signal without name', await codeOf(service.signalWorkflowExecution({ ...execution, signalName: '' })));
      c.note('signal', await codeOf(service.signalWorkflowExecution({ ...execution, signalName: 'x' })));
      c.note('query', await codeOf(service.queryWorkflow({ namespace: 'default', execution: { workflowId: c.id } })));
      c.note('update', await codeOf(service.updateWorkflowExecution({ ...execution, request: { input: { name: 'x' } } })));
      c.note('terminate', await codeOf(service.terminateWorkflowExecution(execution)));
      c.note('cancel', await codeOf(service.requestCancelWorkflowExecution(execution)));
      c.note('history', await codeOf(service.getWorkflowExecutionHistory({ namespace: 'default', execution: { workflowId: c.id } })));
      c.note('bad page', await codeOf(service.getWorkflowExecutionHistory({ namespace: 'default', execution: { workflowId: c.id }, nextPageToken: Buffer.from('x') })));
      c.note('no namespace', await codeOf(service.describeWorkflowExecution({ execution: { workflowId: c.id } })));
      c.note('no execution', await codeOf(service.describeWorkflowExecution({ namespace: 'default' })));
      c.note('delete', await codeOf(service.deleteWorkflowExecution(execution)));
      c.note('poll without queue', await codeOf(service.pollWorkflowTaskQueue({ namespace: 'default' })));
      c.note('task token', await codeOf(service.respondWorkflowTaskCompleted({ namespace: 'default', taskToken: Buffer.from('x') })));
      c.note('failed token', await codeOf(service.respondWorkflowTaskFailed({ namespace: 'default', taskToken: Buffer.from('') })));
      c.note('query token', await codeOf(service.respondQueryTaskCompleted({ namespace: 'default', taskToken: Buffer.from('x') })));
      c.note('list page', await codeOf(service.listWorkflowExecutions({ namespace: 'default', nextPageToken: Buffer.from('x') })));
      c.note('multi', await codeOf(service.executeMultiOperation({ namespace: 'default', operations: [] })));
    },
  },
  requestIds: {
    async go(c) {
      const service = c.client.workflowService;
      const request = { namespace: 'default', workflowId: c.id, workflowType: { name: 'signals' }, taskQueue: { name: c.queue }, requestId: 'same' };
      const one = await service.startWorkflowExecution(request);
      const two = await service.startWorkflowExecution(request);
      assert.equal(one.runId, two.runId);
      assert.equal(two.started, true);
      const signal = { namespace: 'default', workflowExecution: { workflowId: c.id }, signalName: 'put', requestId: 'once' };
      await service.signalWorkflowExecution(signal);
      await service.signalWorkflowExecution(signal);
      const cancel = { namespace: 'default', workflowExecution: { workflowId: c.id }, requestId: 'cancel' };
      await service.terminateWorkflowExecution({ namespace: 'default', workflowExecution: { workflowId: c.id } });
      assert.equal(await codeOf(service.requestCancelWorkflowExecution(cancel)), 'OK');
    },
    bag: [START, SIGNAL, 'WorkflowExecutionTerminated'],
  },
  eagerStart: {
    async go(c) {
      await c.withWorker({}, async () => {
        const eager = new Client({ connection: c.native });
        const handle = await eager.workflow.start('echoes', { taskQueue: c.id, workflowId: c.id, args: [4], requestEagerStart: true });
        assert.equal(await handle.result(), 4);
        assert.equal(handle.eagerlyStarted, true);
        assert.deepEqual(await eager.workflow.execute('hello', { taskQueue: c.id, workflowId: c.id + '/plain', args: ['native'] }), 'hello native');
        await failure(eager.workflow.getHandle('nobody').describe(), WorkflowNotFoundError);
      });
    },
    events: [START, END],
  },
  updateWithStartMore: {
    async go(c) {
      const operation = (more = {}) =>
        new WithStartWorkflowOperation('handlers', { taskQueue: c.queue, workflowId: c.id, workflowIdConflictPolicy: 'USE_EXISTING', ...more });
      assert.equal(await c.client.workflow.executeUpdateWithStart('now', { args: [2], updateId: 'u', startWorkflowOperation: operation() }), 4);
      assert.equal(await c.client.workflow.executeUpdateWithStart('now', { args: [9], updateId: 'u', startWorkflowOperation: operation() }), 4);
      await failure(c.client.workflow.executeUpdateWithStart('fail', { startWorkflowOperation: operation() }), WorkflowUpdateFailedError);
      await failure(c.client.workflow.executeUpdateWithStart('nobody', { startWorkflowOperation: operation() }), WorkflowUpdateFailedError);
      const one = operation();
      const update = await c.client.workflow.startUpdateWithStart('activity', { args: ['x'], waitForStage: 'ACCEPTED', startWorkflowOperation: one });
      assert.equal(await update.result(), 'hello x');
      const handle = await one.workflowHandle();
      await handle.signal('done');
      assert.deepEqual(await handle.result(), ['x']);
      assert.equal(await c.client.workflow.executeUpdateWithStart('now', { args: [3], updateId: 'u2', startWorkflowOperation: operation() }), 6); // a new run
      await c.client.workflow.getHandle(c.id).terminate();
      const bad = await codeOf(c.client.workflow.executeUpdateWithStart('now', { args: [1], startWorkflowOperation: operation({ taskQueue: '' }) }));
      c.note(bad);
    },
    events: [START, ...UPDATE, 'WorkflowExecutionTerminated'],
    both: true,
  },
  clientInterceptors: {
    async go(c) {
      const calls = [];
      const noted = (what) => async (input, next) => (calls.push(what), await next(input));
      const client = new Client({
        connection: c.connection,
        interceptors: {
          workflow: [{
            start: async (input, next) => (calls.push('start'), await next({ ...input, headers: { ...input.headers, of: defaultPayloadConverter.toPayload('a client') } })),
            signal: noted('signal'), query: noted('query'), startUpdate: noted('update'), describe: noted('describe'), terminate: noted('terminate'), cancel: noted('cancel'),
          }],
        },
      });
      await c.withWorker({
        activities: { headerOf: async (...args) => args },
        interceptors: {
          activity: [(context) => ({
            inbound: { execute: async (input, next) => [await next(input), defaultPayloadConverter.fromPayload(input.headers.of)] },
          })],
        },
      }, async () => {
        const handle = await client.workflow.start('interceptedMain', { taskQueue: c.id, workflowId: c.id });
        assert.deepEqual(await handle.query('get'), ['query', 0]);
        assert.deepEqual(await handle.executeUpdate('add', { args: [1] }), ['update', 2]);
        await handle.signal('put', 'x');
        assert.deepEqual(await handle.result(), ['execute', [['x', 'out'], 'a client'], ['x', 'intercepted']]);
        await handle.describe();
      });
      assert.deepEqual(calls, ['start', 'query', 'update', 'signal', 'describe']);
    },
  },
  codecs: {
    async go(c) {
      const dataConverter = { payloadCodecs: [codec] };
      const client = new Client({ connection: c.connection, dataConverter });
      await c.withWorker({ dataConverter }, async () => {
        const handle = await client.workflow.start('handlers', { taskQueue: c.id, workflowId: c.id, memo: { secret: 'memo' } });
        assert.equal(await handle.executeUpdate('activity', { args: ['hidden'] }), 'hello hidden');
        assert.deepEqual(await handle.query('get'), ['hidden']);
        const e = await failure(handle.executeUpdate('fail'), WorkflowUpdateFailedError);
        assert.equal(e.cause.message, 'update failed');
        await handle.signal('done');
        assert.deepEqual(await handle.result(), ['hidden']);
        assert.deepEqual((await handle.describe()).memo, { secret: 'memo' });
      });
      const text = JSON.stringify(await c.client.workflow.getHandle(c.id).fetchHistory());
      assert.ok(!text.includes(Buffer.from('"hidden"').toString('base64')));
    },
  },
  encodedFailures: {
    async go(c) {
      const dataConverter = { payloadCodecs: [codec], failureConverterPath: path('./failure_converter.cjs') };
      const client = new Client({ connection: c.connection, dataConverter });
      const code = await bundle({ failureConverterPath: path('./failure_converter.cjs') });
      await c.withWorker({ dataConverter, workflowBundle: code }, async () => {
        const e = await failure(client.workflow.execute('failureChain', { taskQueue: c.id, workflowId: c.id }), WorkflowFailedError);
        assert.equal(e.cause.cause.message, 'no such card');
      });
      const raw = (await c.client.workflow.getHandle(c.id).fetchHistory()).events.at(-1).workflowExecutionFailedEventAttributes.failure;
      assert.equal(raw.message, 'Encoded failure');
      assert.ok(raw.encodedAttributes);
    },
    events: [START, 'ActivityTaskScheduled', 'ActivityTaskStarted', 'ActivityTaskFailed', 'WorkflowExecutionFailed'],
  },
  schedules: {
    async go(c) {
      const create = () => c.client.schedule.create({
        scheduleId: c.id, spec: { intervals: [{ every: '1h' }] }, policies: { overlap: ScheduleOverlapPolicy.SKIP },
        action: { type: 'startWorkflow', workflowType: 'waits', taskQueue: c.queue, workflowId: c.id },
      });
      assert.equal(await codeOf(create()), 'UNIMPLEMENTED');
      await failure(c.client.schedule.getHandle(c.id).describe(), ServiceError);
      assert.equal(await codeOf((async () => { for await (const s of c.client.schedule.list()) void s; })()), 'UNIMPLEMENTED');
      assert.equal(await (await begin(c, 'echoes', ['still well'])).result(), 'still well');
    },
    ours: true,
  },
  notThere: {
    async go(c) {
      const service = c.client.workflowService;
      for (const call of ['listWorkerDeployments', 'getWorkerBuildIdCompatibility', 'listArchivedWorkflowExecutions', 'pauseWorkflowExecution', 'listWorkflowRules', 'startActivityExecution']) {
        assert.equal(await codeOf(service[call]({ namespace: 'default' })), 'UNIMPLEMENTED', call);
      }
    },
    ours: true,
  },
  priorities: {
    async go(c) {
      const handle = await begin(c, 'waits', [], { priority: { priorityKey: 3, fairnessKey: 'tenant', fairnessWeight: 2.5 } });
      const described = await handle.describe();
      assert.deepEqual(described.priority, { priorityKey: 3, fairnessKey: 'tenant', fairnessWeight: 2.5 });
      await handle.terminate();
      c.note(await codeOf(c.client.workflow.start('waits', { taskQueue: c.queue, workflowId: c.id + '/bad', priority: { priorityKey: -1 } })));
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  updateOptions: {
    async go(c) {
      const handle = await begin(c, 'waits');
      const answer = await codeOf(c.client.workflowService.updateWorkflowExecutionOptions({
        namespace: 'default', workflowExecution: { workflowId: c.id }, workflowExecutionOptions: { priority: { priorityKey: 2 } }, updateMask: { paths: ['priority'] },
      }));
      c.note(answer);
      await handle.terminate();
    },
  },
};
