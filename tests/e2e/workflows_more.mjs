// Workflows of the scenarios beyond the list.
import * as wf from '@temporalio/workflow';
import { HandlerUnfinishedPolicy } from '@temporalio/common';

const RETRY = { initialInterval: '10ms', maximumAttempts: 5 };
const plain = wf.proxyActivities({ startToCloseTimeout: '60s', retry: RETRY });
const once = wf.proxyActivities({ startToCloseTimeout: '60s', retry: { maximumAttempts: 1 } });

const put = wf.defineSignal('put');
const done = wf.defineSignal('done');
const get = wf.defineQuery('get');

// A failure as data: types, names and messages from the outside to the inside.
const chain = (e) => (e == null ? [] : [[e.name, e.type ?? e.timeoutType ?? null, e.message], ...chain(e.cause)]);
const caught = async (promise) => {
  try {
    return { result: await promise };
  } catch (e) {
    return { failure: chain(e) };
  }
};

// ---- Activities -----------------------------------------------------------------------------------------------------------

// Each kind of timeout.
export async function activityTimeouts() {
  const kinds = {
    startToClose: wf.proxyActivities({ startToCloseTimeout: 50, retry: { maximumAttempts: 1 } }).hangsSilently(),
    scheduleToClose: wf.proxyActivities({ scheduleToCloseTimeout: 50 }).hangsSilently(),
    scheduleToStart: wf
      .proxyActivities({ scheduleToStartTimeout: 50, startToCloseTimeout: '60s', taskQueue: 'nobody' })
      .greet('x'),
    heartbeat: wf.proxyActivities({ startToCloseTimeout: '60s', heartbeatTimeout: 200, retry: { maximumAttempts: 1 } }).hangsSilently(),
  };
  const out = {};
  for (const [kind, promise] of Object.entries(kinds)) {
    const { failure } = await caught(promise);
    out[kind] = failure.map(([name, type]) => [name, type]);
  }
  return out;
}

export async function heartbeatResumes() {
  const beating = wf.proxyActivities({ startToCloseTimeout: '60s', heartbeatTimeout: 300, retry: RETRY });
  return [await beating.hangs(), await plain.resumes()];
}

export async function timesOutAndRetries() {
  return await wf.proxyActivities({ startToCloseTimeout: 100, retry: RETRY }).hangsSilently();
}

export async function nonRetryableTypes() {
  const some = wf.proxyActivities({ startToCloseTimeout: '60s', retry: { ...RETRY, nonRetryableErrorTypes: ['Fatal'] } });
  const fatal = await caught(some.failWith({ message: 'no', type: 'Fatal' }));
  const soon = await some.failWith({ message: 'later', type: 'Soon', nextRetryDelay: '1ms' }, 3);
  return [fatal.failure, soon];
}

export async function activityFailures() {
  return [
    await caught(once.failCaused()),
    await caught(once.throwsOdd('string')),
    await caught(once.throwsOdd('plain')),
    await caught(once.throwsOdd('type')),
    await caught(once.noSuchActivity()),
  ].map(({ failure }) => failure.map(([name, type, message]) => [name, type, name === 'ActivityFailure' ? 0 : message.slice(0, 40)]));
}

export async function activityFacts() {
  const options = { startToCloseTimeout: '10s', scheduleToCloseTimeout: '20s', heartbeatTimeout: '5s', activityId: 'mine', summary: 'a summary' };
  const remote = await wf.proxyActivities({ ...options, priority: { priorityKey: 2 } }).facts(1, 'two', null, { a: [true] });
  const local = await wf.proxyLocalActivities({ startToCloseTimeout: '10s' }).facts();
  return [remote, local];
}

export async function values() {
  const nothing = await plain.nothing();
  const bytes = await plain.bytes(5);
  const same = await plain.echo({ text: 'äöü ∀ 𝒳 \u0000', list: [1.5, -0.25, 1e21], nested: { deep: [[[{}]]] }, no: null });
  return [nothing === undefined, bytes instanceof Uint8Array && bytes.length, same, await plain.isBytes(bytes)];
}

