// `./dev oracle cli`: Temporal's own command line tool against a server, and what it printed on two servers compared.
//     node cli.mjs <server program> <scratch folder> play <tool> <facts to write>
//     node cli.mjs - <scratch folder> compare <facts of Temporal's server> <facts of Holdfast> <DIFFERENT_CLI>
// Ids, times, sizes and rates are masked. A line "STEP: reason" of DIFFERENT_CLI says that the outputs of a step differ, and why.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NativeConnection, Worker } from '@temporalio/worker';
import { activities } from './activities.mjs';
import { Server, bundle, connect, install, registerAttributes, until } from './rig.mjs';

const [program, scratch, mode, ...rest] = process.argv.slice(2);

// ---- What is not compared -------------------------------------------------------------------------------------------------

const MASKS = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'ID'],
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( \+0000 UTC|Z)?/g, 'TIME'],
  [/\b(\d+|a few|an?) (milli|micro|nano)?(second|minute|hour|day)s? ago\b|\bnow\b|\bless than a second ago\b/g, 'AGO'],
  [/\b\d+(\.\d+)?(ms|µs|us|ns)\b|\b\d+\.\d+s\b/g, 'SPAN'],
  [/"(historySizeBytes|stateTransitionCount|durationMillis|taskId|version|sizeBytes|historyLength)": "?\d+"?/g, '"$1": N'],
  [/"(lastAccessTime|latestTime|tasksAddRate|tasksDispatchRate|approximateBacklogAge)": [^,\n]*/g, '"$1": N'],
  [/^(\s*(HistorySize|StateTransitionCount|RunTime)) .*$/gm, '$1 N'],
  [/^(\s*UNVERSIONED \S+ \d+ \S+ ).*$/gm, '$1RATES'],
  [/127\.0\.0\.1:\d+/g, 'ADDRESS'],
  [/\b\d+@[-\w.]+/g, 'WORKER'],
  [/[ \t]+/g, ' '],
  [/ +$/gm, ''],
];
const masked = (text) => MASKS.reduce((t, [pattern, by]) => t.replace(pattern, by), text).trim().replace(/^ "taskId": N,\n/gm, '');

// ---- Playing --------------------------------------------------------------------------------------------------------------

