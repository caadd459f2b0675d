// Lists, counts, descriptions, namespaces, reset, task queues.
import assert from 'node:assert/strict';
import { Client, NamespaceNotFoundError } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import { codeOf, enums, failure, name, types, until } from './rig.mjs';

const START = 'WorkflowExecutionStarted';
const END = 'WorkflowExecutionCompleted';
const SIGNAL = 'WorkflowExecutionSignaled';

const begin = (c, type, args = [], more = {}) =>
  c.client.workflow.start(type, { taskQueue: c.queue, workflowId: c.id, args, ...more });

const idsOf = async (c, query, more = {}) => {
  const ids = [];
  for await (const info of c.client.workflow.list({ query, ...more })) ids.push(info.workflowId);
  return ids;
};

// Both sides, without the id of the scenario, sorted. A server may show a change late: it is asked until it does.
async function finds(c, query, expected, more) {
  let got;
  const scoped = `WorkflowId STARTS_WITH '${c.id}/' AND (${query})`;
  await until(`${query} finds ${expected}`, async () => {
    got = (await idsOf(c, scoped, more)).map((id) => id.slice(c.id.length + 1)).sort();
    return got.join() === [...expected].sort().join();
  }).catch((e) => {
    throw new Error(`${e.message}, but ${got}`);
  });
}

