// The end-to-end suite: the unmodified TypeScript SDK against a Holdfast server.
//     node suite.mjs <holdfast program> <scratch folder>
// Environment: E2E_ONLY, a part of a scenario's name; E2E_COPIES, how many of each at once (20; a quarter of them without a cache, where
// every workflow task begins with a new sandbox).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker, Runtime, DefaultLogger, bundleWorkflowCode } from '@temporalio/worker';
import { Context, CompleteAsyncError, ApplicationFailure } from '@temporalio/activity';
import { SCENARIOS, checkHistory, until } from './scenarios.mjs';

const [holdfast, scratch] = process.argv.slice(2);
const only = process.env.E2E_ONLY ?? '';
const copies = Number(process.env.E2E_COPIES ?? 20);
const folder = mkdtempSync(join(scratch, 'run-'));
const tokens = new Map();
const activityIds = new Map();
const attempts = new Map();

// ---- The server ---------------------------------------------------------------------------------------------------------

class Server {
  constructor(args) {
    this.args = args;
    this.port = 0;
  }

  async start() {
    const listen = ['--listen', `127.0.0.1:${this.port}`];
    this.process = spawn(holdfast, ['serve', ...this.args, ...listen, '--log-level', 'warn'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(this.process.stdout, 'data');
    this.port = Number(/:(\d+)\s*$/.exec(String(line))[1]);
    this.address = `127.0.0.1:${this.port}`;
  }

  async end(signal) {
    this.process.kill(signal);
    const [code] = await once(this.process, 'exit');
    return code;
  }
}

// ---- The worker ---------------------------------------------------------------------------------------------------------

const activities = {
  greet: async (who) => `hello ${who}`,
  echo: async (x) => x,
  add: async (a, b) => a + b,
  slow: async (ms) => {
    await Context.current().sleep(ms);
    return 'slow';
  },
  failTwice: async () => {
    const { attempt } = Context.current().info;
    if (attempt < 3) throw new Error('not yet');
    return 'attempt ' + attempt;
  },
  failForGood: async (why) => {
    throw ApplicationFailure.create({ message: why, type: 'CardError', nonRetryable: true, details: [{ code: 7 }] });
  },
  beat: async () => {
    const context = Context.current();
    for (;;) {
      context.heartbeat('alive');
      await context.sleep(50); // throws when it is canceled
    }
  },
  complete: async (id) => {
    activityIds.set(id, Context.current().info.activityId);
    tokens.set(id, Context.current().info.taskToken);
    throw new CompleteAsyncError();
  },
  countAttempts: async (id) => {
    attempts.set(id, (attempts.get(id) ?? 0) + 1);
    return attempts.get(id);
  },
};

Runtime.install({ logger: new DefaultLogger('ERROR') });

async function makeWorkers(address, bundle) {
  const connection = await NativeConnection.connect({ address });
  const common = { connection, workflowBundle: bundle, activities, namespace: 'default', shutdownGraceTime: '2s' };
  const workers = [
    await Worker.create({ ...common, taskQueue: 'cached' }),
    await Worker.create({ ...common, taskQueue: 'uncached', maxCachedWorkflows: 0 }),
  ];
  const running = workers.map((w) => w.run());
  return {
    async stop() {
      workers.forEach((w) => w.shutdown());
      await Promise.all(running);
      await connection.close();
    },
  };
}

// ---- Running ------------------------------------------------------------------------------------------------------------

let passed = 0;
const failures = [];

async function report(name, promise) {
  const begun = Date.now();
  try {
    await promise;
    passed++;
    console.log(`[       OK ] ${name} (${Date.now() - begun} ms)`);
  } catch (e) {
    failures.push(name);
    console.log(`[  FAILED  ] ${name}: ${e.stack ?? e}${e.cause ? ' / ' + (e.cause.stack ?? e.cause) : ''}`);
  }
}

async function oneCopy(client, name, queue, i) {
  const scenario = SCENARIOS[name];
  const id = `${name}-${queue}-${i}`;
  await scenario.go({ client, queue, id, tokens, activityIds });
  if (scenario.events === false) return;
  const others = checkHistory(await client.workflow.getHandle(id).fetchHistory().catch((e) => {
    if (scenario.events === null) return { events: [] };
    throw e;
  }));
  if (scenario.events !== null) assert.deepEqual(others, scenario.events);
}

async function runScenario(client, name, queue) {
  const { once: isOnce, local } = SCENARIOS[name];
  const count = isOnce || (local && queue === 'uncached') ? 1 : queue === 'cached' ? copies : Math.ceil(copies / 4);
  await Promise.all([...Array(count).keys()].map((i) => oneCopy(client, name, queue, i)));
}

// ---- Across the end of the server -----------------------------------------------------------------------------------------

async function acrossEnd(server, client, signal, count) {
  const handles = await Promise.all(
    [...Array(count).keys()].map((i) =>
      client.workflow.start('steps', { taskQueue: i % 2 ? 'cached' : 'uncached', workflowId: `steps-${signal}-${i}`, args: [10] }),
    ),
  );
  const results = Promise.all(handles.map((h) => patient(() => h.result())));
  await until('some steps', async () => {
    const length = (await handles[0].describe()).historyLength;
    return length > 20;
  });
  const code = await server.end(signal);
  if (signal === 'SIGTERM') assert.equal(code, 0);
  await server.start();
  for (const result of await results) assert.equal(result, 55);
  for (const handle of handles) checkHistory(await patient(() => handle.fetchHistory()));
}

// A client's call fails while the server is away; a client comes again.
async function patient(call) {
  for (let i = 0; ; i++) {
    try {
      return await call();
    } catch (e) {
      const text = `${e?.message} ${e?.cause?.message} ${e?.cause?.code}`;
      if (i > 200 || !/UNAVAILABLE|14|ECONNREFUSED|CANCELLED/.test(text)) throw e;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

// ---- Main -----------------------------------------------------------------------------------------------------------------

const begun = Date.now();
const bundle = await bundleWorkflowCode({
  workflowsPath: new URL('./workflows.mjs', import.meta.url).pathname,
  logger: new DefaultLogger('ERROR'),
});
const server = new Server(['--store', `sqlite:${join(folder, 'e2e.db')}`]);
await server.start();
const workers = await makeWorkers(server.address, bundle);
const connection = await Connection.connect({ address: server.address });
const client = new Client({ connection });

const names = Object.keys(SCENARIOS).filter((n) => n.includes(only));
for (const name of names) {
  const each = ['cached', 'uncached'].map((queue) => () => report(`${name}, ${queue}`, runScenario(client, name, queue)));
  if (SCENARIOS[name].local) {
    for (const go of each) await go();
  } else {
    await Promise.all(each.map((go) => go()));
  }
}
if ('restart'.includes(only)) {
  await report('100 workflows across SIGTERM', acrossEnd(server, client, 'SIGTERM', 100));
  await report('100 workflows across kill -9', acrossEnd(server, client, 'SIGKILL', 100));
}
await report('the worker stops', workers.stop());
await connection.close();
await report('the server stops', server.end('SIGTERM').then((code) => assert.equal(code, 0)));
console.log(`[==========] ${passed} passed, ${failures.length} failed in ${Math.round((Date.now() - begun) / 1000)} s`);
failures.forEach((name) => console.log(`[  FAILED  ] ${name}`));
process.exit(failures.length > 0 ? 1 : 0);
