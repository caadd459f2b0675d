// Workers of their own: shutdown under load, small caches, limits, several on one queue, replay, what is refused.
import assert from 'node:assert/strict';
import { Worker, NativeConnection } from '@temporalio/worker';
import { activities } from './activities.mjs';
import { checkHistory, codeOf, enums, failure, types, until } from './rig.mjs';

const START = 'WorkflowExecutionStarted';
const END = 'WorkflowExecutionCompleted';
const ACTIVITY = ['ActivityTaskScheduled', 'ActivityTaskStarted', 'ActivityTaskCompleted'];
const SIGNAL = 'WorkflowExecutionSignaled';

const startMany = (c, type, args, count, queue = c.id) =>
  Promise.all([...Array(count).keys()].map((i) => c.client.workflow.start(type, { taskQueue: queue, workflowId: `${c.id}/${i}`, args })));

const make = (c, more = {}) => Worker.create({ connection: c.native, workflowBundle: c.bundle, activities, taskQueue: c.id, ...more });

export const WORKERS = {
  shutdownUnderLoad: {
    // One worker is told to stop in the middle of its work; another one takes all of it over, also what was cached.
    async go(c) {
      const first = await make(c, { shutdownGraceTime: '5s' });
      const running = first.run();
      const handles = await startMany(c, 'busy', [10], 20);
      await until('they are under way', async () => (await handles[0].describe()).historyLength > 12);
      first.shutdown();
      await running;
      await c.withWorker({}, async () => {
        for (const handle of handles) assert.equal(await handle.result(), 55);
      });
      for (const handle of handles) {
        assert.deepEqual(checkHistory(await handle.fetchHistory()), [START, ...Array(10).fill(ACTIVITY).flat(), END]);
      }
    },
  },
  twoWorkers: {
    async go(c) {
      const connection = await NativeConnection.connect({ address: c.address });
      const second = await make(c, { connection, identity: 'the second' });
      const running = second.run();
      await c.withWorker({ identity: 'the first' }, async () => {
        const handles = await startMany(c, 'busy', [5], 20);
        for (const handle of handles) assert.equal(await handle.result(), 15);
        const { pollers } = await c.client.workflowService.describeTaskQueue({ namespace: 'default', taskQueue: { name: c.id }, taskQueueType: 1 });
        assert.deepEqual([...new Set(pollers.map((p) => p.identity))].sort(), ['the first', 'the second']);
      });
      second.shutdown();
      await running;
      await connection.close();
    },
  },
  smallCache: {
    // Runs push each other out of the cache, so that histories are read again all the time.
    async go(c) {
      await c.withWorker({ maxCachedWorkflows: 2, maxConcurrentWorkflowTaskExecutions: 2 }, async () => {
        const handles = await startMany(c, 'busy', [4], 12);
        for (const handle of handles) assert.equal(await handle.result(), 10);
      });
    },
  },
  stickyWorkerGone: {
    // The worker that has the run in its cache stops; the next one gets its whole history.
    async go(c) {
      const handle = await c.client.workflow.start('signals', { taskQueue: c.id, workflowId: c.id, args: [2] });
      await c.withWorker({ stickyQueueScheduleToStartTimeout: '1s' }, async () => {
        await handle.signal('put', 1);
        await until('it is seen', async () => (await handle.query('get')).length === 1);
      });
      await handle.signal('put', 2);
      await c.withWorker({}, async () => assert.deepEqual(await handle.result(), [1, 2]));
    },
    events: [START, SIGNAL, SIGNAL, END],
  },
  queryDuringReplay: {
    // A query to a worker that has to replay first, of a run that goes on and of one that has ended.
    async go(c) {
      const handle = await c.client.workflow.start('signals', { taskQueue: c.id, workflowId: c.id, args: [3] });
      await c.withWorker({}, async () => {
        await handle.signal('put', 1);
        await handle.signal('put', 2);
        await until('it is seen', async () => (await handle.query('get')).length === 2);
      });
      await c.withWorker({}, async () => {
        assert.deepEqual(await handle.query('get'), [1, 2]);
        await handle.signal('put', 3);
        await handle.result();
      });
      await c.withWorker({}, async () => assert.deepEqual(await handle.query('get'), [1, 2, 3]));
    },
    events: [START, SIGNAL, SIGNAL, SIGNAL, END],
  },
  apart: {
    // Workflows on one worker, activities on another, by other task queues.
    async go(c) {
      const other = await Worker.create({ connection: c.native, taskQueue: c.id + '/activities', activities });
      const running = other.run();
      await c.withWorker({ activities: undefined }, async () => {
        const handle = await c.client.workflow.start('elsewhere', { taskQueue: c.id, workflowId: c.id, args: [c.id + '/activities'] });
        assert.equal(await handle.result(), 'hello there');
      });
      other.shutdown();
      await running;
    },
    events: [START, ...ACTIVITY, END],
  },
  oneAtATime: {
    async go(c) {
      await c.withWorker({ maxConcurrentActivityTaskExecutions: 1, maxConcurrentWorkflowTaskExecutions: 2, maxConcurrentActivityTaskPolls: 1 }, async () => {
        const handles = await startMany(c, 'parallel', [5], 4);
        for (const handle of handles) assert.equal(await handle.result(), 20);
      });
    },
  },
  queueRate: {
    async go(c) {
      await c.withWorker({ maxTaskQueueActivitiesPerSecond: 50 }, async () => {
        const handle = await c.client.workflow.start('parallel', { taskQueue: c.id, workflowId: c.id, args: [20] });
        assert.equal(await handle.result(), 380);
      });
    },
  },
  autoscaling: {
    async go(c) {
      const behavior = { type: 'autoscaling', minimum: 1, maximum: 5, initial: 2 };
      await c.withWorker({ workflowTaskPollerBehavior: behavior, activityTaskPollerBehavior: behavior }, async () => {
        const handles = await startMany(c, 'busy', [3], 10);
        for (const handle of handles) assert.equal(await handle.result(), 6);
      });
    },
  },
  noEager: {
    async go(c) {
      await c.withWorker({ maxEagerActivityReservationsPerWorkflowTask: 0 }, async () => {
        const handle = await c.client.workflow.start('parallel', { taskQueue: c.id, workflowId: c.id, args: [10] });
        assert.equal(await handle.result(), 90);
      });
    },
    bag: [START, ...Array(10).fill(ACTIVITY).flat(), END],
  },
  sinks: {
    async go(c) {
      const told = [];
      const probe = { tell: { fn: (info, text) => told.push([info.workflowId, text]), callDuringReplay: false } };
      await c.withWorker({ sinks: { probe }, maxCachedWorkflows: 0 }, async () => {
        assert.equal(await c.client.workflow.execute('sinks', { taskQueue: c.id, workflowId: c.id }), 'told');
      });
      assert.deepEqual(told, [[c.id, 'one'], [c.id, 'two']]);
    },
  },
  failsRuns: {
    // Errors that would fail a task fail the run, if the worker is told so.
    async go(c) {
      await c.withWorker({ workflowFailureErrorTypes: { '*': ['Error'] } }, async () => {
        const handle = await c.client.workflow.start('stuck', { taskQueue: c.id, workflowId: c.id });
        await handle.signal('done');
        const e = await failure(handle.result(), Error);
        assert.match(e.cause.message, /a bug/);
      });
    },
    events: [START, SIGNAL, 'WorkflowExecutionFailed'],
  },
  replay: {
    async go(c) {
      const handle = await c.client.workflow.start('steps', { taskQueue: c.queue, workflowId: c.id, args: [4] });
      await handle.result();
      const history = await handle.fetchHistory();
      await Worker.runReplayHistory({ workflowBundle: c.bundle }, history, c.id);
      // The same history is not that of another workflow.
      const other = { ...history, events: history.events.map((e, i) => (i ? e : { ...e, workflowExecutionStartedEventAttributes: { ...e.workflowExecutionStartedEventAttributes, workflowType: { name: 'many' } } })) };
      await failure(Worker.runReplayHistory({ workflowBundle: c.bundle }, other, c.id), Error);
    },
    events: [START, ...Array(4).fill([...ACTIVITY, 'TimerStarted', 'TimerFired']).flat(), END],
  },
  replayAll: {
    // Whatever the scenarios have written so far is accepted by the SDK's replayer.
    async go(c) {
      const histories = c.client.workflow.list({ query: `ExecutionStatus = 'Completed' AND TaskQueue = 'cached' AND WorkflowType != 'many' AND WorkflowType != 'eventful'` }).intoHistories({ concurrency: 5 });
      const some = (async function* () {
        let n = 0;
        for await (const one of histories) if (n++ < 150) yield one;
          else return;
      })();
      let count = 0;
      for await (const result of Worker.runReplayHistories({ workflowBundle: c.bundle }, some)) {
        assert.equal(result.error, undefined, `${result.workflowId}: ${result.error?.message}`);
        count++;
      }
      assert.ok(count >= 1);
    },
  },
  versioning: {
    // A poll that asks for versions is refused, with a reason. Without asking for them a worker may name its deployment.
    async go(c) {
      const version = { buildId: '1.0', deploymentName: 'd' };
      for (const call of ['pollWorkflowTaskQueue', 'pollActivityTaskQueue']) {
        const code = await codeOf(c.client.workflowService[call]({
          namespace: 'default', taskQueue: { name: c.id }, deploymentOptions: { ...version, workerVersioningMode: enums.WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED },
        }));
        assert.equal(code, 'FAILED_PRECONDITION');
      }
      await c.withWorker({ workerDeploymentOptions: { version, useWorkerVersioning: false, defaultVersioningBehavior: 'AUTO_UPGRADE' } }, async () => {
        assert.equal(await c.client.workflow.execute('echoes', { taskQueue: c.id, workflowId: c.id, args: [1] }), 1);
      });
      const { events } = await c.client.workflow.getHandle(c.id).fetchHistory();
      const completed = events.find((e) => e.workflowTaskCompletedEventAttributes).workflowTaskCompletedEventAttributes;
      c.note(JSON.parse(JSON.stringify(completed)));
      assert.match(JSON.stringify(completed), /"1\.0"/);
    },
    ours: true,
  },
  unknownType: {
    async go(c) {
      const handle = await c.client.workflow.start('noSuchWorkflow', { taskQueue: c.queue, workflowId: c.id });
      await until('its task fails', async () => (await types(handle)).includes('WorkflowTaskFailed'));
      await handle.terminate();
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  nowhere: {
    async go(c) {
      const worker = await make(c, { namespace: 'nowhere' }).then((w) => w.run()).then(() => 'ran', (e) => e.name);
      assert.notEqual(worker, 'ran');
      c.note(worker);
    },
  },
};
