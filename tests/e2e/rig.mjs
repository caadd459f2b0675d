// What all scripts of this folder share: a server, workers, a client whose calls are noted, and how a test is told.
import { spawn } from 'node:child_process';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import grpc from '@grpc/grpc-js';
import proto from '@temporalio/proto';
import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { DefaultLogger, Runtime, bundleWorkflowCode } from '@temporalio/worker';

// Warnings of the SDK are kept, and told when a test fails: an answer that a worker gave up cannot be seen from the server.
const warnings = [];
const printing = new DefaultLogger(process.env.E2E_LOG ?? 'ERROR');
export const logger = new DefaultLogger('WARN', ({ level, timestampNanos, message, meta }) => {
  const time = new Date(Number(timestampNanos / 1_000_000n)).toISOString();
  warnings.push(`${time} ${level} ${message} ${meta?.error?.stack ?? meta?.error ?? ''}`.slice(0, 400));
  if (warnings.length > 100) warnings.shift();
  printing.log(level, message, meta);
});
export const enums = proto.temporal.api.enums.v1;

export function install() {
  Runtime.install({ logger, telemetryOptions: { logging: { forward: { level: 'WARN' }, filter: { core: 'WARN', other: 'ERROR' } } } });
}

// ---- The server ---------------------------------------------------------------------------------------------------------

// Attributes that scenarios use; a Holdfast server is told of them by the operator's call, a dev server of Temporal by its arguments.
export const ATTRIBUTES = {
  CustomKeywordField: 'Keyword',
  CustomTextField: 'Text',
  CustomIntField: 'Int',
  CustomDoubleField: 'Double',
  CustomBoolField: 'Bool',
  CustomDatetimeField: 'Datetime',
  CustomKeywordListField: 'KeywordList',
};

async function freePort() {
  const listener = createServer();
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  return port;
}

// A server of Holdfast, or Temporal's own (E2E_SERVER=temporal: the program of ./dev oracle).
export class Server {
  constructor(program, folder) {
    this.program = program;
    this.file = join(folder, 'e2e.db');
    this.isTemporal = process.env.E2E_SERVER === 'temporal';
    this.port = 0;
  }

  async start() {
    if (this.isTemporal) {
      await this.startTemporal();
    } else {
      await this.startHoldfast();
    }
    this.address = `127.0.0.1:${this.port}`;
  }

