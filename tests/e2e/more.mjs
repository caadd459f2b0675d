// Scenarios beyond the list, once each; `both`: with a cache and without. `ours`: not for Temporal's own server.
import { ACTIVITIES } from './more_activities.mjs';
import { CLIENTS } from './more_clients.mjs';
import { EDGES } from './more_edges.mjs';
import { MIXED } from './more_mixed.mjs';
import { RUNS } from './more_runs.mjs';
import { VISIBILITY } from './more_visibility.mjs';
import { WORKERS } from './more_workers.mjs';

const all = { ...ACTIVITIES, ...RUNS, ...CLIENTS, ...VISIBILITY, ...WORKERS, ...MIXED, ...EDGES };
export const MORE = Object.fromEntries(Object.entries(all).map(([name, scenario]) => [name, { once: true, ...scenario }]));
