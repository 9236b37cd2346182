// Runs one scenario: node run.mjs FILE NAME. It fails with the reason on standard error.
import { pathToFileURL } from 'node:url';

const [file, name] = process.argv.slice(2);
const scenarios = await import(pathToFileURL(file).href);
await scenarios[name]();
// A scenario that has waited for a server leaves nothing that matters.
process.exit(0);
