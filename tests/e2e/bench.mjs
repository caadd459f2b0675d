// The TypeScript SDK as load of ./dev bench server: a client and a worker in one process.
//     node bench.mjs <any> <scratch folder> <host:port> <workflows at a time> <seconds>
// Prints "begin" and "end" around what is measured, and lines of "metric<TAB>value", as bench/server.c does.
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker, bundleWorkflowCode } from '@temporalio/worker';

const [, , address, count, seconds] = process.argv.slice(2);
if (address === undefined) process.exit(0); // the SDK is installed now
const logger = new DefaultLogger('ERROR');
Runtime.install({ logger, telemetryOptions: { logging: { forward: {}, filter: { core: 'ERROR', other: 'ERROR' } } } });
const native = await NativeConnection.connect({ address });
const worker = await Worker.create({
  connection: native,
  taskQueue: 'bench-ts',
  workflowBundle: await bundleWorkflowCode({ workflowsPath: new URL('./workflows.mjs', import.meta.url).pathname, logger }),
  activities: { greet: async (who) => `hello ${who}` },
  maxConcurrentWorkflowTaskExecutions: 200,
  maxConcurrentActivityTaskExecutions: 200,
});
const connection = await Connection.connect({ address });
const client = new Client({ connection });

let isOver = false;
let isMeasuring = false;
let made = 0;
let results = 0;
const times = [];
async function ask() {
  while (!isOver) {
    const begun = performance.now();
    await client.workflow.execute('hello', { taskQueue: 'bench-ts', workflowId: `bench-${process.pid}-${made++}`, args: ['x'] });
    if (isMeasuring) times.push(performance.now() - begun);
    results++;
  }
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

await worker.runUntil(async () => {
  const clients = Array.from({ length: Number(count) }, ask);
  await pause(Number(seconds) < 4 ? 1000 : 2000);
  isMeasuring = true;
  console.log('begin');
  const cpu = process.cpuUsage();
  const before = results;
  const from = performance.now();
  await pause(Number(seconds) * 1000);
  const runs = results - before;
  const used = process.cpuUsage(cpu);
  const span = performance.now() - from;
  console.log('end');
  isOver = true;
  times.sort((a, b) => a - b);
  console.log(`ops_s\t${(runs * 1000) / span}`);
  console.log(`load_us\t${(used.user + used.system) / Math.max(runs, 1)}`);
  console.log(`p50_ms\t${times[Math.floor(times.length / 2)] ?? 0}`);
  console.log(`p99_ms\t${times[Math.floor((times.length * 99) / 100)] ?? 0}`);
  console.log(`runs\t${runs}`);
  await Promise.all(clients);
});
await connection.close();
await native.close();
process.exit(0);
