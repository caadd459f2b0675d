// The twins of pairs.c: the same workflows for the SDK of Temporal.
import * as wf from '@temporalio/workflow';

const some = wf.proxyActivities({ startToCloseTimeout: '10s', retry: { initialInterval: 1 } });
const local = wf.proxyLocalActivities({ startToCloseTimeout: '10s', retry: { initialInterval: 1 } });

export async function pairActivity(x) {
  await some.greet(x);
  return await some.flaky(x);
}

export async function pairTimer(x) {
  await wf.sleep(20);
  await wf.sleep(30);
  return x;
}

export async function pairSignal() {
  const got = [];
  wf.setHandler(wf.defineSignal('go'), (n) => void got.push(n));
  await wf.condition(() => got.length > 0);
  await some.greet(got[0]);
  await wf.condition(() => got.length > 1);
  return got[1];
}

export async function pairChild(x) {
  return await wf.executeChild(pairTimer, { args: [x], workflowId: 'pair-child-of-it' });
}

export async function pairLocal(x) {
  await local.greet(x);
  await local.flaky(x);
  await wf.sleep(1);
  return await local.greet(x);
}

export async function pairPatch(x) {
  if (wf.patched('first')) await some.greet(x);
  await wf.sleep(1);
  if (wf.patched('second') && wf.patched('first')) await wf.sleep(2);
  return x;
}

export async function pairUpdate() {
  let sum = 0;
  wf.setHandler(
    wf.defineUpdate('add'),
    async (n) => {
      await some.greet(n);
      sum += n;
      return sum;
    },
    {
      validator: (n) => {
        if (n < 0) throw new Error('negative');
      },
    },
  );
  await wf.condition(() => sum >= 3);
  return sum;
}

export async function pairContinue(n) {
  await wf.sleep(1);
  if (n > 0) await wf.continueAsNew(n - 1);
  return n;
}

export async function pairForks(x) {
  await Promise.all([some.greet(x), some.greet(x), some.greet(x)]);
  try {
    await some.refuse(x);
  } catch (e) {
    if (!(e instanceof wf.ActivityFailure)) throw e;
  }
  return x;
}

export async function pairCancel(x) {
  await wf.sleep('1 hour');
  return x;
}
