// Activities of the suite. What they tell the scenarios, by the id of the workflow, is in `seen`.
import { Context, CompleteAsyncError, ApplicationFailure, CancelledFailure, activityInfo, log, sleep } from '@temporalio/activity';

export const seen = {
  tokens: new Map(), // of activities that are completed from outside
  ids: new Map(),
  attempts: new Map(), // how often countAttempts was called
  begun: new Map(), // the number of attempts that have begun, by kind and id
  notes: new Map(), // whatever an activity was told
};

const count = (map, key) => {
  map.set(key, (map.get(key) ?? 0) + 1);
  return map.get(key);
};
const workflowId = () => activityInfo().workflowExecution.workflowId;
const begin = () => count(seen.begun, workflowId());

export const activities = {
  greet: async (who) => `hello ${who}`,
  echo: async (x) => x,
  add: async (a, b) => a + b,
  slow: async (ms) => {
    await sleep(ms);
    return 'slow';
  },
  failTwice: async () => {
    const { attempt } = activityInfo();
    if (attempt < 3) throw new Error('not yet');
    return 'attempt ' + attempt;
  },
  failForGood: async (why) => {
    throw ApplicationFailure.create({ message: why, type: 'CardError', nonRetryable: true, details: [{ code: 7 }] });
  },
  failWith: async (options, until_ = Infinity) => {
    const { attempt } = activityInfo();
    if (attempt >= until_) return attempt;
    throw ApplicationFailure.create(options);
  },
  failCaused: async () => {
    const inner = ApplicationFailure.create({ message: 'inner', type: 'Inner', details: ['a', 2] });
    throw ApplicationFailure.create({ message: 'outer', type: 'Outer', nonRetryable: true, cause: inner });
  },
  beat: async () => {
    begin();
    for (;;) {
      Context.current().heartbeat('alive');
      await sleep(50); // throws when it is canceled
    }
  },
  // Does not hear of a cancel before the last step, and then says so, or returns.
  stubborn: async (returns) => {
    begin();
    const context = Context.current();
    while (!context.cancellationSignal.aborted) {
      context.heartbeat();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    if (returns) return 'done nevertheless';
    throw new CancelledFailure('by itself', ['details']);
  },
  // Tells why it was canceled.
  reasons: async () => {
    begin();
    const context = Context.current();
    try {
      for (;;) {
        context.heartbeat(1);
        await sleep(20);
      }
    } catch (e) {
      if (context.cancellationDetails?.cancelRequested) throw e;
      return { ...context.cancellationDetails };
    }
  },
  complete: async (id) => {
    seen.ids.set(id, activityInfo().activityId);
    seen.tokens.set(id, activityInfo().taskToken);
    throw new CompleteAsyncError();
  },
  countAttempts: async (id) => count(seen.attempts, id),
  // Heartbeats, and then says nothing any more; a later attempt returns what the earlier one told.
  hangs: async () => {
    const { heartbeatDetails, attempt } = activityInfo();
    if (attempt > 1) return [attempt, heartbeatDetails];
    Context.current().heartbeat({ at: 3 });
    await new Promise((resolve) => Context.current().cancellationSignal.addEventListener('abort', resolve, { once: true }));
    throw new CancelledFailure('too late');
  },
  hangsSilently: async () => {
    if (activityInfo().attempt > 1) return 'attempt ' + activityInfo().attempt;
    await Context.current().cancelled.catch(() => {});
    return 'late';
  },
  // Fails after a heartbeat; the next attempt sees it.
  resumes: async () => {
    const { heartbeatDetails, attempt } = activityInfo();
    if (attempt > 1) return [attempt, heartbeatDetails];
    Context.current().heartbeat({ at: 7 });
    throw new Error('after a heartbeat');
  },
  facts: async (...args) => {
    const i = activityInfo();
    return {
      args,
      type: i.activityType,
      queue: i.taskQueue,
      workflowType: i.workflowType,
      workflowId: i.workflowExecution.workflowId,
      namespace: i.workflowNamespace,
      attempt: i.attempt,
      local: i.isLocal,
      startToClose: i.startToCloseTimeoutMs,
      scheduleToClose: i.scheduleToCloseTimeoutMs ?? null,
      heartbeat: i.heartbeatTimeoutMs ?? null,
      times: [typeof i.scheduledTimestampMs, typeof i.currentAttemptScheduledTimestampMs],
      priority: i.priority?.priorityKey ?? null,
    };
  },
  note: async (key, value) => {
    seen.notes.set(key, [...(seen.notes.get(key) ?? []), value]);
    log.debug('noted');
  },
  isBytes: async (x) => x instanceof Uint8Array,
  nothing: async () => {},
  throwsOdd: async (what) => {
    if (what === 'string') throw 'a string';
    if (what === 'plain') throw { a: 1 };
    const error = new TypeError('a type error');
    error.name = 'TypeError';
    throw error;
  },
  text: async (len) => 'x'.repeat(len),
  // Fails after a heartbeat with that many bytes; the next attempt sees all of them.
  keepsLarge: async (len) => {
    const { heartbeatDetails, attempt } = activityInfo();
    if (attempt > 1) return [attempt, heartbeatDetails.length];
    Context.current().heartbeat('x'.repeat(len));
    throw new Error('after a heartbeat');
  },
  bytes: async (len) => new Uint8Array(len).fill(7),
};
