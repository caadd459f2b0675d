// TLS, client certificates and API keys, with the SDK's client as the caller.
//     node secure.mjs <holdfast program> <scratch folder>
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { bundle, install, until } from './rig.mjs';

const [holdfast, scratch] = process.argv.slice(2);
const folder = mkdtempSync(join(scratch, 'run-'));
const at = (name) => join(folder, name);
const openssl = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });

// A CA, a server of it, a client of it, and a client of another CA.
for (const ca of ['ca', 'other']) {
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${ca}`, '-keyout', `${ca}.key`, '-out', `${ca}.pem`);
}
for (const [name, ca] of [['server', 'ca'], ['client', 'ca'], ['stranger', 'other']]) {
  openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1',
    '-keyout', `${name}.key`, '-out', `${name}.csr`);
  openssl('x509', '-req', '-in', `${name}.csr`, '-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-CAcreateserial', '-days', '2',
    '-copy_extensions', 'copy', '-out', `${name}.pem`);
}
const key = (...args) => execFileSync(holdfast, ['key', ...args, '--keys', at('keys')], { stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim();
const reader = key('add', '--permissions', 'default:read');
const workers = [1, 2, 3].map(() => key('add', '--permissions', 'default:worker'));
const admin = key('add', '--permissions', '*:admin', '--days', '30', '--label', 'ops');
assert.match(key('list'), /never\s+default:read[\s\S]*\*:admin\s+ops/);
assert.ok(!readFileSync(at('keys'), 'utf8').includes(reader.slice(12)), 'the file has only hashes');

// A network address needs both TLS and keys.
const refused = spawnSync(holdfast, ['serve', '--store', 'memory:', '--listen', '0.0.0.0:0', '--tls-cert', at('server.pem'), '--tls-key', at('server.key')]);
assert.equal(refused.status, 2);
assert.match(String(refused.stderr), /--insecure-network/);

const server = spawn(
  holdfast,
  ['serve', '--store', 'memory:', '--listen', '0.0.0.0:0', '--keys', at('keys'), '--tls-cert', at('server.pem'), '--tls-key', at('server.key'),
    '--tls-client-ca', at('ca.pem')],
  { stdio: ['ignore', 'pipe', 'pipe'] },
);
let log = '';
server.stderr.on('data', (text) => (log += text));
const [line] = await once(server.stdout, 'data');
const address = '127.0.0.1:' + /:(\d+)\s*$/.exec(String(line))[1];

const connect = (who, apiKey) =>
  Connection.connect({
    address,
    apiKey,
    connectTimeout: '5s',
    tls: {
      serverRootCACertificate: readFileSync(at('ca.pem')),
      clientCertPair: who && { crt: readFileSync(at(who + '.pem')), key: readFileSync(at(who + '.key')) },
    },
  });
const code = (promise) => promise.then(() => 0, (e) => e.code ?? e.cause?.code ?? e.name);

const connection = await connect('client', admin);
const client = new Client({ connection });
await client.workflow.start('anything', { taskQueue: 'q', workflowId: 'w' });
assert.equal((await client.workflow.getHandle('w').describe()).status.name, 'RUNNING');

const reading = await connect('client', reader);
assert.equal((await new Client({ connection: reading }).workflow.getHandle('w').describe()).status.name, 'RUNNING');
assert.equal(await code(reading.workflowService.terminateWorkflowExecution({ namespace: 'default', workflowExecution: { workflowId: 'w' } })), 7);

assert.notEqual(await code(connect('client', undefined)), 0); // no key
assert.notEqual(await code(connect('client', admin.slice(0, -1) + (admin.endsWith('0') ? '1' : '0'))), 0); // another key
assert.notEqual(await code(connect(undefined, admin)), 0); // no certificate
assert.notEqual(await code(connect('stranger', admin)), 0); // a certificate of another CA

// A worker whose key is only a worker's. Its cache has room for one run, so each task of the others brings only the newest events, and the worker reads the
// history from its first event on; the histories have several pages. In between it gets another key.
install();
const files = { serverRootCACertificate: readFileSync(at('ca.pem')), clientCertPair: { crt: readFileSync(at('client.pem')), key: readFileSync(at('client.key')) } };
const native = await NativeConnection.connect({ address, apiKey: workers[0], tls: files });
const worker = await Worker.create({ connection: native, taskQueue: 'secure', workflowBundle: await bundle(), maxCachedWorkflows: 1 });
await worker.runUntil(async () => {
  const ids = ['a', 'b', 'c'];
  const of = (id) => client.workflow.getHandle(id);
  const events = async (id) => (await of(id).fetchHistory()).events;
  const failed = (list) => list.filter((e) => e.workflowTaskFailedEventAttributes || e.workflowTaskTimedOutEventAttributes).length;
  for (const id of ids) await client.workflow.start('waits', { taskQueue: 'secure', workflowId: id });
  for (let i = 0; i < 3; i++) {
    if (i === 1) await native.setApiKey(workers[1]);
    await Promise.all(ids.map((id) => of(id).signal('put', i, 'x'.repeat(900_000))));
    for (const id of ids) await until('the task has ended', async () => (await of(id).describe()).raw.pendingWorkflowTask == null);
  }
  for (const id of ids) assert.equal((await of(id).query('get')).length, 3);
  await Promise.all(ids.map((id) => of(id).signal('done')));
  for (const id of ids) await of(id).result();
  for (const id of ids) assert.equal((await of(id).query('get')).length, 3); // of a run that has ended
  for (const id of ids) assert.equal(failed(await events(id)), 0);
  const third = await connect('client', workers[2]);
  const { runId } = (await of('a').describe());
  const read = (connection, execution) => code(connection.workflowService.getWorkflowExecutionHistory({ namespace: 'default', execution }));
  assert.equal(await read(third, { workflowId: 'a', runId }), 7); // nobody gave it a task
  assert.equal(await read(connection, { workflowId: 'a', runId }), 0);
  await third.close();
});
await native.close();

// A revoked key is refused from the next SIGHUP on, also on an open connection, which goes on.
key('revoke', reader.slice(3, 11));
const renewed = new Promise((resolve) => server.stderr.on('data', () => log.includes('renewed') && resolve()));
server.kill('SIGHUP');
await renewed;
assert.equal(await code(reading.workflowService.describeNamespace({ namespace: 'default' })), 16);
assert.equal(await code(connection.workflowService.describeNamespace({ namespace: 'default' })), 0);

await connection.close();
await reading.close();
server.kill('SIGTERM');
const [exit] = await once(server, 'exit');
assert.equal(exit, 0);
console.log('[       OK ] TLS, client certificates, API keys, SIGHUP');
process.exit(0);