// Activities canceled in each way; the scenario tells when they have begun.
export async function cancelTypes(type, name, returns) {
  let isDone = false;
  wf.setHandler(done, () => void (isDone = true));
  const scope = new wf.CancellationScope();
  const some = wf.proxyActivities({ startToCloseTimeout: '60s', heartbeatTimeout: '60s', cancellationType: type, retry: { maximumAttempts: 1 } });
  const running = scope.run(() => some[name](returns));
  running.catch(() => {});
  await wf.condition(() => isDone);
  scope.cancel();
  return await caught(running);
}

export async function cancelBeforeStart() {
  const scope = new wf.CancellationScope();
  const running = scope.run(() => wf.proxyActivities({ scheduleToCloseTimeout: '60s', taskQueue: 'nobody', cancellationType: 'WAIT_CANCELLATION_COMPLETED' }).greet('x'));
  running.catch(() => {});
  await wf.sleep(1);
  scope.cancel();
  return (await caught(running)).failure.map(([name]) => name);
}

export async function tellsReasons() {
  const some = wf.proxyActivities({ startToCloseTimeout: '60s', heartbeatTimeout: '60s', retry: RETRY });
  return await some.reasons();
}

export async function slowRetry() {
  return await wf.proxyActivities({ startToCloseTimeout: '60s', retry: { initialInterval: '1 hour' } }).failWith({ message: 'again' });
}

export async function waitsOutside() {
  const some = wf.proxyActivities({ startToCloseTimeout: '60s', heartbeatTimeout: '30s', retry: { maximumAttempts: 1 }, cancellationType: 'WAIT_CANCELLATION_COMPLETED' });
  const scope = new wf.CancellationScope();
  wf.setHandler(put, () => void scope.cancel());
  const running = scope.run(() => some.complete(wf.workflowInfo().workflowId));
  return await caught(running);
}

// ---- Local activities -------------------------------------------------------------------------------------------------------

export async function localRetries() {
  const quick = wf.proxyLocalActivities({ startToCloseTimeout: '10s', retry: RETRY });
  const slow = wf.proxyLocalActivities({ startToCloseTimeout: '10s', retry: { initialInterval: '50ms' }, localRetryThreshold: '20ms' });
  return [await quick.failTwice(), await slow.failTwice(), await caught(quick.failForGood('no'))].map((x) => x.failure ?? x);
}

export async function localMany(n) {
  const local = wf.proxyLocalActivities({ startToCloseTimeout: '10s' });
  const all = await Promise.all([...Array(n).keys()].map((i) => local.add(i, 1)));
  return all.reduce((a, b) => a + b, 0);
}

export async function localTimeout() {
  const local = wf.proxyLocalActivities({ startToCloseTimeout: 50, retry: { maximumAttempts: 1 } });
  return (await caught(local.slow(60_000))).failure.map(([name, type]) => [name, type]);
}

export async function localCancel() {
  const local = wf.proxyLocalActivities({ startToCloseTimeout: '60s', cancellationType: 'WAIT_CANCELLATION_COMPLETED' });
  const scope = new wf.CancellationScope();
  const running = scope.run(() => local.slow(60_000));
  running.catch(() => {});
  await wf.sleep(1);
  scope.cancel();
  return (await caught(running)).failure.map(([name]) => name);
}

// ---- Children ---------------------------------------------------------------------------------------------------------------

export async function waits() {
  let isDone = false;
  const got = [];
  wf.setHandler(get, () => got);
  wf.setHandler(done, () => void (isDone = true));
  wf.setHandler(put, (x) => void got.push(x));
  try {
    await wf.condition(() => isDone);
  } catch (e) {
    if (wf.isCancellation(e) && got.includes('slow')) await wf.CancellationScope.nonCancellable(() => wf.condition(() => isDone));
    throw e;
  }
  return got;
}

