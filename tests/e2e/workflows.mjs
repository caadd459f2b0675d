// Workflows of the end-to-end suite. They run in the SDK's sandbox: all that they use comes from the workflow package.
import * as wf from '@temporalio/workflow';

export * from './workflows_more.mjs';

const { greet, failTwice, failForGood, beat, complete, slow, echo, add } = wf.proxyActivities({
  startToCloseTimeout: '60s',
  retry: { initialInterval: '10ms', maximumAttempts: 5 },
});
const beating = wf.proxyActivities({ startToCloseTimeout: '60s', heartbeatTimeout: '60s', cancellationType: 'WAIT_CANCELLATION_COMPLETED' });
const local = wf.proxyLocalActivities({ startToCloseTimeout: '60s' });

export async function hello(name) {
  return await greet(name);
}

export async function retries() {
  return await failTwice(wf.workflowInfo().workflowId);
}

export async function failureChain() {
  await failForGood('no such card');
}

export async function localActivity(name) {
  const one = await local.greet(name);
  const two = await local.greet(one);
  return two;
}

export async function longLocalActivity(ms) {
  return await local.slow(ms);
}

export async function timer(ms) {
  await wf.sleep(ms);
  return 'slept';
}

export async function timerCancel() {
  const scope = new wf.CancellationScope();
  const sleeping = scope.run(() => wf.sleep('1 hour'));
  await wf.sleep(10);
  scope.cancel();
  try {
    await sleeping;
    return 'slept';
  } catch (e) {
    return wf.isCancellation(e) ? 'canceled' : 'wrong';
  }
}

export const put = wf.defineSignal('put');
export const done = wf.defineSignal('done');
export const get = wf.defineQuery('get');

export async function signals(count) {
  const got = [];
  wf.setHandler(put, (x) => void got.push(x));
  wf.setHandler(get, () => got);
  await wf.condition(() => got.length >= count);
  return got;
}

export async function queried() {
  let state = 'begun';
  let isDone = false;
  wf.setHandler(get, () => state);
  wf.setHandler(done, () => void (isDone = true));
  await wf.sleep(1);
  state = 'waiting';
  await wf.condition(() => isDone);
  state = 'ended';
  return state;
}

export const addUpdate = wf.defineUpdate('add');
export const waitUpdate = wf.defineUpdate('wait');
export const slowUpdate = wf.defineUpdate('slow');

export async function updates() {
  let sum = 0;
  let isDone = false;
  wf.setHandler(
    addUpdate,
    async (n) => {
      sum += await add(n, 0);
      return sum;
    },
    {
      validator: (n) => {
        if (n < 0) throw new Error('negative');
      },
    },
  );
  wf.setHandler(slowUpdate, async (ms) => {
    await wf.sleep(ms);
    return 'slow ' + ms;
  });
  wf.setHandler(done, () => void (isDone = true));
  await wf.condition(() => isDone);
  await wf.condition(wf.allHandlersFinished);
  return sum;
}

export async function cancelable() {
  try {
    await wf.sleep('1 hour');
  } catch (e) {
    if (!wf.isCancellation(e)) throw e;
    await wf.CancellationScope.nonCancellable(() => greet('cleanup'));
    throw e;
  }
}

export async function cancelsActivity() {
  let isDone = false;
  wf.setHandler(done, () => void (isDone = true));
  const scope = new wf.CancellationScope();
  const running = scope.run(() => beating.beat());
  await wf.condition(() => isDone);
  scope.cancel();
  try {
    await running;
    return 'not canceled';
  } catch (e) {
    return wf.isCancellation(e) ? 'canceled' : String(e);
  }
}

export async function forever() {
  await wf.condition(() => false);
}

export async function parent(name) {
  return await wf.executeChild(hello, { args: [name] });
}

export async function parentOfFailing() {
  try {
    await wf.executeChild(failureChain);
    return 'no failure';
  } catch (e) {
    return [e.name, e.cause.name, e.cause.cause.name, e.cause.cause.message];
  }
}

export async function parentWithPolicy(policy) {
  const child = await wf.startChild(forever, { parentClosePolicy: policy, workflowId: wf.workflowInfo().workflowId + '/child' });
  return child.firstExecutionRunId;
}

export async function again(n) {
  if (n > 0) await wf.continueAsNew(n - 1);
  return 'last';
}

const KEYWORD = { name: 'CustomKeywordField', type: 'KEYWORD' };

export async function patched() {
  const way = wf.patched('p1') ? 'new' : 'old';
  wf.upsertMemo({ note: way });
  wf.upsertSearchAttributes([{ key: KEYWORD, value: 'blue' }]);
  await wf.sleep(1);
  return [way, wf.workflowInfo().memo.note, wf.workflowInfo().typedSearchAttributes.get(KEYWORD)];
}

// The first attempt of its first workflow task fails; what counts attempts is outside of the sandbox.
export async function recovers() {
  const n = await local.countAttempts(wf.workflowInfo().workflowId);
  if (n < 2 && !wf.workflowInfo().unsafe.isReplaying) throw new TypeError('a bug of the workflow');
  return 'recovered';
}

export async function signalsAnother(id) {
  await wf.getExternalWorkflowHandle(id).signal('put', wf.workflowInfo().workflowId);
  return 'sent';
}

export async function cancelsAnother(id) {
  await wf.getExternalWorkflowHandle(id).cancel();
  return 'asked';
}

export async function asynchronous() {
  return await complete(wf.workflowInfo().workflowId);
}

export async function parallel(n) {
  const all = await Promise.all([...Array(n).keys()].map((i) => add(i, i)));
  return all.reduce((a, b) => a + b, 0);
}

export async function mixed() {
  const [a, b, c] = await Promise.all([greet('a'), wf.sleep(20).then(() => 'b'), wf.executeChild(hello, { args: ['c'] })]);
  return [a, b, c];
}

export async function conditionTimeout() {
  const first = await wf.condition(() => false, 20);
  const second = await wf.condition(() => true, '1 hour');
  return [first, second];
}

export async function random() {
  const one = [wf.uuid4(), Math.random(), Date.now()];
  await wf.sleep(1);
  await wf.sleep(1);
  return one;
}

export async function big(len) {
  const text = await echo('x'.repeat(len));
  return text.length;
}

export async function many(n) {
  for (let i = 0; i < n; i++) {
    await wf.sleep(1);
  }
  return wf.workflowInfo().historyLength;
}

export async function info() {
  const i = wf.workflowInfo();
  return { type: i.workflowType, queue: i.taskQueue, attempt: i.attempt, memo: i.memo ?? null };
}

export async function failsAtFirst() {
  const { attempt } = wf.workflowInfo();
  if (attempt < 3) throw wf.ApplicationFailure.create({ message: 'attempt ' + attempt });
  return attempt;
}

export async function outlives() {
  let isDone = false;
  let state = 'main goes on';
  const got = [];
  wf.setHandler(get, () => state);
  wf.setHandler(put, (x) => void got.push(x));
  wf.setHandler(done, () => void (isDone = true));
  wf.setHandler(waitUpdate, async () => {
    await wf.condition(() => got.length > 0);
    return got[0];
  });
  await wf.condition(() => isDone);
  state = 'main is done';
  await wf.condition(wf.allHandlersFinished);
  return 'main is last';
}

export async function throwsType() {
  throw wf.ApplicationFailure.create({ message: 'typed', type: 'Mine', nonRetryable: true, details: [{ a: 1 }, 'two'] });
}

export async function steps(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) {
    sum += await add(i, 1);
    await wf.sleep(5);
  }
  return sum;
}
