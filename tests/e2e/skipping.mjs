// A user's own unit test with time that is skipped: the SDK starts the server with a port as its only argument.
//     node skipping.mjs <holdfast program> <scratch folder>
import assert from 'node:assert/strict';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker, Runtime, DefaultLogger, bundleWorkflowCode } from '@temporalio/worker';
import { activityInfo } from '@temporalio/activity';

const [holdfast] = process.argv.slice(2);
const logger = new DefaultLogger('ERROR');
Runtime.install({ logger });
const env = await TestWorkflowEnvironment.createTimeSkipping({
  server: { executable: { type: 'existing-path', path: holdfast } },
});
const DAY = 86_400_000;
const noted = [];
const worker = await Worker.create({
  connection: env.nativeConnection,
  namespace: env.namespace,
  taskQueue: 'skipping',
  workflowBundle: await bundleWorkflowCode({
    workflowsPath: new URL('./skipping-workflows.mjs', import.meta.url).pathname,
    logger,
  }),
  activities: {
    note: async (what) => {
      noted.push(what);
      if (activityInfo().attempt < 3) {
        throw new Error('not today');
      }
      return activityInfo().attempt;
    },
  },
});
const options = (id) => ({ taskQueue: 'skipping', workflowId: id });
await worker.runUntil(async () => {
  // Waiting for the result skips time: sixty days and the pauses of the activity.
  const before = await env.currentTimeMs();
  const result = await env.client.workflow.execute('subscription', options('subscription'));
  assert.deepEqual(result, { attempt: 3, days: 60 });
  assert.equal(noted.length, 3);
  const passed = (await env.currentTimeMs()) - before;
  assert.ok(passed >= 60 * DAY + 2 * 3_600_000 && passed < 61 * DAY, `${passed} ms`);

  // A sleep of the test itself; the timeout of the workflow has not come.
  const handle = await env.client.workflow.start('approval', options('approval'));
  const asked = await env.currentTimeMs();
  await env.sleep('3 days');
  const slept = (await env.currentTimeMs()) - asked;
  assert.ok(slept >= 3 * DAY && slept < 3 * DAY + 60_000, `${slept} ms`);
  assert.equal((await handle.describe()).status.name, 'RUNNING');
  await handle.signal('go');
  assert.equal(await handle.result(), 'approved');

  // Nobody signals this one: the week passes at once.
  assert.equal(await env.client.workflow.execute('approval', options('forgotten')), 'forgotten');
});
await env.teardown();
console.log('[       OK ] createTimeSkipping runs on holdfast PORT');