export const VISIBILITY = {
  list: {
    async go(c) {
      const start = (n, type, args, more = {}) => c.client.workflow.start(type, { taskQueue: c.queue, workflowId: `${c.id}/${n}`, args, ...more });
      const day = (n) => new Date(Date.UTC(2026, 4, n));
      const attributes = (i, color) => ({
        searchAttributes: {
          CustomIntField: [i], CustomKeywordField: [color], CustomDoubleField: [i / 2], CustomBoolField: [i % 2 === 0],
          CustomDatetimeField: [day(i)], CustomTextField: [`the ${color} one`], CustomKeywordListField: [color, `n${i}`],
        },
      });
      const colors = ['red', 'green', 'blue', 'red'];
      for (let i = 0; i < 4; i++) await start(`w${i + 1}`, 'waits', [], attributes(i + 1, colors[i]));
      const ended = await start('e1', 'echoes', [1]);
      await ended.result();
      const failed = await start('f1', 'throwsType', []);
      await failed.result().catch(() => {});

      await finds(c, `ExecutionStatus = 'Running'`, ['w1', 'w2', 'w3', 'w4']);
      await finds(c, `ExecutionStatus = "Completed" OR ExecutionStatus = "Failed"`, ['e1', 'f1']);
      await finds(c, `ExecutionStatus != 'Running'`, ['e1', 'f1']);
      await finds(c, `ExecutionStatus IN ('Completed', 'Terminated')`, ['e1']);
      await finds(c, `WorkflowType = 'waits'`, ['w1', 'w2', 'w3', 'w4']);
      await finds(c, `WorkflowType = 'waits' AND NOT CustomIntField = 2`, ['w1', 'w3', 'w4']).catch(() => c.note('no NOT'));
      await finds(c, `CustomIntField > 2`, ['w3', 'w4']);
      await finds(c, `CustomIntField BETWEEN 2 AND 3`, ['w2', 'w3']);
      await finds(c, `CustomIntField IN (1, 4)`, ['w1', 'w4']);
      await finds(c, `CustomKeywordField = 'red'`, ['w1', 'w4']);
      await finds(c, `CustomKeywordField STARTS_WITH 'gr'`, ['w2']);
      await finds(c, `CustomDoubleField <= 1.0`, ['w1', 'w2']);
      await finds(c, `CustomBoolField = true`, ['w2', 'w4']);
      await finds(c, `CustomDatetimeField >= '2026-05-03T00:00:00Z'`, ['w3', 'w4']);
      await finds(c, `CustomTextField = 'green'`, ['w2']);
      await finds(c, `CustomKeywordListField = 'n3'`, ['w3']);
      await finds(c, `CustomIntField IS NULL`, ['e1', 'f1']);
      await finds(c, `CustomIntField IS NOT NULL AND (CustomKeywordField = 'blue' OR CustomIntField = 1)`, ['w1', 'w3']);
      await finds(c, `StartTime > '2020-01-01T00:00:00Z' AND CloseTime IS NOT NULL`, ['e1', 'f1']);
      await finds(c, `TaskQueue = '${c.queue}' AND HistoryLength > 3`, ['e1', 'f1']).catch(() => c.note('HistoryLength'));
      assert.equal((await idsOf(c, `WorkflowId STARTS_WITH '${c.id}/'`, { pageSize: 2 })).length, 6); // in pages

      const under = `WorkflowId STARTS_WITH '${c.id}/'`;
      assert.equal((await c.client.workflow.count(under)).count, 6);
      const groups = (await c.client.workflow.count(`${under} GROUP BY ExecutionStatus`)).groups;
      assert.deepEqual(groups.map((g) => `${g.groupValues[0]} ${g.count}`).sort(), ['Completed 1', 'Failed 1', 'Running 4']);
      for (const query of ['Nonsense = 1', 'WorkflowId ==', `CustomIntField = 'text'`, `WorkflowType LIKE 'x%'`]) {
        const code = await codeOf(idsOf(c, query));
        c.note(query, code);
        assert.equal(code, 'INVALID_ARGUMENT', query);
      }
      c.note('list with GROUP BY', await codeOf(idsOf(c, 'GROUP BY ExecutionStatus')));
      assert.equal(await codeOf(c.client.workflow.count(`${under} GROUP BY WorkflowId`)), 'INVALID_ARGUMENT');

      let histories = 0;
      for await (const { history } of c.client.workflow.list({ query: `${under} AND ExecutionStatus = 'Completed'` }).intoHistories()) {
        assert.equal(name(history.events[0]), START);
        histories++;
      }
      assert.equal(histories, 1);
      for (let i = 1; i <= 4; i++) await c.client.workflow.getHandle(`${c.id}/w${i}`).terminate();
      await finds(c, `ExecutionStatus = 'Terminated' AND CustomKeywordField = 'red'`, ['w1', 'w4']);
    },
  },
  listFields: {
    async go(c) {
      const handle = await begin(c, 'echoes', [1], { memo: { m: 1 }, searchAttributes: { CustomIntField: [5] } });
      await handle.result();
      let info;
      await until('it is listed', async () => {
        for await (const one of c.client.workflow.list({ query: `WorkflowId = '${c.id}' AND ExecutionStatus = 'Completed'` })) info = one;
        return info !== undefined;
      });
      assert.equal(info.type, 'echoes');
      assert.equal(info.runId, handle.firstExecutionRunId);
      assert.equal(info.status.name, 'COMPLETED');
      assert.equal(info.taskQueue, c.queue);
      assert.deepEqual(info.memo, { m: 1 });
      assert.deepEqual(info.searchAttributes.CustomIntField, [5]);
      assert.ok(info.closeTime >= info.startTime);
      assert.equal(info.historyLength, 5);
      c.note(Object.keys(info.raw).filter((k) => info.raw[k] != null).sort());
    },
    events: [START, END],
  },
  oldLists: {
    async go(c) {
      const handle = await begin(c, 'waits');
      const service = c.client.workflowService;
      const request = { namespace: 'default', maximumPageSize: 10, executionFilter: { workflowId: c.id }, startTimeFilter: {} };
      await until('open', async () => (await service.listOpenWorkflowExecutions(request)).executions.length === 1);
      await handle.terminate();
      await until('closed', async () => (await service.listClosedWorkflowExecutions(request)).executions.length === 1);
      assert.equal((await service.listOpenWorkflowExecutions(request)).executions.length, 0);
      const scanned = await service.scanWorkflowExecutions({ namespace: 'default', query: `WorkflowId = '${c.id}'` }).then((r) => r.executions.length, (e) => e.code);
      c.note('scan', scanned);
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  searchAttributes: {
    async go(c) {
      const service = c.connection.operatorService;
      const attribute = 'Made' + c.queue;
      const Int = enums.IndexedValueType.INDEXED_VALUE_TYPE_INT;
      await service.addSearchAttributes({ namespace: 'default', searchAttributes: { [attribute]: Int } });
      await until('it is there', async () => (await service.listSearchAttributes({ namespace: 'default' })).customAttributes[attribute] === Int);
      const listed = await service.listSearchAttributes({ namespace: 'default' });
      c.note(Object.keys(listed.systemAttributes).sort());
      await until('it can be used', async () => (await codeOf(begin(c, 'waits', [], { searchAttributes: { [attribute]: [12] } }))) === 'OK');
      await until('it is found', async () => (await idsOf(c, `${attribute} = 12`)).includes(c.id));
      await c.client.workflow.getHandle(c.id).terminate();
      c.note('again', await codeOf(service.addSearchAttributes({ namespace: 'default', searchAttributes: { [attribute]: Int } })));
      await service.removeSearchAttributes({ namespace: 'default', searchAttributes: [attribute] });
      c.note('nobody', await codeOf(service.removeSearchAttributes({ namespace: 'default', searchAttributes: ['Nobody'] })));
      c.note('system', await codeOf(service.removeSearchAttributes({ namespace: 'default', searchAttributes: ['WorkflowId'] })));
    },
  },
  describeRaw: {
    async go(c) {
      const handle = await begin(c, 'waits', [], { workflowRunTimeout: '1 hour', retry: { maximumAttempts: 2 } });
      await until('a task', async () => (await types(handle)).includes('WorkflowTaskCompleted'));
      const { raw } = await handle.describe();
      const shown = (o) => Object.keys(o).filter((k) => o[k] != null && !(Array.isArray(o[k]) && o[k].length === 0)).sort();
      c.note(shown(raw), shown(raw.workflowExecutionInfo), shown(raw.executionConfig));
      assert.equal(Number(raw.executionConfig.workflowRunTimeout.seconds), 3600);
      await handle.terminate();
      const { raw: closed } = await handle.describe();
      c.note(shown(closed), shown(closed.workflowExecutionInfo));
    },
    events: [START, 'WorkflowExecutionTerminated'],
  },
  namespaces: {
    async go(c) {
      const service = c.client.workflowService;
      const namespace = `space-${c.queue}`;
      const retention = { workflowExecutionRetentionPeriod: { seconds: 86400 * 3 } };
      await service.registerNamespace({ namespace, description: 'made by a test', ...retention });
      c.note('again', await codeOf(service.registerNamespace({ namespace, ...retention })));
      c.note('no name', await codeOf(service.registerNamespace({ namespace: '', ...retention })));
      c.note('bad name', await codeOf(service.registerNamespace({ namespace: 'no spaces!', ...retention })));
      await until('it is known', async () => (await codeOf(service.describeNamespace({ namespace }))) === 'OK');
      const described = await service.describeNamespace({ namespace });
      assert.equal(described.namespaceInfo.description, 'made by a test');
      assert.equal(Number(described.config.workflowExecutionRetentionTtl.seconds), 86400 * 3);
      await service.updateNamespace({ namespace, updateInfo: { description: 'changed' } });
      await until('it is changed', async () => (await service.describeNamespace({ namespace })).namespaceInfo.description === 'changed');
      assert.ok((await service.listNamespaces({ pageSize: 100 })).namespaces.some((n) => n.namespaceInfo.name === namespace));

      const client = new Client({ connection: c.connection, namespace });
      await until('it takes workflows', async () => (await codeOf(client.workflow.getHandle('nobody').describe())) === 'WorkflowNotFoundError: Workflow execution not found' || (await codeOf(client.workflow.getHandle('nobody').describe())).startsWith('WorkflowNotFound'));
      const worker = await Worker.create({ connection: c.native, namespace, taskQueue: 'q', workflowBundle: c.bundle, activities: { greet: async (x) => 'there ' + x } });
      await worker.runUntil(async () => {
        assert.equal(await client.workflow.execute('hello', { taskQueue: 'q', workflowId: c.id, args: ['x'] }), 'there x');
      });
      await failure(c.client.workflow.getHandle(c.id).describe(), WorkflowNotFoundError); // the same id in the other namespace

      const nowhere = new Client({ connection: c.connection, namespace: 'nowhere' });
      await failure(nowhere.workflow.start('waits', { taskQueue: 'q', workflowId: c.id }), NamespaceNotFoundError);
      await failure(nowhere.workflow.getHandle('x').describe(), NamespaceNotFoundError);
      c.note('poll', await codeOf(service.pollWorkflowTaskQueue({ namespace: 'nowhere', taskQueue: { name: 'q' } })));
    },
  },
  resetKinds: {
    async go(c) {
      const handle = await begin(c, 'steps', [3]);
      assert.equal(await handle.result(), 6);
      const { events } = await handle.fetchHistory();
      const tasks = events.filter((e) => name(e) === 'WorkflowTaskCompleted');
      const execution = { workflowId: c.id, runId: handle.firstExecutionRunId };
      const reset = (more) => c.client.workflowService.resetWorkflowExecution({ namespace: 'default', workflowExecution: execution, reason: 'a test', requestId: JSON.stringify(more), ...more });
      const { runId } = await reset({ workflowTaskFinishEventId: tasks[2].eventId });
      assert.equal(await c.client.workflow.getHandle(c.id, runId).result(), 6);
      const again = await c.client.workflow.getHandle(c.id, runId).fetchHistory();
      const failed = again.events.find((e) => name(e) === 'WorkflowTaskFailed').workflowTaskFailedEventAttributes;
      assert.equal(failed.newRunId, runId);
      assert.equal(failed.baseRunId, handle.firstExecutionRunId);
      for (const id of [1, 2, 99999]) {
        const code = await codeOf(reset({ workflowTaskFinishEventId: id }));
        c.note('event', id, code);
        assert.equal(code, 'INVALID_ARGUMENT');
      }
      assert.equal(await codeOf(c.client.workflowService.resetWorkflowExecution({ namespace: 'default', workflowExecution: { workflowId: c.id + '/nobody' }, workflowTaskFinishEventId: 4, requestId: 'r' })), 'NOT_FOUND');
    },
  },
  resetSignals: {
    async go(c) {
      const handle = await begin(c, 'signals', [2]);
      await until('its first task is done', async () => (await types(handle)).includes('WorkflowTaskCompleted')); // the signal comes behind it
      await handle.signal('put', 'one');
      await until('it is seen', async () => (await handle.query('get')).length === 1);
      const { events } = await handle.fetchHistory();
      const first = events.find((e) => name(e) === 'WorkflowTaskCompleted');
      const { runId } = await c.client.workflowService.resetWorkflowExecution({
        namespace: 'default', workflowExecution: { workflowId: c.id }, workflowTaskFinishEventId: first.eventId, requestId: 'r', reason: 'no signals',
        resetReapplyExcludeTypes: [enums.ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL],
      });
      const next = c.client.workflow.getHandle(c.id, runId);
      await next.signal('put', 'two');
      await next.signal('put', 'three');
      assert.deepEqual(await next.result(), ['two', 'three']);
      assert.equal((await c.client.workflow.getHandle(c.id, handle.firstExecutionRunId).describe()).status.name, 'TERMINATED');
    },
    events: [START, SIGNAL, SIGNAL, END],
  },
  batch: {
    // Signals and then ends all runs that a filter finds.
    async go(c) {
      const service = c.client.workflowService;
      for (let i = 0; i < 5; i++) await c.client.workflow.start('waits', { taskQueue: c.queue, workflowId: `${c.id}/${i}` });
      const all = `WorkflowId STARTS_WITH '${c.id}/' AND ExecutionStatus = 'Running'`;
      await until('all are listed', async () => (await idsOf(c, all)).length === 5);
      const run = async (jobId, operation) => {
        await service.startBatchOperation({ namespace: 'default', visibilityQuery: all, jobId, reason: 'a test', ...operation });
        let described;
        await until('it is done', async () => {
          described = await service.describeBatchOperation({ namespace: 'default', jobId });
          return described.state === enums.BatchOperationState.BATCH_OPERATION_STATE_COMPLETED;
        });
        assert.equal(Number(described.totalOperationCount), 5);
        assert.equal(Number(described.completeOperationCount), 5);
      };
      await run(c.id + '-signal', { signalOperation: { signal: 'put', identity: 'me' } });
      for (let i = 0; i < 5; i++) {
        await until('the signal', async () => (await types(c.client.workflow.getHandle(`${c.id}/${i}`))).includes(SIGNAL));
      }
      await run(c.id + '-end', { terminationOperation: { identity: 'me' } });
      for (let i = 0; i < 5; i++) assert.equal((await c.client.workflow.getHandle(`${c.id}/${i}`).describe()).status.name, 'TERMINATED');
      c.note('nobody', await codeOf(service.describeBatchOperation({ namespace: 'default', jobId: 'nobody' })));
      c.note('no query', await codeOf(service.startBatchOperation({ namespace: 'default', jobId: 'x', reason: 'y', terminationOperation: {} })));
    },
  },
  taskQueue: {
    async go(c) {
      const described = await c.client.workflowService.describeTaskQueue({ namespace: 'default', taskQueue: { name: c.queue }, taskQueueType: enums.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW });
      assert.ok(described.pollers.length >= 1);
      assert.match(described.pollers[0].identity, /@/);
      const activity = await c.client.workflowService.describeTaskQueue({ namespace: 'default', taskQueue: { name: c.queue }, taskQueueType: enums.TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY });
      assert.ok(activity.pollers.length >= 1);
      assert.equal((await c.client.workflowService.describeTaskQueue({ namespace: 'default', taskQueue: { name: 'nobody polls' }, taskQueueType: 1 })).pollers.length, 0);
    },
  },
  cluster: {
    async go(c) {
      const info = await c.client.workflowService.getSystemInfo({});
      c.note(Object.entries(info.capabilities).filter(([, v]) => v).map(([k]) => k).sort());
      const namespace = await c.client.workflowService.describeNamespace({ namespace: 'default' });
      c.note(Object.entries(namespace.namespaceInfo.capabilities).filter(([, v]) => v).map(([k]) => k).sort());
      assert.equal((await c.connection.healthService.check({})).status, 1);
      c.note('cluster', await codeOf(c.client.workflowService.getClusterInfo({})));
    },
  },
};