async function play(tool, file) {
  install();
  const server = new Server(program, mkdtempSync(join(scratch, 'run-')));
  await server.start();
  const { connection, client } = await connect(server.address);
  if (!server.isTemporal) await registerAttributes(connection);
  const native = await NativeConnection.connect({ address: server.address });
  const worker = await Worker.create({ connection: native, taskQueue: 'q', workflowBundle: await bundle(), activities, identity: '1@worker' });
  const facts = {};
  const env = { ...process.env, TEMPORAL_CLI_DISABLE_CONNECT_DIAGNOSIS: '1', TEMPORAL_VERSION_CHECK_DISABLED: '1' };

  // One command: its exit code and what it says, masked. `only` picks the lines that are compared.
  const say = async (step, line, only = () => true) => {
    const args = Array.isArray(line) ? line : line.split(' ');
    if (process.env.E2E_LOG) console.log(`    ${step}`);
    const { code, stdout, stderr } = await new Promise((resolve) =>
      execFile(tool, [...args, '--address', server.address, '--color', 'never'], { env, timeout: 60_000, maxBuffer: 1 << 26 }, (e, out, err) =>
        resolve({ code: e ? e.code ?? String(e.signal) : 0, stdout: out, stderr: err })));
    const lines = (text) => {
      const all = masked(text).split('\n').filter(only);
      return step.startsWith('task-queue describe') ? all.sort() : all; // the tool prints a map of Go, whose rows come in any order
    };
    facts[step] = { code, stdout: lines(stdout), stderr: lines(stderr) };
    return stdout;
  };
  const start = (id, type, ...args) => client.workflow.start(type, { taskQueue: 'q', workflowId: id, args });
  const types = async (id) => (await client.workflow.getHandle(id).fetchHistory()).events.map((e) => e.eventType);
  const waiting = (id) => until('it waits', async () => (await client.workflow.getHandle(id).describe()).raw.pendingWorkflowTask == null && (await types(id)).length >= 4);
  const visible = (id, status) => until('it is listed', async () => (await client.workflow.count(`WorkflowId='${id}' AND ExecutionStatus='${status}'`)).count === 1);

  await worker.runUntil(async () => {
    // Start, look, ask.
    await say('start', 'workflow start --type waits --task-queue q --workflow-id one');
    await waiting('one');
    await say('start again', 'workflow start --type waits --task-queue q --workflow-id one --id-conflict-policy Fail');
    await say('start, use existing', 'workflow start --type waits --task-queue q --workflow-id one --id-conflict-policy UseExisting -o json');
    await say('start without a queue', 'workflow start --type waits --workflow-id none');
    await say('describe', 'workflow describe -w one');
    await say('describe, json', 'workflow describe -w one -o json');
    await say('query', 'workflow query -w one --type get');
    await say('query, unknown', 'workflow query -w one --type nobody');
    await say('signal', ['workflow', 'signal', '-w', 'one', '--name', 'put', '--input', '7']);
    await say('query, json', 'workflow query -w one --type get -o json');
    await visible('one', 'Running');
    await say('list', ['workflow', 'list', '--query', "WorkflowId='one'"]);
    await say('list, json', ['workflow', 'list', '--query', "WorkflowId='one'", '-o', 'json']);
    await say('list, bad', ['workflow', 'list', '--query', 'what is this']);
    await say('count', ['workflow', 'count', '--query', "WorkflowId='one'"]);
    await say('count, by status', ['workflow', 'count', '--query', "WorkflowId='one' GROUP BY ExecutionStatus"]);
    await say('stack', 'workflow stack -w one', (l) => !/^\s+at /.test(l));
    await say('metadata', 'workflow metadata -w one -o json');
    await waiting('one');
    await say('show', 'workflow show -w one');
    await say('show, json', 'workflow show -w one -o json');
    await say('signal, done', 'workflow signal -w one --name done');
    await say('result', 'workflow result -w one');
    await say('show, closed', 'workflow show -w one');
    await say('describe, closed', 'workflow describe -w one');
    await say('signal, closed', 'workflow signal -w one --name done');

    // Execute.
    await say('execute', ['workflow', 'execute', '--type', 'hello', '--task-queue', 'q', '--workflow-id', 'two', '--input', '"cli"']);
    await say('execute, json', ['workflow', 'execute', '--type', 'hello', '--task-queue', 'q', '--workflow-id', 'two-json', '--input', '"cli"', '-o', 'json']);
    await say('execute, fails', 'workflow execute --type throwsType --task-queue q --workflow-id three');
    await say('execute, memo', ['workflow', 'execute', '--type', 'hello', '--task-queue', 'q', '--workflow-id', 'two-memo', '--input', '"cli"', '--memo', 'a=1',
      '--search-attribute', 'CustomKeywordField="k"', '--execution-timeout', '1h', '--run-timeout', '30m', '--static-summary', 'a run']);
    await say('describe, memo', 'workflow describe -w two-memo');
    await say('describe, memo, json', 'workflow describe -w two-memo -o json');

    // Updates.
    await start('four', 'handlers');
    await waiting('four');
    await say('update', 'workflow update execute -w four --name now --input 21 --update-id u1');
    await say('update, json', 'workflow update execute -w four --name now --input 21 --update-id u2 -o json');
    await say('update, fails', 'workflow update execute -w four --name fail --update-id u3');
    await say('update, unknown', 'workflow update execute -w four --name nobody --update-id u4');
    await say('update start', ['workflow', 'update', 'start', '-w', 'four', '--name', 'activity', '--input', '"x"', '--update-id', 'u5', '--wait-for-stage', 'accepted']);
    await say('update result', 'workflow update result -w four --update-id u5');
    await say('update describe', 'workflow update describe -w four --update-id u5');
    await say('update with start', ['workflow', 'execute-update-with-start', '--update-name', 'now', '--update-input', '4', '--update-id', 'u6', '--type', 'handlers',
      '--task-queue', 'q', '--workflow-id', 'four-b', '--id-conflict-policy', 'UseExisting']);
    await say('signal with start', ['workflow', 'signal-with-start', '--signal-name', 'put', '--signal-input', '1', '--type', 'waits', '--task-queue', 'q', '--workflow-id', 'five']);
    await waiting('five');

    // The end of a run, and a new one.
    await say('cancel', 'workflow cancel -w five');
    await say('result, canceled', 'workflow result -w five');
    await say('terminate', 'workflow terminate -w four --reason enough');
    await say('result, terminated', 'workflow result -w four');
    await say('describe, terminated', 'workflow describe -w four');
    await say('reset', ['workflow', 'reset', '-w', 'one', '--type', 'FirstWorkflowTask', '--reason', 'again']);
    await until('it goes on', async () => (await client.workflow.getHandle('one').describe()).status.name !== 'RUNNING' || (await types('one')).length > 4);
    await say('result, reset', 'workflow result -w one');
    await say('reset, event', ['workflow', 'reset', '-w', 'one', '--event-id', '4', '--reason', 'again', '--reapply-exclude', 'All']);
    await waiting('one');
    await say('show, reset', 'workflow show -w one');
    await say('reset, nobody', ['workflow', 'reset', '-w', 'nobody', '--event-id', '4', '--reason', 'again']);
    await say('options', 'workflow update-options -w one --versioning-override-behavior auto_upgrade');
    await say('delete', 'workflow delete -w five --yes');
    await until('it is gone', () => client.workflow.getHandle('five').describe().then(() => false, () => true));
    await say('describe, gone', 'workflow describe -w five');
    await say('delete, nobody', 'workflow delete -w five --yes');
    for (const verb of ['signal --name x', 'query --type x', 'cancel', 'terminate', 'show', 'describe', 'update execute --name x']) {
      const [first, ...more] = verb.split(' ');
      await say(`${verb}, nobody`, ['workflow', first, ...(first === 'update' ? [more.shift()] : []), '-w', 'nobody', ...more]);
    }

    // Activities.
    await start('six', 'asynchronous');
    await until('it is pending', async () => (await client.workflow.getHandle('six').describe()).raw.pendingActivities?.[0]?.state === 2);
    await say('describe, activity', 'workflow describe -w six');
    const id = (await client.workflow.getHandle('six').describe()).raw.pendingActivities[0].activityId;
    await say('activity pause', ['activity', 'pause', '-w', 'six', '--activity-id', id]);
    await say('activity unpause', ['activity', 'unpause', '-w', 'six', '--activity-id', id]);
    await say('activity reset', ['activity', 'reset', '-w', 'six', '--activity-id', id]);
    await say('activity options', ['activity', 'update-options', '-w', 'six', '--activity-id', id, '--heartbeat-timeout', '33s']);
    await say('activity complete', ['activity', 'complete', '-w', 'six', '--activity-id', id, '--result', '"by hand"']);
    await say('activity complete, again', ['activity', 'complete', '-w', 'six', '--activity-id', id, '--result', '"by hand"']);
    await say('result, activity', 'workflow result -w six');

    // Many at once.
    for (let i = 0; i < 3; i++) await start(`batch-${i}`, 'waits');
    for (let i = 0; i < 3; i++) await visible(`batch-${i}`, 'Running');
    const batch = ['--query', "WorkflowId STARTS_WITH 'batch-'", '--reason', 'all of them', '--yes'];
    const told = await say('batch terminate', ['workflow', 'terminate', ...batch]);
    const job = /[0-9a-f]{8}-[-0-9a-f]{27}/.exec(told)?.[0] ?? 'none';
    await until('it has ended', async () => (await connection.workflowService.describeBatchOperation({ namespace: 'default', jobId: job })).state === 2);
    await say('batch describe', ['batch', 'describe', '--job-id', job]);
    await say('batch describe, json', ['batch', 'describe', '--job-id', job, '-o', 'json']);
    await say('batch list', 'batch list --limit 1');
    await say('batch stop, ended', ['batch', 'terminate', '--job-id', job, '--reason', 'late']);
    await say('batch describe, nobody', 'batch describe --job-id nobody');
    await say('task-queue describe', 'task-queue describe --task-queue q');
  });

  // Namespaces, search attributes, queues, the server.
  await say('namespace create', ['operator', 'namespace', 'create', '--namespace', 'space', '--retention', '72h', '--description', 'a place', '--email', 'me@here']);
  await say('namespace create, again', 'operator namespace create --namespace space --retention 72h');
  await until('it is known', () => connection.workflowService.describeNamespace({ namespace: 'space' }).then(() => true, () => false));
  await say('namespace describe', 'operator namespace describe --namespace space');
  await say('namespace describe, json', 'operator namespace describe --namespace space -o json');
  await say('namespace update', ['operator', 'namespace', 'update', '--namespace', 'space', '--description', 'another place', '--retention', '96h', '--data', 'k=v']);
  await until('it is changed', async () => (await connection.workflowService.describeNamespace({ namespace: 'space' })).namespaceInfo.description === 'another place');
  await say('namespace describe, updated', 'operator namespace describe --namespace space');
  await say('namespace list', 'operator namespace list', (l) => / (Name|NamespaceInfo.Name) /.test(l) && / (space|default)$/.test(l));
  await say('namespace delete', 'operator namespace delete --namespace space --yes', (l) => !/Deleted|deleted/.test(l));
  await say('namespace describe, nobody', 'operator namespace describe --namespace nobody');
  await say('attribute create', 'operator search-attribute create --name CliKey --type Keyword');
  await say('attribute create, again', 'operator search-attribute create --name CliKey --type Keyword');
  await say('attribute create, other', 'operator search-attribute create --name CliKey --type Int');
  await say('attribute list', 'operator search-attribute list', (l) => /Custom|Cli/.test(l));
  await say('attribute remove', 'operator search-attribute remove --name CliKey --yes');
  await say('task-queue describe, nobody', 'task-queue describe --task-queue nobody');
  await say('health', 'operator cluster health');
  await say('schedules', 'schedule list');
  writeFileSync(file, JSON.stringify(facts, null, 1));
  console.log(`    ${Object.keys(facts).length} commands`);
  await connection.close();
  await native.close();
  await server.end('SIGTERM');
}