export async function childKinds(id) {
  const other = await wf.startChild(waits, { workflowId: id + '/a', memo: { of: 'child' }, searchAttributes: { CustomKeywordField: ['kid'] } });
  const same = await caught(wf.startChild(waits, { workflowId: id + '/a' }));
  await other.signal(put, 'from the parent');
  await other.signal(done);
  const result = await other.result();
  const timeout = await caught(wf.executeChild(waits, { workflowId: id + '/b', workflowRunTimeout: '50ms' }));
  const unknown = await caught(wf.executeChild('again', { workflowId: id + '/c', args: [2] }));
  const retried = await caught(wf.executeChild('failsAtFirst', { workflowId: id + '/d', retry: RETRY }));
  const reuse = await caught(wf.startChild(waits, { workflowId: id + '/a', workflowIdReusePolicy: 'REJECT_DUPLICATE' }));
  return { same: same.failure[0][0], result, timeout: timeout.failure.map(([n, t]) => [n, t]), unknown, retried, reuse: reuse.failure[0][0] };
}

export async function childTerminated(id) {
  const child = await wf.startChild(waits, { workflowId: id + '/child' });
  return (await caught(child.result())).failure.map(([n]) => n);
}

export async function childCancel(id, type) {
  const scope = new wf.CancellationScope();
  const child = await scope.run(() => wf.startChild(waits, { workflowId: id + '/child', cancellationType: type, parentClosePolicy: 'ABANDON' }));
  await child.signal(put, 'slow');
  const result = child.result();
  result.catch(() => {});
  let isDone = false;
  wf.setHandler(done, () => void (isDone = true));
  await wf.condition(() => isDone);
  scope.cancel();
  return (await caught(result)).failure.map(([n]) => n);
}

export async function childInfo(id) {
  if (wf.workflowInfo().parent) {
    const { parent, root, memo, taskQueue, attempt } = wf.workflowInfo();
    return { parent: parent.workflowId, root: root.workflowId, memo: memo ?? {}, taskQueue, attempt };
  }
  return await wf.executeChild('childInfo', { workflowId: id + '/child', args: [id] });
}

export async function manyChildren(n) {
  const all = await Promise.all([...Array(n).keys()].map((i) => wf.executeChild('hello', { args: [i], workflowId: `${wf.workflowInfo().workflowId}/${i}` })));
  return all.length;
}

// ---- Cancellation scopes ------------------------------------------------------------------------------------------------------

export async function scopes() {
  const out = [];
  out.push(await caught(wf.CancellationScope.withTimeout(10, () => wf.sleep('1 hour'))));
  out.push(await caught(wf.CancellationScope.withTimeout('1 hour', () => wf.sleep(1))));
  const outer = new wf.CancellationScope();
  out.push(
    await caught(
      outer.run(async () => {
        const inner = wf.CancellationScope.nonCancellable(() => wf.sleep(20));
        outer.cancel();
        await inner;
        await wf.sleep(1);
      }),
    ),
  );
  const cancelled = new wf.CancellationScope();
  cancelled.cancel();
  out.push(await caught(cancelled.run(() => plain.greet('never'))));
  out.push(await caught(wf.CancellationScope.cancellable(async () => Promise.all([wf.sleep(1), plain.greet('x')]))));
  return out.map((o) => (o.failure ? o.failure[0][0] : (o.result ?? null)));
}

// Canceled twice by the caller; cleans up by an activity and a child.
export async function cleansUp() {
  try {
    await wf.CancellationScope.cancellable(() => wf.condition(() => false));
  } catch (e) {
    const [a, b] = await wf.CancellationScope.nonCancellable(() => Promise.all([plain.greet('clean'), wf.executeChild('hello', { args: ['up'] })]));
    return [wf.isCancellation(e), a, b];
  }
}

// ---- Signals, queries, updates ----------------------------------------------------------------------------------------------

export async function defaults() {
  let isDone = false;
  const got = [];
  wf.setDefaultSignalHandler((name, ...args) => void got.push([name, ...args]));
  wf.setDefaultQueryHandler((name, ...args) => ['query', name, ...args]);
  wf.setDefaultUpdateHandler(async (name, ...args) => ['update', name, ...args]);
  wf.setHandler(done, () => void (isDone = true));
  await wf.condition(() => isDone);
  return got;
}

