// Says how many threads libuv's pool and V8's have, counted by the kernel. A process that V8 gives one worker is the measure of
// what else there is.
const { readdirSync, readSync } = require('fs');
const threads = () => readdirSync('/proc/self/task').length;
const atStart = threads();
const others = require('child_process').execFileSync(process.execPath,
  ['--v8-pool-size=1', '-p', 'require("fs").readdirSync("/proc/self/task").length']) - 1;
const before = threads();
require('crypto').pbkdf2('a', 'b', 1, 8, 'sha1', () => { // the first work starts the whole pool
  console.log(`v8_workers=${atStart - others} libuv_pool=${threads() - before}`);
  try { readSync(0, Buffer.alloc(1)); } catch (e) { if (e.code !== 'EOF') throw e; }
});