// ---- Comparing --------------------------------------------------------------------------------------------------------------

function compare(theirsFile, oursFile, knownFile) {
  const [theirs, ours] = [theirsFile, oursFile].map((file) => JSON.parse(readFileSync(file)));
  const known = new Map();
  for (const line of readFileSync(knownFile, 'utf8').split('\n')) {
    const match = /^([^:]+): (.+)$/.exec(line);
    if (match && match[1] in theirs) known.set(match[1], match[2]);
  }
  let wrong = 0;
  let different = 0;
  for (const [step, facts] of Object.entries(theirs)) {
    const mine = ours[step] ?? { code: 'none', stdout: [], stderr: [] };
    const isSame = JSON.stringify(facts) === JSON.stringify(mine);
    different += isSame ? 0 : 1;
    if (isSame === !known.has(step)) continue;
    wrong++;
    if (isSame) {
      console.log(`  ${step}: DIFFERENT_CLI says that they differ, and they do not`);
      continue;
    }
    console.log(`  ${step}`);
    if (facts.code !== mine.code) console.log(`    exit code ${facts.code}, here ${mine.code}`);
    for (const stream of ['stdout', 'stderr']) {
      for (const line of facts[stream]) if (!mine[stream].includes(line)) console.log(`    - ${line}`);
      for (const line of mine[stream]) if (!facts[stream].includes(line)) console.log(`    + ${line}`);
    }
  }
  console.log(`${Object.keys(theirs).length} commands compared, ${different} differ, ${known.size} of them known`);
  process.exit(wrong > 0 ? 1 : 0);
}

if (mode === 'play') {
  await play(...rest);
  process.exit(0);
} else {
  compare(...rest);
}