// Signals that come before there is a handler are kept.
export async function lateHandler() {
  const got = [];
  await wf.sleep(50);
  await plain.greet('x');
  wf.setHandler(put, async (x) => {
    await wf.sleep(1);
    got.push(x);
  });
  await wf.condition(() => got.length >= 3);
  return got.sort();
}

export async function badQuery() {
  wf.setHandler(get, (what) => {
    if (what === 'throw') throw new wf.ApplicationFailure('from the query', 'QueryProblem');
    return { what };
  });
  wf.setHandler(done, () => {});
  await wf.condition(() => false);
}

export async function handlers() {
  const names = [];
  let isDone = false;
  wf.setHandler(wf.defineUpdate('fail'), async () => {
    await wf.sleep(1);
    throw wf.ApplicationFailure.create({ message: 'update failed', type: 'UpdateProblem', details: [1] });
  });
  wf.setHandler(wf.defineUpdate('now'), (x) => x * 2);
  wf.setHandler(wf.defineUpdate('id'), () => [wf.currentUpdateInfo().name, wf.currentUpdateInfo().id]);
  wf.setHandler(
    wf.defineUpdate('activity'),
    async (x) => {
      names.push(x);
      return await plain.greet(x);
    },
    { description: 'greets' },
  );
  wf.setHandler(wf.defineUpdate('never'), () => wf.condition(() => false), { unfinishedPolicy: HandlerUnfinishedPolicy.ABANDON });
  wf.setHandler(done, () => void (isDone = true));
  wf.setHandler(get, () => names);
  await wf.condition(() => isDone);
  return names.sort();
}

export async function externals(id) {
  return [
    await caught(wf.getExternalWorkflowHandle(id + '/nobody').signal('put', 1)),
    await caught(wf.getExternalWorkflowHandle(id + '/nobody').cancel()),
  ].map((o) => o.failure?.[0]?.slice(0, 2) ?? o);
}

export async function currentDetails() {
  wf.setCurrentDetails('in the middle');
  let isDone = false;
  wf.setHandler(done, () => void (isDone = true));
  await wf.sleep(1, { summary: 'a short sleep' });
  await wf.condition(() => isDone);
}

// ---- Runs -------------------------------------------------------------------------------------------------------------------

export async function carries(n) {
  const { memo, searchAttributes, continuedFromExecutionRunId, firstExecutionRunId, runId } = wf.workflowInfo();
  if (n > 0) await wf.continueAsNew(n - 1);
  return { memo, searchAttributes, isLinked: continuedFromExecutionRunId !== undefined && firstExecutionRunId !== runId };
}

export async function continuesAsOther(queue) {
  await wf.makeContinueAsNewFunc({
    workflowType: 'carried',
    memo: { note: 'other' },
    searchAttributes: { CustomIntField: [7] },
    workflowRunTimeout: '10 minutes',
    workflowTaskTimeout: '9s',
  })('passed on');
}

export async function carried(x) {
  const { memo, searchAttributes, runTimeoutMs, taskTimeoutMs } = wf.workflowInfo();
  return [x, memo, searchAttributes, runTimeoutMs, taskTimeoutMs];
}

export async function lastResults() {
  const { lastResult, lastFailure, cronSchedule } = wf.workflowInfo();
  if ((lastResult ?? 0) >= 2) await wf.condition(() => false);
  return (lastResult ?? 0) + 1;
}

export async function retriesWith(failures) {
  const { attempt, lastFailure } = wf.workflowInfo();
  if (attempt <= failures) throw wf.ApplicationFailure.create({ message: 'attempt ' + attempt, type: 'Attempt', nonRetryable: attempt === 4 });
  return [attempt, lastFailure?.message ?? null];
}

