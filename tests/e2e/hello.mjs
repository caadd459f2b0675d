// ./dev demo temporal: a server, and one workflow of the TypeScript SDK on it.
//     node hello.mjs <holdfast program> <scratch folder>
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker, Runtime, DefaultLogger, bundleWorkflowCode } from '@temporalio/worker';

const [holdfast, scratch] = process.argv.slice(2);
const file = join(mkdtempSync(join(scratch, 'run-')), 'hello.db');
const logger = new DefaultLogger('ERROR');
Runtime.install({ logger });

console.log(`    $ holdfast serve --store sqlite:hello.db --listen 127.0.0.1:0`);
const server = spawn(holdfast, ['serve', '--store', `sqlite:${file}`, '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'ignore'] });
const [line] = await once(server.stdout, 'data');
console.log('    ' + String(line).trim());
const address = '127.0.0.1:' + /:(\d+)\s*$/.exec(String(line))[1];

const nativeConnection = await NativeConnection.connect({ address });
const worker = await Worker.create({
  connection: nativeConnection,
  taskQueue: 'demo',
  workflowBundle: await bundleWorkflowCode({ workflowsPath: new URL('./workflows.mjs', import.meta.url).pathname, logger }),
  activities: { greet: async (who) => `hello ${who}` },
});
const connection = await Connection.connect({ address });
const client = new Client({ connection });
const result = await worker.runUntil(client.workflow.execute('hello', { taskQueue: 'demo', workflowId: 'hello-1', args: ['Temporal'] }));
console.log('    the workflow returned: ' + result);
await nativeConnection.close();
await connection.close();
server.kill('SIGTERM');
await once(server, 'exit');
const show = spawn(holdfast, ['show', file, 'hello-1'], { stdio: ['ignore', 'pipe', 'inherit'] });
console.log('    $ holdfast show hello.db hello-1');
show.stdout.on('data', (text) => process.stdout.write(String(text).replace(/^/gm, '    ')));
const [code] = await once(show, 'exit');
process.exit(code);
