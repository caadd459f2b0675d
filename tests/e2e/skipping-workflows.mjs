import { proxyActivities, sleep, condition, defineSignal, setHandler } from '@temporalio/workflow';

const { note } = proxyActivities({ startToCloseTimeout: '10 s', retry: { initialInterval: '1 hour', backoffCoefficient: 1 } });
export const go = defineSignal('go');

// Sleeps a month, does something that fails twice and is tried again an hour later, then sleeps again.
export async function subscription() {
  const began = Date.now();
  await sleep('30 days');
  const attempt = await note('renewed');
  await sleep('30 days');
  return { attempt, days: Math.floor((Date.now() - began) / 86_400_000) };
}

// Waits for a signal, a week at most.
export async function approval() {
  let isHere = false;
  setHandler(go, () => { isHere = true; });
  return (await condition(() => isHere, '7 days')) ? 'approved' : 'forgotten';
}