export async function fullInfo() {
  const i = wf.workflowInfo();
  return {
    type: i.workflowType,
    id: i.workflowId,
    namespace: i.namespace,
    queue: i.taskQueue,
    attempt: i.attempt,
    memo: i.memo ?? null,
    attributes: i.searchAttributes,
    first: i.firstExecutionRunId === i.runId,
    continued: i.continuedFromExecutionRunId ?? null,
    parent: i.parent ?? null,
    length: i.historyLength,
    size: i.historySize > 0,
    suggested: i.continueAsNewSuggested,
    runTimeout: i.runTimeoutMs ?? null,
    executionTimeout: i.executionTimeoutMs ?? null,
    taskTimeout: i.taskTimeoutMs,
    cron: i.cronSchedule ?? null,
    retry: i.retryPolicy?.maximumAttempts ?? null,
    start: i.startTime instanceof Date && i.runStartTime instanceof Date,
    priority: i.priority?.priorityKey ?? null,
  };
}

const KEYS = {
  CustomKeywordField: ['KEYWORD', 'a keyword'],
  CustomTextField: ['TEXT', 'some words of text'],
  CustomIntField: ['INT', 42],
  CustomDoubleField: ['DOUBLE', 2.5],
  CustomBoolField: ['BOOL', true],
  CustomDatetimeField: ['DATETIME', new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 678))],
  CustomKeywordListField: ['KEYWORD_LIST', ['x', 'y']],
};

export async function attributeTypes() {
  let isDone = false;
  wf.setHandler(done, () => void (isDone = true));
  const before = wf.workflowInfo().typedSearchAttributes.getAll().length;
  wf.upsertSearchAttributes(Object.entries(KEYS).map(([name, [type, value]]) => ({ key: { name, type }, value })));
  await wf.sleep(1);
  const seen = Object.entries(KEYS).map(([name, [type]]) => wf.workflowInfo().typedSearchAttributes.get({ name, type }));
  await wf.condition(() => isDone);
  wf.upsertSearchAttributes([{ key: { name: 'CustomIntField', type: 'INT' }, value: null }]);
  await wf.sleep(1);
  return [before, seen, wf.workflowInfo().typedSearchAttributes.get({ name: 'CustomIntField', type: 'INT' }) ?? null];
}

// What a client of old, or a person at a command line, has set: without types.
export async function untypedAttributes() {
  let isDone = false;
  wf.setHandler(done, () => void (isDone = true));
  const seen = () => wf.workflowInfo().typedSearchAttributes.getAll().map(({ key, value }) => [key.name, key.type, value]).sort();
  const before = seen();
  wf.upsertSearchAttributes({ CustomDoubleField: [1.5] });
  await wf.condition(() => isDone);
  return [before, seen()];
}

export async function continuesUntyped(isFirst) {
  if (isFirst) await wf.makeContinueAsNewFunc({ searchAttributes: { CustomKeywordField: ['next'] } })(false);
  return wf.workflowInfo().typedSearchAttributes.get({ name: 'CustomKeywordField', type: 'KEYWORD' }) ?? null;
}

export async function memoChanges() {
  wf.upsertMemo({ b: 2, a: null });
  await wf.sleep(1);
  wf.upsertMemo({ c: { deep: [1] } });
  return wf.workflowInfo().memo;
}

export async function patches() {
  const out = [];
  for (const id of ['a', 'b', 'a']) out.push(wf.patched(id));
  wf.deprecatePatch('old');
  await wf.sleep(1);
  if (wf.patched('later')) out.push(await plain.greet('patched'));
  return out;
}

export async function deterministic() {
  const out = [];
  for (let i = 0; i < 5; i++) {
    out.push(wf.uuid4(), Math.random(), Date.now(), new Date().getTime());
    await (i % 2 ? wf.sleep(1) : plain.greet('x'));
  }
  return out.length;
}

// Fails its task by throwing what is no failure of the workflow, until it is told to be good.
export async function stuck() {
  wf.setHandler(get, () => 'alive');
  let isDone = false;
  wf.setHandler(done, () => void (isDone = true));
  await wf.condition(() => isDone);
  throw new Error('a bug');
}

export async function eventful(timers) {
  for (let i = 0; i < timers / 100; i++) {
    await Promise.all([...Array(100).keys()].map(() => wf.sleep(1)));
  }
  return [wf.workflowInfo().historyLength, wf.workflowInfo().continueAsNewSuggested];
}

