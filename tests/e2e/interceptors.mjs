// Interceptors inside of workflows, for those whose type begins with "intercepted": they add to what they pass on.
import { workflowInfo } from '@temporalio/workflow';

export function interceptors() {
  if (!workflowInfo().workflowType.startsWith('intercepted')) return {};
  let headers = {};
  return {
    inbound: [
      {
        async execute(input, next) {
          headers = input.headers;
          return ['execute', ...(await next(input))];
        },
        async handleSignal(input, next) {
          await next({ ...input, args: [...input.args, 'intercepted'] });
        },
        async handleQuery(input, next) {
          return ['query', await next(input)];
        },
        async handleUpdate(input, next) {
          return ['update', await next(input)];
        },
      },
    ],
    outbound: [
      {
        async scheduleActivity(input, next) {
          return await next({ ...input, headers: { ...input.headers, ...headers }, args: [...input.args, 'out'] });
        },
        async startTimer(input, next) {
          return await next({ ...input, durationMs: 1 });
        },
        async continueAsNew(input, next) {
          return await next({ ...input, headers: { ...input.headers, ...headers } });
        },
        async startChildWorkflowExecution(input, next) {
          return await next({ ...input, headers: { ...input.headers, ...headers } });
        },
      },
    ],
  };
}