  async startHoldfast() {
    const args = ['serve', '--store', `sqlite:${this.file}`, '--listen', `127.0.0.1:${this.port}`, '--log-level', 'warn'];
    this.process = spawn(this.program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(this.process.stdout, 'data');
    this.port = Number(/:(\d+)\s*$/.exec(String(line))[1]);
  }

  async startTemporal() {
    this.port ||= await freePort();
    const values = ['matching.numTaskqueueReadPartitions=1', 'matching.numTaskqueueWritePartitions=1',
      'history.workflowIdReuseMinimalInterval="0s"', 'frontend.activityAPIsEnabled=true', 'system.enableActivityEagerExecution=true',
      'system.enableEagerWorkflowStart=true'];
    const args = ['--port', `${this.port}`, ...values.flatMap((v) => ['--dynamic-config-value', v])];
    for (const [name, type] of Object.entries(ATTRIBUTES)) args.push('--search-attribute', `${name}=${type}`);
    const env = { ...process.env, TEMPORAL_VERSION_CHECK_DISABLED: '1' };
    this.process = spawn(this.program, args, { stdio: ['ignore', 'ignore', 'ignore'], env });
    for (;;) {
      const connection = await Connection.connect({ address: `127.0.0.1:${this.port}`, connectTimeout: '60s' }).catch(() => null);
      const isReady = await connection?.workflowService.describeNamespace({ namespace: 'default' }).then(() => true, () => false);
      await connection?.close();
      if (isReady) return;
      assert.equal(this.process.exitCode, null, 'the server has ended');
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  async end(signal) {
    this.process.kill(signal);
    const [code] = await once(this.process, 'exit');
    return code;
  }
}

export async function registerAttributes(connection) {
  const searchAttributes = {};
  for (const [name, type] of Object.entries(ATTRIBUTES)) {
    searchAttributes[name] = enums.IndexedValueType[`INDEXED_VALUE_TYPE_${type.replace('List', '_LIST').toUpperCase()}`];
  }
  await connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes });
}

// ---- The client -----------------------------------------------------------------------------------------------------------

// What a scenario is, for the calls that it makes: { errors, gate }.
export const scene = new AsyncLocalStorage();

const detailsOf = (status) =>
  status.metadata
    .get('grpc-status-details-bin')
    .flatMap((bytes) => proto.google.rpc.Status.decode(bytes).details)
    .map((any) => any.type_url.split('.').at(-1));

// Notes each call that fails: method, code, types of the details. `gate`, if there is one, is passed before each call.
function noting(options, nextCall) {
  const here = scene.getStore();
  const method = options.method_definition.path.split('/').at(-1);
  return new grpc.InterceptingCall(nextCall(options), {
    start(metadata, listener, next) {
      const onReceiveStatus = (status, nextStatus) => {
        if (status.code !== grpc.status.OK) {
          here?.errors?.push([method, grpc.status[status.code], ...detailsOf(status)].join(' '));
        }
        nextStatus(status);
      };
      const go = () => next(metadata, { onReceiveStatus });
      here?.gate ? here.gate().then(go) : go();
    },
  });
}

export async function connect(address, more = {}) {
  const interceptors = [noting, makeGrpcRetryInterceptor(defaultGrpcRetryOptions({ maxAttempts: 20 }))];
  const connection = await Connection.connect({ address, interceptors });
  return { connection, client: new Client({ connection, ...more }) };
}

// ---- Bundles --------------------------------------------------------------------------------------------------------------

export const path = (name) => new URL(name, import.meta.url).pathname;

export const bundle = (more = {}) =>
  bundleWorkflowCode({ workflowsPath: path('./workflows.mjs'), logger, ...more });

// ---- Telling ----------------------------------------------------------------------------------------------------------------

let passed = 0;
const failures = [];
const begun = Date.now();

export async function report(name, promise) {
  const since = Date.now();
  try {
    await promise;
    passed++;
    console.log(`[       OK ] ${name} (${Date.now() - since} ms)`);
    return true;
  } catch (e) {
    failures.push(name);
    warnings.splice(0).forEach((line) => console.log(`  the SDK: ${line}`));
    console.log(`[  FAILED  ] ${name}: ${e.stack ?? e}${e.cause ? ' / ' + (e.cause.stack ?? e.cause) : ''}`);
    return false;
  }
}

export function finish() {
  console.log(`[==========] ${passed} passed, ${failures.length} failed in ${Math.round((Date.now() - begun) / 1000)} s`);
  failures.forEach((name) => console.log(`[  FAILED  ] ${name}`));
  process.exit(failures.length > 0 ? 1 : 0);
}

// Runs functions, so many at once.
export async function pool(functions, width) {
  const rest = [...functions];
  await Promise.all([...Array(width).keys()].map(async () => {
    while (rest.length > 0) await rest.shift()();
  }));
}

// ---- Waiting and comparing ------------------------------------------------------------------------------------------------

// Until the predicate holds. Events, not spans, end the wait: each try is a call to the server.
export async function until(what, ask) {
  for (let i = 0; i < 6000; i++) {
    if (await ask()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('never: ' + what);
}

export async function failure(promise, type) {
  try {
    await promise;
  } catch (e) {
    assert.ok(e instanceof type, `${type.name} expected, not ${e?.name}: ${e?.message} (${e?.cause?.message})`);
    return e;
  }
  throw new Error(type.name + ' expected');
}

// The gRPC code, as a name, with which the call fails.
export async function codeOf(promise) {
  try {
    await promise;
    return 'OK';
  } catch (e) {
    const code = e.code ?? e.cause?.code;
    return typeof code === 'number' ? grpc.status[code] : `${e.name}: ${e.message}`;
  }
}

// "TimerStarted" of an event.
export function name(event) {
  const text = typeof event.eventType === 'number' ? enums.EventType[event.eventType] : event.eventType;
  return text
    .replace('EVENT_TYPE_', '')
    .toLowerCase()
    .replace(/(^|_)([a-z])/g, (_, __, letter) => letter.toUpperCase());
}
export const names = (history) => history.events.map(name);
export const types = async (handle) => names(await handle.fetchHistory());

// Workflow tasks come one after the other, each scheduled, started and ended; ids are dense. Returns the other types.
export function checkHistory(history) {
  let state = null;
  const others = [];
  history.events.forEach((event, i) => {
    assert.equal(Number(event.eventId), i + 1, 'dense ids');
    const type = name(event);
    if (!type.startsWith('WorkflowTask')) {
      others.push(type);
    } else if (type === 'WorkflowTaskScheduled') {
      assert.equal(state, null, 'one workflow task at a time');
      state = 'scheduled';
    } else if (type === 'WorkflowTaskStarted') {
      assert.equal(state, 'scheduled');
      state = 'started';
    } else {
      assert.ok(state === 'started' || (state === 'scheduled' && type === 'WorkflowTaskTimedOut') || type === 'WorkflowTaskFailed');
      state = null;
    }
  });
  return others;
}
