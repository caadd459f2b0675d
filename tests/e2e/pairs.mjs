// Histories of the C worker are replayed by the SDK, and those of the SDK's worker by the C worker's replayer.
//     node pairs.mjs <holdfast program> <scratch folder> <e2e_pairs program>
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { ApplicationFailure, activityInfo } from '@temporalio/activity';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { NativeConnection, Worker } from '@temporalio/worker';
import { Server, bundle, checkHistory, connect, finish, install, path, report, types, until } from './rig.mjs';

const [program, scratch, twin] = process.argv.slice(2);
const folder = mkdtempSync(join(scratch, 'run-'));
const TYPES = ['pairActivity', 'pairTimer', 'pairSignal', 'pairChild', 'pairLocal', 'pairPatch', 'pairUpdate', 'pairContinue', 'pairForks', 'pairCancel'];

const activities = {
  greet: async (x) => x,
  flaky: async (x) => {
    if (activityInfo().attempt < 3) throw new Error('not yet');
    return x;
  },
  refuse: async () => {
    throw ApplicationFailure.create({ message: 'no', type: 'Declined', nonRetryable: true });
  },
};

install();
const code = await bundle({ workflowsPath: path('./pairs_workflows.mjs') });

// ---- From C to TypeScript

await report('the C worker records', Promise.resolve().then(() => execFileSync(twin, ['record', folder], { stdio: 'inherit' })));
for (const type of TYPES) {
  const go = async () => {
    const history = JSON.parse(readFileSync(join(folder, `c-${type}.json`), 'utf8'));
    assert.ok(history.events.length > 3);
    await Worker.runReplayHistory({ workflowBundle: code }, history, 'w');
  };
  await report(`${type}: a history of the C worker on the SDK's replayer`, go());
}

// ---- From TypeScript to C

const server = new Server(program, folder);
await server.start();
const { client, connection } = await connect(server.address);
const native = await NativeConnection.connect({ address: server.address });
const worker = await Worker.create({ connection: native, workflowBundle: code, activities, taskQueue: 'q' });

// What clients do to the run. The twin gets the same from pairs.c.
const ACTS = {
  async pairSignal(handle) {
    await handle.signal('go', 1);
    await until('the activity', async () => (await types(handle)).includes('ActivityTaskCompleted'));
    await handle.signal('go', 2);
  },
  async pairUpdate(handle) {
    await handle.executeUpdate('add', { args: [1] });
    await assert.rejects(handle.executeUpdate('add', { args: [-1] }));
    await handle.executeUpdate('add', { args: [2] });
  },
  async pairCancel(handle) {
    await until('the timer', async () => (await types(handle)).includes('TimerStarted'));
    await handle.cancel();
  },
};

await worker.runUntil(async () => {
  for (const type of TYPES) {
    const go = async () => {
      const handle = await client.workflow.start(type, { taskQueue: 'q', workflowId: type, args: [type === 'pairContinue' ? 2 : 'x'] });
      await ACTS[type]?.(handle);
      await handle.result().catch((e) => {
        if (type !== 'pairCancel') throw e;
      });
      const history = await client.workflow.getHandle(type).fetchHistory();
      checkHistory(history);
      writeFileSync(join(folder, `ts-${type}.json`), historyToJSON(history));
    };
    await report(`${type}: the SDK's worker records`, go());
  }
});
await report("histories of the SDK on the C worker's replayer", Promise.resolve().then(() => execFileSync(twin, ['replay', folder], { stdio: 'inherit' })));
await native.close();
await connection.close();
await server.end('SIGTERM');
finish();
