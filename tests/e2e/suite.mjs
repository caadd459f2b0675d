// The end-to-end suite: the unmodified TypeScript SDK against a server.
//     node suite.mjs <program> <scratch folder>
// Environment: E2E_ONLY, an expression for names of scenarios; E2E_COPIES, how many of each at once (20); E2E_SERVER=temporal, if the program is
// Temporal's own dev server; E2E_FACTS, a file that gets what the scenarios saw; E2E_RESTART, 0 without and "only" for what goes across the server's end.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { NativeConnection, Worker } from '@temporalio/worker';
import { activities, seen } from './activities.mjs';
import { Server, bundle, checkHistory, connect, finish, install, path, pool, registerAttributes, report, scene, until } from './rig.mjs';
import { SCENARIOS } from './scenarios.mjs';
import { MORE } from './more.mjs';

const [program, scratch] = process.argv.slice(2);
const only = new RegExp(process.env.E2E_ONLY ?? '');
const copies = Number(process.env.E2E_COPIES ?? 20);
const folder = mkdtempSync(join(scratch, 'run-'));
const facts = {};

install();
const code = await bundle({ workflowInterceptorModules: [path('./interceptors.mjs')] });
const server = new Server(program, folder);
await server.start();
const { client, connection } = await connect(server.address);
if (!server.isTemporal) await registerAttributes(connection);

// ---- The workers --------------------------------------------------------------------------------------------------------

let native;

async function makeWorkers() {
  native = await NativeConnection.connect({ address: server.address });
  const common = { connection: native, workflowBundle: code, activities, shutdownGraceTime: '2s', maxHeartbeatThrottleInterval: '300ms' };
  const workers = [
    await Worker.create({ ...common, taskQueue: 'cached' }),
    await Worker.create({ ...common, taskQueue: 'uncached', maxCachedWorkflows: 0 }),
  ];
  const running = workers.map((w) => w.run());
  return {
    async stop() {
      workers.forEach((w) => w.shutdown());
      await Promise.all(running);
      await native.close();
    },
  };
}

// ---- Scenarios ----------------------------------------------------------------------------------------------------------

// What a scenario gets: the client, its task queue, its id, what activities saw; and how to look at a history, to note a fact, to
// have a worker of its own.
async function context(scenarioName, queue, id, here) {
  const isFirst = /-0$/.test(id);
  const noted = isFirst ? ((facts[scenarioName] ??= {})[queue] = { errors: here.errors, events: {}, notes: [] }) : null;
  const short = (text) => text.replaceAll(id, 'ID');
  return {
    client,
    connection,
    address: server.address,
    native,
    bundle: code,
    isTemporal: server.isTemporal,
    queue,
    id,
    ...seen,
    note: (...values) => noted?.notes.push(short(JSON.stringify(values))),
    // The events of a workflow but those of workflow tasks are these, in this order; `bag`: in any order.
    async events(workflowId, expected, { bag = false, runId } = {}) {
      const others = checkHistory(await client.workflow.getHandle(workflowId, runId).fetchHistory());
      if (bag) others.sort();
      if (noted) noted.events[short(workflowId)] = others;
      assert.deepEqual(others, bag ? [...expected].sort() : expected);
    },
    async withWorker(options, go) {
      const worker = await Worker.create({ connection: native, workflowBundle: code, activities, taskQueue: id, ...options });
      return await worker.runUntil(go(worker));
    },
  };
}

async function oneCopy(all, scenarioName, queue, id, gate) {
  const scenario = all[scenarioName];
  const here = { errors: [], gate };
  await scene.run(here, async () => {
    const c = await context(scenarioName, queue, id, here);
    await scenario.go(c);
    if (scenario.events) await c.events(id, scenario.events);
    if (scenario.bag) await c.events(id, scenario.bag, { bag: true });
  });
  if (process.env.E2E_FACTS) writeFileSync(process.env.E2E_FACTS, JSON.stringify(facts, null, 1));
}

// Local activities of a run that is not cached are dropped by the SDK when another run comes: one copy then.
function copiesOf(scenario, queue) {
  return scenario.once || (scenario.local && queue === 'uncached') ? 1 : copies;
}