export async function untilSuggested(count = 0) {
  while (!wf.workflowInfo().continueAsNewSuggested) {
    await Promise.all([...Array(200).keys()].map(() => wf.sleep(1)));
  }
  if (count < 1) await wf.continueAsNew(count + 1);
  return count;
}

export async function echoes(x) {
  return x;
}

export async function returnsBig(len) {
  return 'x'.repeat(len);
}

export async function sendsBig(len) {
  return (await plain.echo('x'.repeat(len))).length;
}

export async function nexus() {
  const client = wf.createNexusServiceClient({ endpoint: 'nowhere', service: { name: 'service', operations: { op: { name: 'op' } } } });
  return await client.executeOperation('op', 1);
}

// ---- Interceptors -------------------------------------------------------------------------------------------------------------

export async function interceptedMain() {
  const got = [];
  wf.setHandler(put, (...args) => void got.push(args));
  wf.setHandler(get, () => got.length);
  wf.setHandler(wf.defineUpdate('add'), (x) => x + 1);
  await wf.sleep('1 hour'); // the interceptor makes it short
  const greeting = await plain.headerOf('x');
  await wf.condition(() => got.length > 0);
  return [greeting, got[0]];
}

const { probe } = wf.proxySinks();

export async function sinks() {
  probe.tell('one');
  await wf.sleep(1);
  probe.tell('two');
  wf.log.info('a line');
  return 'told';
}

export async function elsewhere(queue) {
  return await wf.proxyActivities({ taskQueue: queue, startToCloseTimeout: '60s' }).greet('there');
}

// ---- Load -----------------------------------------------------------------------------------------------------------------

export async function busy(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) {
    sum += await plain.add(i, 1);
  }
  return sum;
}

export async function timersRace(n) {
  const winner = await Promise.race([...Array(n).keys()].map(async (i) => (await wf.sleep(5 + i), i)));
  return winner;
}

// ---- Mixed ------------------------------------------------------------------------------------------------------------------

export async function callsUnknown() {
  return await once.noSuchActivity();
}

export async function manyAtOnce(n) {
  const all = (make) => Promise.all([...Array(n).keys()].map(make));
  const [greetings, naps, child] = await Promise.all([
    all((i) => plain.greet(`n${i}`)),
    all(() => wf.sleep(1).then(() => true)),
    wf.executeChild('hello', { args: ['child'] }),
  ]);
  return [new Set(greetings).size, naps.length, child];
}

export async function childSignals() {
  const child = await wf.startChild('waits', { workflowId: wf.workflowInfo().workflowId + '/child' });
  await child.signal('put', 'a');
  await wf.getExternalWorkflowHandle(child.workflowId).signal('put', 'b');
  await child.signal('done');
  return { result: await child.result(), same: child.firstExecutionRunId.length > 0 };
}

export async function throwsDetails() {
  throw wf.ApplicationFailure.create({
    message: 'wrong', type: 'Wrong', nonRetryable: true, details: [{ at: [1, 'two'] }, null], category: 'BENIGN', cause: new Error('the reason'),
  });
}

// Time stands still in a workflow task and goes on between them; random numbers and ids differ.
export async function clockInWorkflows() {
  const [a, b] = [Date.now(), Date.now()];
  await wf.sleep(20);
  const c = Date.now();
  return [a === b, c - b >= 20, wf.uuid4() !== wf.uuid4() && Math.random() !== Math.random()];
}

export async function nestedScopes() {
  const out = [];
  const told = (what, type) => (e) => void out.push(e instanceof type || wf.isCancellation(e) ? what : e.name);
  await wf.CancellationScope.withTimeout(20, () => wf.sleep('1 hour')).catch(told('timeout', wf.CancelledFailure));
  const outer = new wf.CancellationScope();
  const inner = outer.run(() => wf.CancellationScope.cancellable(() => wf.sleep('1 hour'))).catch(told('canceled', wf.CancelledFailure));
  outer.cancel();
  await inner;
  const kept = new wf.CancellationScope();
  const rest = kept.run(() => wf.CancellationScope.nonCancellable(() => wf.sleep(20).then(() => out.push('kept'))));
  kept.cancel();
  await rest;
  return out;
}
