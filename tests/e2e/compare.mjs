// Compares what the scenarios saw on Temporal's server and on Holdfast: errors of calls (method, code, details), events, notes.
//     node compare.mjs - <scratch folder> <facts of Temporal's> <facts of Holdfast> <DIFFERENT>
// A line "SCENARIO KIND: reason" of DIFFERENT says that they differ and why; one that does not hold any more is an error, too.
import { readFileSync } from 'node:fs';

const [theirs, ours] = process.argv.slice(4, 6).map((file) => JSON.parse(readFileSync(file)));
const known = new Map();
for (const line of readFileSync(process.argv[6], 'utf8').split('\n')) {
  const match = /^(\S+) (errors|events|notes): (.+)$/.exec(line);
  if (match) known.set(`${match[1]} ${match[2]}`, match[3]);
}

const unique = (list) => [...new Set(list)].sort();
const seen = new Set();
let compared = 0;
let wrong = 0;
for (const [name, queues] of Object.entries(theirs)) {
  for (const [queue, facts] of Object.entries(queues)) {
    const mine = ours[name]?.[queue];
    if (!mine) continue;
    for (const kind of ['errors', 'events', 'notes']) {
      const [a, b] = [facts, mine].map((f) => JSON.stringify(kind === 'errors' ? unique(f.errors) : f[kind], null, 1));
      compared++;
      if (a === b) continue;
      seen.add(`${name} ${kind}`);
      if (known.has(`${name} ${kind}`)) continue;
      wrong++;
      console.log(`  ${name}, ${queue}, ${kind}`);
      const [x, y] = [a.split('\n'), b.split('\n')];
      for (const line of x) if (!y.includes(line)) console.log(`    - ${line.trim()}`);
      for (const line of y) if (!x.includes(line)) console.log(`    + ${line.trim()}`);
    }
  }
}
for (const key of known.keys()) {
  if (seen.has(key) || !theirs[key.split(' ')[0]]) continue;
  wrong++;
  console.log(`  ${key}: DIFFERENT says that they differ, and they do not`);
}
console.log(`${compared} comparisons, ${seen.size} differences, ${known.size} of them known`);
process.exit(wrong > 0 ? 1 : 0);