function job(all, scenarioName, queue) {
  const count = copiesOf(all[scenarioName], queue);
  return () =>
    report(
      `${scenarioName}, ${queue}${count > 1 ? `, ${count} at once` : ''}`,
      Promise.all([...Array(count).keys()].map((i) => oneCopy(all, scenarioName, queue, `${scenarioName}-${queue}-${i}`))),
    );
}

const wanted = (all) => Object.keys(all).filter((n) => only.test(n) && !(server.isTemporal && all[n].ours));

async function runAll() {
  const [jobs, alone] = [[], []];
  for (const n of wanted(SCENARIOS)) {
    jobs.push(job(SCENARIOS, n, 'cached'));
    (SCENARIOS[n].local ? alone : jobs).push(job(SCENARIOS, n, 'uncached'));
  }
  await pool(jobs, server.isTemporal ? 12 : 3);
  await pool(alone, 1);
  await pool(wanted(MORE).flatMap((n) => (MORE[n].both ? ['cached', 'uncached'] : ['cached']).map((queue) => job(MORE, n, queue))), server.isTemporal ? 12 : 4);
}

// ---- Across the end of the server -----------------------------------------------------------------------------------------

// An SDK gives up an answer after ten seconds without a server.
async function restart() {
  const since = Date.now();
  assert.equal(await server.end('SIGTERM'), 0);
  await server.start();
  console.log(`[ restart  ] the server was away for ${Date.now() - since} ms`);
}

// Every scenario of the list, once: the server ends in order after each has made its first call, and again when a third of them are done.
async function acrossRestart() {
  let open;
  let waiting = 0;
  let done = 0;
  const gate = new Promise((resolve) => (open = resolve));
  const all = wanted(SCENARIOS).map((n) => {
    let calls = 0;
    const pass = () => {
      if (++calls === 1) {
        if (SCENARIOS[n].blocks) waiting++;
        return Promise.resolve();
      }
      if (calls === 2 && !SCENARIOS[n].blocks) waiting++;
      return gate;
    };
    const going = oneCopy(SCENARIOS, n, 'cached', `${n}-restart`, pass);
    const told = report(`${n}, across a restart`, going).then(() => {
      done++;
      if (calls < 2 && !SCENARIOS[n].blocks) waiting++;
    });
    return told;
  });
  await until('all have begun', () => waiting === all.length);
  await restart();
  const workers = await makeWorkers();
  open();
  await until('a third is done', () => done * 3 >= all.length);
  await restart();
  await Promise.all(all);
  return workers;
}

async function acrossEnd(signal, count) {
  const handles = await Promise.all(
    [...Array(count).keys()].map((i) =>
      client.workflow.start('steps', { taskQueue: i % 10 ? 'cached' : 'uncached', workflowId: `steps-${signal}-${i}`, args: [10] }),
    ),
  );
  const results = Promise.all(handles.map((h) => patient(() => h.result())));
  await until('some steps', async () => {
    const length = (await handles[1].describe()).historyLength;
    return length > 20;
  });
  const status = await server.end(signal);
  if (signal === 'SIGTERM') assert.equal(status, 0);
  await server.start();
  for (const result of await results) assert.equal(result, 55);
  for (const handle of handles) checkHistory(await patient(() => handle.fetchHistory()));
}

// A call that was under way when the server was killed fails in other ways, too; a client comes again.
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

let workers = await makeWorkers();
if (process.env.E2E_RESTART !== 'only') await runAll();
if (!server.isTemporal && process.env.E2E_RESTART !== '0') {
  await report('the worker stops', workers.stop());
  workers = await acrossRestart();
  if (only.test('restart')) {
    await report('100 workflows across SIGTERM', acrossEnd('SIGTERM', 100));
    await report('100 workflows across kill -9', acrossEnd('SIGKILL', 100));
  }
}
await report('the worker stops at the end', workers.stop());
await connection.close();
await report('the server stops', server.end('SIGTERM').then((status) => server.isTemporal || assert.equal(status, 0)));
finish();
