// A user's own unit test: the SDK's test environment starts the server itself, by the arguments of Temporal's dev server.
//     node local.mjs <holdfast program> <scratch folder>
import assert from 'node:assert/strict';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from '@temporalio/common';
import { Worker, Runtime, DefaultLogger, bundleWorkflowCode } from '@temporalio/worker';

const [holdfast] = process.argv.slice(2);
const logger = new DefaultLogger('ERROR');
Runtime.install({ logger });
const customer = defineSearchAttributeKey('Customer', SearchAttributeType.KEYWORD);
const env = await TestWorkflowEnvironment.createLocal({
  server: { executable: { type: 'existing-path', path: holdfast }, namespace: 'unit-tests', searchAttributes: [customer] },
});
const worker = await Worker.create({
  connection: env.nativeConnection,
  namespace: env.namespace,
  taskQueue: 'local',
  workflowBundle: await bundleWorkflowCode({ workflowsPath: new URL('./workflows.mjs', import.meta.url).pathname, logger }),
  activities: { greet: async (who) => `hello ${who}` },
});
const result = await worker.runUntil(
  env.client.workflow.execute('hello', {
    taskQueue: 'local',
    workflowId: 'local',
    args: ['from a test'],
    typedSearchAttributes: new TypedSearchAttributes([{ key: customer, value: 'ada' }]),
  }),
);
assert.equal(result, 'hello from a test');
assert.equal((await env.client.workflow.count("Customer = 'ada'")).count, 1);
await env.teardown();
console.log('[       OK ] createLocal runs on holdfast server start-dev');
